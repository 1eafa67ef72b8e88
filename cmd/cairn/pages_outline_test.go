package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// outline returns the structure of a page: landmarks, headings, tables with columns, forms
// with fields, and charts. Each is one line, indented by its parents. It omits times,
// folders and ids, and lines equal to the previous line.
func outline(dir string, page string) (string, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	changing := regexp.MustCompile(`\d\d:\d\d(:\d\d)?|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+ (ms|s|min|bytes|KiB|MiB)\b|(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? \d+ \w+( \d{4})?`)
	var lines []string
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if said := describe(n); said != "" {
			said = changing.ReplaceAllString(strings.ReplaceAll(said, dir, "$DIR"), "…")
			if line := strings.Repeat("  ", depth) + said; len(lines) == 0 || lines[len(lines)-1] != line {
				lines = append(lines, line)
			}
			depth++
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth)
		}
	}
	walk(root, 0)
	return strings.Join(lines, "\n") + "\n", nil
}

// describe returns a description of an element that belongs to the structure, or "" for
// other elements.
func describe(n *html.Node) string {
	if n.Type != html.ElementNode {
		return ""
	}
	name := attr(n, "aria-label")
	switch n.Data {
	case "h1", "h2", "h3", "h4", "th", "legend", "summary", "button":
		return n.Data + ": " + textOf(n)
	case "header", "main", "footer", "nav", "aside", "table", "details", "fieldset":
		return strings.TrimSpace(n.Data + " " + name)
	case "section", "article":
		if name != "" {
			return n.Data + " " + name
		}
	case "form":
		return strings.TrimSpace("form " + attr(n, "method") + " " + name)
	case "input", "select", "textarea":
		if attr(n, "type") == "hidden" {
			return "hidden " + attr(n, "name")
		}
		return strings.TrimSpace(n.Data + " " + attr(n, "type") + " " + attr(n, "name") + " " + name)
	case "svg":
		if attr(n, "role") == "img" {
			return "chart"
		}
	}
	return ""
}

func attr(n *html.Node, key string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

// textOf returns the text of an element without the text of its charts.
func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Data != "svg" {
				walk(c)
			}
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// The structure of every page must match its golden file (go test -update writes them).
// Every page must have one main landmark, one top heading, and a name for each navigation.
func TestTheStructureOfEveryPageIsAsItWas(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.filled()
	v := h.listen().visitor()
	v.get("/status") // doctor has not run yet
	var all strings.Builder
	for _, a := range v.addresses() {
		if a.status != http.StatusOK {
			continue
		}
		r := v.page(v.get(a.path), http.StatusOK)
		text, err := outline(h.dir, r.body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "== %s\n%s\n", a.pattern, text)
		for _, one := range []string{"\nmain", "h1: "} {
			if n := strings.Count(text, one); n != 1 {
				t.Errorf("%s has %d of %q", a.pattern, n, one)
			}
		}
		if strings.Contains(text, "nav\n") {
			t.Errorf("%s has a navigation without a name", a.pattern)
		}
	}
	golden := filepath.Join("testdata", "pages", "outline.golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(all.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if i >= len(got) || i >= len(old) || got[i] != old[i] {
			t.Fatalf("line %d:\ngot  %q\nwant %q", i+1, got[min(i, len(got)-1)], old[min(i, len(old)-1)])
		}
	}
}
