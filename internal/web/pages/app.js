// Keys, and parts of pages that are live. Every page works without this script.
'use strict';

// ---- keys ----

const rowSelector = [
  '.needs li', '.running', '.sessions tbody tr:not(.group)', '.actions > li', '.found li', '.tree a', '.facets a',
  'table.list tbody tr', '.entry', '.edits li', '.rows li', '.turn', '.file',
].map(s => 'main ' + s).join(', ');

const keysOff = 'cairn-keys-off';
let goPending = 0; // when g was pressed, in milliseconds

// target is what gets the focus for a row: its first link or fold, else the row itself.
function target(row) {
  if (row.matches('a, summary')) return row;
  const inner = row.querySelector('a[href], summary, button');
  if (inner) return inner;
  row.tabIndex = -1;
  return row;
}

function visible(list) {
  return [...list].filter(e => e.offsetParent !== null);
}

// step moves the focus to the next or previous of some elements.
function step(elements, by) {
  const targets = visible(elements).map(target);
  if (!targets.length) return;
  let at = targets.indexOf(document.activeElement);
  if (at < 0 && document.activeElement !== document.body) { // from where the focus is, in reading order
    const after = targets.findIndex(t => document.activeElement.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_FOLLOWING);
    at = by > 0 ? (after < 0 ? targets.length : after) - 1 : (after < 0 ? targets.length : after);
  }
  const next = at < 0 && by < 0 ? targets.length - 1 : Math.max(0, Math.min(targets.length - 1, at + by));
  targets[next].focus();
  targets[next].scrollIntoView({block: 'nearest'});
}

function stepFailure(by) {
  document.querySelectorAll('main .failed').forEach(e => { const fold = e.closest('details'); if (fold) fold.open = true; });
  step(document.querySelectorAll('main .failed'), by);
}

function fold() {
  const inside = document.activeElement.closest('details') ||
    (document.activeElement.closest(rowSelector) || document.createElement('i')).querySelector('details');
  if (inside) inside.open = !inside.open;
}

function press(key) {
  const e = document.querySelector(`[aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (!e) return false;
  if (e.matches('input, select, textarea')) { e.focus(); e.select && e.select(); } else e.click();
  return true;
}

document.addEventListener('keydown', event => {
  const field = event.target.closest('input, select, textarea, [contenteditable]');
  if (event.key === 'Escape' && field) { field.blur(); return; }
  if (field && field.type !== 'checkbox' || event.ctrlKey || event.altKey || event.metaKey || localStorage.getItem(keysOff)) return;
  const going = Date.now() - goPending < 1500;
  goPending = 0;
  const section = going && document.querySelector(`nav [data-go="${CSS.escape(event.key)}"]`);
  if (section) section.click();
  else if (event.key === 'g') goPending = Date.now();
  else if (event.key === 'j') step(document.querySelectorAll(rowSelector), 1);
  else if (event.key === 'k') step(document.querySelectorAll(rowSelector), -1);
  else if (event.key === 'n') stepFailure(1);
  else if (event.key === 'p') stepFailure(-1);
  else if (event.key === 'o') fold();
  else if (event.key.length !== 1 || !press(event.key)) return;
  event.preventDefault();
});

const keySwitch = document.getElementById('single-keys');
if (keySwitch) {
  keySwitch.parentElement.hidden = false;
  keySwitch.checked = !localStorage.getItem(keysOff);
  keySwitch.addEventListener('change', () => keySwitch.checked ? localStorage.removeItem(keysOff) : localStorage.setItem(keysOff, '1'));
}

// ---- live parts ----

// A page that is live asks for itself when the server says that something has changed, and
// puts the parts that differ in place of its own. Parts are marked by data-part; those with
// data-part="list" hold rows with ids that come in at the top.
class Live {
  constructor(main) {
    this.main = main;
    this.paused = false;
    this.waiting = null;  // the page that is not shown yet
    this.stale = false;   // something has changed since the page was asked for
    this.asking = false;
    this.lastEvent = '';
    this.announced = 0;
    this.makeBar();
    this.connect();
    document.addEventListener('visibilitychange', () => this.ask());
    addEventListener('scroll', () => { if (this.waiting && scrollY < 100) this.showWaiting(); }, {passive: true});
    setInterval(() => { this.stale = true; this.ask(); }, 30000); // ages, and what has expired
  }

  makeBar() {
    const bar = document.createElement('p');
    bar.className = 'livebar';
    this.state = document.createElement('span');
    this.state.className = 'good';
    this.button = document.createElement('button');
    this.button.className = 'plain';
    this.button.setAttribute('aria-keyshortcuts', '.');
    this.button.addEventListener('click', () => this.pause());
    this.news = document.createElement('button');
    this.news.hidden = true;
    this.news.addEventListener('click', () => { scrollTo({top: 0}); this.showWaiting(); });
    this.said = document.createElement('span');
    this.said.className = 'unseen';
    this.said.setAttribute('aria-live', 'polite');
    bar.append(this.state, ' ', this.button, ' ', this.news, this.said);
    this.main.prepend(bar);
    this.label('connecting');
  }

  label(text) {
    this.state.textContent = text;
    this.button.textContent = this.paused ? 'Continue' : 'Pause';
  }

  pause() {
    this.paused = !this.paused;
    this.label(this.paused ? 'paused' : 'live');
    if (!this.paused) this.ask();
  }

  connect() {
    this.source = new EventSource('/events');
    this.source.addEventListener('open', () => { this.stale = this.lastEvent !== '' || this.stale; this.label(this.paused ? 'paused' : 'live'); this.ask(); });
    this.source.addEventListener('change', () => { this.lastEvent = new Date().toLocaleTimeString(); this.stale = true; this.ask(); });
    this.source.addEventListener('error', () => {
      this.label('reconnecting' + (this.lastEvent ? ', last event ' + this.lastEvent : ''));
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 10000);
    });
  }

  // ask gets the page anew, one request at a time, and leaves the server ten times as long
  // in peace as it took.
  async ask() {
    if (!this.stale || this.asking || this.paused || document.hidden) return;
    this.asking = true;
    this.stale = false;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, {headers: {Accept: 'text/html', 'Cairn-Refresh': '1'}});
      if (answer.ok && !answer.redirected) this.take(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      else if (answer.redirected) { this.label('signed out'); this.source.close(); return; }
    } catch (_) {
      this.stale = true; // the stream tells that the server is gone
    }
    setTimeout(() => { this.asking = false; this.ask(); }, Math.max(1000, 10 * (performance.now() - began)));
  }

  take(page) {
    const fresh = this.freshRows(page);
    if (fresh && scrollY >= 100) {
      this.waiting = page;
      this.news.hidden = false;
      this.news.textContent = fresh === 1 ? '1 new row' : fresh + ' new rows';
    } else this.show(page);
    if (fresh && Date.now() - this.announced > 10000) {
      this.announced = Date.now();
      this.said.textContent = fresh === 1 ? '1 new row' : fresh + ' new rows';
    }
  }

  freshRows(page) {
    return [...page.querySelectorAll('[data-part="list"] [id]')].filter(row => !document.getElementById(row.id)).length;
  }

  showWaiting() {
    const page = this.waiting;
    if (page) this.show(page);
  }

  show(page) {
    this.waiting = null;
    this.news.hidden = true;
    for (const part of this.main.querySelectorAll('[data-part]')) {
      const now = page.getElementById(part.id);
      if (!now || part.outerHTML === now.outerHTML || this.inUse(part)) continue;
      this.replace(part, document.importNode(now, true));
    }
  }

  // inUse: the person marks text in it or fills in a field of it.
  inUse(part) {
    const selection = getSelection();
    return part.contains(document.activeElement) && document.activeElement.matches('input, select, textarea') ||
      !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  replace(old, now) {
    const focus = old.contains(document.activeElement) && this.placeOf(old, document.activeElement);
    const folds = new Map([...old.querySelectorAll('details[id]')].map(d => [d.id, d.open]));
    const rows = new Set([...old.querySelectorAll('[id]')].map(row => row.id));
    now.querySelectorAll('details[id]').forEach(d => { if (folds.has(d.id)) d.open = folds.get(d.id); });
    if (now.dataset.part === 'list') now.querySelectorAll('[id]').forEach(row => { if (!rows.has(row.id)) row.classList.add('fresh'); });
    old.replaceWith(now);
    if (focus) {
      const again = [...(document.getElementById(focus.row) || now).querySelectorAll(focus.selector)][focus.n];
      if (again) again.focus({preventScroll: true});
    }
  }

  // placeOf names an element in a part so that it is found again in the next one.
  placeOf(part, element) {
    const row = element.parentElement.closest('[id]') || part;
    const href = element.getAttribute('href');
    const selector = href ? `a[href="${CSS.escape(href)}"]` : element.tagName.toLowerCase();
    return {row: row.id, selector, n: [...row.querySelectorAll(selector)].indexOf(element)};
  }
}

const liveMain = document.querySelector('main[data-live]');
if (liveMain && window.EventSource) new Live(liveMain);
