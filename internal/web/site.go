package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"cairn"
	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/service"
	"cairn/internal/markdown"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/record"
)

//go:embed pages
var files embed.FS

// Site renders pages. It is safe for concurrent use.
type Site struct {
	cairn   *cairn.Cairn
	mail    cairn.Mail
	version string
	layout  func() (*template.Template, error) // template of all pages, parsed for the first page
	style   func() ([]byte, error)
	script  func() ([]byte, error)
	assets  func() (string, error) // hash of both

	toolsets  func() ([]ToolsetCost, error)                       // computed once
	calls     func() map[string]int64                             // by tool
	since     time.Time                                           // the start of calls
	doctor    func(ctx context.Context) (doctor.Diagnosis, error) // nil where doctor cannot run
	diagnosed atomic.Pointer[diagnosis]                           // result of doctor's last run
	measured  atomic.Pointer[measured]                            // latest totals of the store
	counted   atomic.Pointer[waiting]                             // latest counts for the navigation bar
}

// Config contains the data sources of the pages.
type Config struct {
	Cairn   *cairn.Cairn
	Version string                                              // version of the program
	Doctor  func(ctx context.Context) (doctor.Diagnosis, error) // runs doctor; nil where that is not possible

	Toolsets func() ([]ToolsetCost, error) // context cost of the tools; nil if unknown
	Calls    func() map[string]int64       // completed calls of this server by tool; nil if unknown
}

// ToolsetCost is the number of tokens that the tool definitions of a toolset add to each
// model request. It applies to programs that send all definitions.
type ToolsetCost struct {
	Name       string `json:"name"`
	Tools      int    `json:"tools"`
	Tokens     int    `json:"tokens"`
	LeanTools  int    `json:"lean_tools"` // number of tools in the lean profile
	LeanTokens int    `json:"lean_tokens"`

	Names []string `json:"-"` // of all its tools
}

// New returns the pages of a store.
func New(c Config) *Site {
	if c.Toolsets == nil {
		c.Toolsets = func() ([]ToolsetCost, error) { return nil, nil }
	}
	if c.Calls == nil {
		c.Calls = func() map[string]int64 { return nil }
	}
	s := &Site{
		cairn: c.Cairn, mail: c.Cairn.Mail(), version: c.Version, doctor: c.Doctor, toolsets: sync.OnceValues(c.Toolsets), calls: c.Calls, since: time.Now(),
		style:  sync.OnceValues(func() ([]byte, error) { return files.ReadFile("pages/style.css") }),
		script: sync.OnceValues(func() ([]byte, error) { return files.ReadFile("pages/app.js") }),
		layout: sync.OnceValues(parse),
	}
	s.assets = sync.OnceValues(func() (string, error) {
		style, err := s.style()
		script, failed := s.script()
		hash := sha256.Sum256(slices.Concat(style, script))
		return hex.EncodeToString(hash[:6]), errors.Join(err, failed)
	})
	return s
}

func (s *Site) now() time.Time { return s.cairn.Now() }

// measured contains the totals of the store and the time when they were counted.
type measured struct {
	cairn.StoreMetrics
	Types []browse.TypeStats `json:"types"`
	At    int64              `json:"at"`
}

// measureEvery is how many seconds totals are cached. Counting takes 0.2 s for a million
// events.
const measureEvery = 60

// measures counts the contents of the store, at most once a minute.
func (s *Site) measures(ctx context.Context) (measured, error) {
	now := s.now().Unix()
	if last := s.measured.Load(); last != nil && now-last.At < measureEvery && now >= last.At {
		return *last, nil
	}
	m := measured{At: now}
	var err error
	if m.StoreMetrics, err = s.cairn.StoreMetrics(ctx); err != nil {
		return m, err
	}
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return m, err
	}
	if m.Types, err = browse.TypesHeld(ctx, j, m.Counts.ByType); err == nil {
		s.measured.Store(&m)
	}
	return m, err
}

// Visitor is the user who requests a page.
type Visitor struct {
	FormToken string // the form_token of forms; the listener checks it before it calls this package
	SignedIn  bool
}

// Response is a page or a redirect.
type Response struct {
	Status int    // 0 for 200, or for the status derived from the returned error
	Type   string // media type
	Body   []byte
	To     string       // redirect path, sent with 303; "" for none
	SaveAs string       // file name for a download, "" for a page
	Forms  bool         // the page contains a form
	Cookie *http.Cookie // cookie to set, nil for none
	Fixed  bool         // its URL changes with its content, so browsers may keep it
}

// Answer renders the page for the URL of a request that has passed all checks. With an
// error, Body may contain a page that reports it.
//
// Errors: fault.NotFound, code not_found, for a URL without a page; the errors of mail.
func (s *Site) Answer(r *http.Request, v Visitor) (Response, error) {
	at, ok := find(r.URL.EscapedPath())
	if !ok {
		return Response{}, fault.New(fault.NotFound, "not_found", "there is no such page").WithHint("start with Today")
	}
	if r.Method == http.MethodPost {
		defer s.counted.Store(nil)
	}
	return at.answer(s, r, v, at)
}

// Style returns the stylesheet of all pages.
func (s *Site) Style() (Response, error) {
	text, err := s.style()
	return Response{Type: "text/css; charset=utf-8", Body: text, Fixed: true}, err
}

// Script returns the script of all pages, for keyboard keys and live updates. Every page
// works without it.
func (s *Site) Script() (Response, error) {
	text, err := s.script()
	return Response{Type: "text/javascript; charset=utf-8", Body: text, Fixed: true}, err
}

// SignIn renders the login page. problem says what was wrong with the previous token, ""
// for nothing. next is the path to open after login.
func (s *Site) SignIn(next, problem string) (Response, error) {
	return s.form("login", "Sign in", Visitor{}, struct{ Next, Problem string }{next, problem})
}

// SignOut renders the page that confirms the logout.
func (s *Site) SignOut(v Visitor) (Response, error) {
	return s.form("logout", "Sign out", v, nil)
}

// Problem renders the page that reports an error.
func (s *Site) Problem(v Visitor, status int, message, hint string) (Response, error) {
	a, err := s.page("problem", http.StatusText(status), v, struct{ Message, Hint string }{message, hint})
	a.Status = status
	return a, err
}

// frame is the data that the layout shows around a page.
type frame struct {
	Title    string
	Visitor  Visitor
	Content  any
	Template string
	Version  string
	Now      int64  // Unix seconds
	JSON     string // URL of the same page as JSON, "" for none
	Query    string // content of the search field
	Live     bool   // the page updates automatically
	Assets   string // hash of the stylesheet and the script, for their URLs

	Waiting map[string]int // number of items that wait for the user, by section path
}

// Sections returns the pages in the navigation bar.
func Sections() []Section {
	return []Section{
		{"Today", "/", "h", []string{"today"}},
		{"Timeline", "/timeline", "t", []string{"timeline", "session", "row"}},
		{"Files", "/files", "f", []string{"files", "file"}},
		{"Records", "/records", "r", []string{"records"}},
		{"Mail", "/mail", "m", []string{"projects", "mailbox", "inbox", "letter", "thread", "overseer"}},
		{"Reservations", "/reservations", "v", []string{"reservations", "release"}},
		{"Memories", "/memories", "e", []string{"memories"}},
		{"Worth", "/worth", "w", []string{"worth"}},
		{"Health", "/status", "s", []string{"health"}},
	}
}

// Section is a page in the navigation bar, with its templates.
type Section struct {
	Name, Path string
	Key        string // keyboard key that opens it after g
	templates  []string
}

// Is reports whether a page belongs to the section.
func (s Section) Is(template string) bool { return slices.Contains(s.templates, template) }

// show renders a page, or its content as JSON with ?format=json.
func (s *Site) show(r *http.Request, v Visitor, name, title string, content any) (Response, error) {
	if r.URL.Query().Get("format") == "json" {
		text, err := json.MarshalIndent(content, "", "  ")
		return Response{Type: "application/json; charset=utf-8", Body: append(text, '\n')}, err
	}
	return s.render(name, frame{
		Title: title, Visitor: v, Content: content, JSON: with(r.URL, "format", "json"), Query: r.URL.Query().Get("q"),
		Live: isLive(content), Waiting: s.countWaiting(r),
	})
}

// isLive reports whether a page updates while it is open.
func isLive(content any) bool {
	p, ok := content.(interface{ live() bool })
	return ok && p.live()
}

func (s *Site) page(name, title string, v Visitor, content any) (Response, error) {
	return s.render(name, frame{Title: title, Visitor: v, Content: content})
}

func (s *Site) render(name string, f frame) (Response, error) {
	layout, err := s.layout()
	if err != nil {
		return Response{}, err
	}
	if f.Assets, err = s.assets(); err != nil {
		return Response{}, err
	}
	f.Template, f.Version, f.Now = name, s.version, s.now().Unix()
	var out bytes.Buffer
	if err := layout.ExecuteTemplate(&out, name, f); err != nil {
		return Response{}, fmt.Errorf("page %s: %w", name, err)
	}
	return Response{Type: "text/html; charset=utf-8", Body: out.Bytes()}, nil
}

func (s *Site) form(name, title string, v Visitor, content any) (Response, error) {
	a, err := s.page(name, title, v, content)
	a.Forms = true
	return a, err
}

func parse() (*template.Template, error) {
	texts := markdown.New()
	return template.New("").Funcs(template.FuncMap{
		"under": func(key string, rest ...any) string {
			texts := make([]string, len(rest))
			for i, r := range rest {
				texts[i] = textOf(r)
			}
			return under(key, texts...)
		},
		"line": func(v any) string { return markdown.Visible(textOf(v)) },
		"markdown": func(text string) template.HTML {
			return template.HTML(texts.HTML(text)) // the HTML contains no active content
		},
		"date":       func(t mail.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" },
		"iso":        func(t mail.Time) string { return t.UTC().Format(time.RFC3339) },
		"size":       size,
		"ago":        ago,
		"back":       back,
		"moment":     moment,
		"period":     period,
		"zone":       func() string { return zone(time.Now()) },
		"clock":      func(at int64) string { return time.Unix(at, 0).Format("15:04") },
		"seconds":    func(at int64) string { return time.Unix(at, 0).Format("15:04:05") },
		"pct":        func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" },
		"sections":   Sections,
		"file":       filePath,
		"short":      func(text string) string { return cutWords(text, 120) },
		"hash":       func(hash string) string { return hash[:min(len(hash), 10)] },
		"bytes":      func(n int64) string { return size(&n) },
		"initials":   initials,
		"kind":       kindOf,
		"count":      count,
		"record":     recordPath,
		"row":        rowPath,
		"session":    sessionPath,
		"add":        func(a, b int) int { return a + b },
		"path":       middle,
		"param":      url.QueryEscape,
		"unix":       func(t time.Time) int64 { return t.Unix() },
		"deref":      textOf,
		"reason":     reasonOf,
		"section":    sectionName,
		"trigger":    triggerName,
		"lower":      strings.ToLower,
		"did":        didOf,
		"typeName":   typeName,
		"ageName":    ageName,
		"partName":   partName,
		"facets":     facetsOf,
		"nano":       nanoTime,
		"diff":       diffLines,
		"formOf":     func(p *recordsPage, token string) formOfRecord { return formOfRecord{p, token} },
		"isTrue":     func(b *bool) bool { return b != nil && *b },
		"recordtime": func(now int64, at record.Time) string { return moment(now, nanoTime(int64(at))) },
		"cited":      citedLine,
		"addsec":     func(a, b int64) int64 { return a + b },
		"sum":        func(a, b float64) float64 { return a + b },
		"ticks":      ticksOf,
		"endOf":      endOf,
		"mailunix":   func(t mail.Time) int64 { return t.UTC().Unix() },
	}).ParseFS(files, "pages/*.html")
}

// textOf converts a template value to text, "" for nil.
func textOf(v any) string {
	switch v := v.(type) {
	case *string:
		if v == nil {
			return ""
		}
		return *v
	case *int64:
		if v == nil {
			return ""
		}
		return strconv.FormatInt(*v, 10)
	}
	return fmt.Sprint(v)
}

// size formats a number of bytes.
func size(n *int64) string {
	switch {
	case n == nil:
		return "in the text"
	case *n < 1<<10:
		return strconv.FormatInt(*n, 10) + " bytes"
	case *n < 1<<20:
		return strconv.FormatInt(*n>>10, 10) + " KiB"
	}
	return strconv.FormatFloat(float64(*n)/(1<<20), 'f', 1, 64) + " MiB"
}

// ownerCaller returns the caller for page requests: the store's owner, without a session.
func ownerCaller() mail.Caller { return mail.Caller{Owner: true, Ancestors: []project.Process{}} }

// ask reads from the mail service.
func ask[T any](ctx context.Context, s *Site, read func(context.Context, *service.Mail, mail.Caller) (T, error)) (out T, err error) {
	err = s.mail.Read(ctx, ownerCaller(), func(ctx context.Context, o *service.Mail, c mail.Caller) error {
		out, err = read(ctx, o, c)
		return err
	})
	return out, err
}

// number parses a decimal id from the URL. Any other text is reported as not found.
func number(what, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fault.Newf(fault.NotFound, "not_found", "%s %.40q not found", what, strings.ToValidUTF8(text, "?"))
	}
	return n, nil
}

// initials returns at most two capitals of a name; a dash if it has none.
func initials(name string) string {
	var out []rune
	for _, r := range name {
		if unicode.IsUpper(r) && len(out) < 2 {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return "–"
	}
	return string(out)
}

// middle shortens a path to n characters by cutting its middle.
func middle(n int, path string) string {
	runes := []rune(path)
	if len(runes) <= n {
		return path
	}
	half := (n - 1) / 2
	return string(runes[:n-1-half]) + "…" + string(runes[len(runes)-half:])
}

// cutWords returns at most n characters of a text's first line.
func cutWords(text string, n int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
