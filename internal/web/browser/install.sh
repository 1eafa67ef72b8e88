#!/bin/sh
# Installs Chromium where that can be done without asking: as root on Debian and its
# like. Elsewhere it says what to do, and the tests skip. axe-core, which checks pages for
# accessibility, goes into the user's cache; without npm those checks are left out.
axe=4.14.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cairn-axe-core-$axe
if command -v npm >/dev/null && [ ! -f "$cache/node_modules/axe-core/axe.min.js" ]; then
  npm install --prefix "$cache" --no-audit --no-fund --loglevel=error "axe-core@$axe" >/dev/null 2>&1 ||
    echo "axe-core could not be installed, so the checks of accessibility are left out"
fi
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0
fi
echo "there is no Chromium, so the tests of the pages in a browser are skipped: apt-get install chromium"
