package messages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/mail/mailtest"
)

const minutes = `Hello @BlueDog and @RedFox, @BlueDog!
- first point
* second point with ` + "`internal/mail/send.go` and `plain` and `f(x)`" + `
1. third point
- first point
- [ ] write the test
- [x] read the code
[X] done, too
TODO: call Ann
We are BLOCKED on CI
todo is not an action, nor is BLOCKEDLY
> - quoted point
> TODO quoted
` + "```go\n- in a fence\nTODO in a fence `a/b`\n```\n~~~\n- in another\n```\n~~~" + `
mail a@b.example, a.@c, (@GoldHawk) @@Two @-x @9
- ` + "\x1b[31mred"

func TestASummaryIsMadeOfWhatTheLinesSay(t *testing.T) {
	t.Parallel()
	var g summaryBuilder
	g.from("RedFox")
	g.from("BlueDog")
	g.from("RedFox")
	g.read(minutes)
	s := g.summary()
	mailtest.WantFields(t, "summary", s, "participants", "key_points", "action_items", "total_messages", "open_actions", "done_actions", "mentions", "code_references")
	mailtest.Want(t, "summary", mailtest.JSON(t, s), `{"participants":["BlueDog","RedFox"],"key_points":["first point","second point with `+"`internal/mail/send.go` and `plain` and `f(x)`"+
		`","third point","[31mred"],"action_items":["write the test","read the code","done, too","TODO: call Ann","We are BLOCKED on CI"],"total_messages":0,`+
		`"open_actions":1,"done_actions":2,"mentions":[{"name":"BlueDog","count":2},{"name":"GoldHawk","count":1},{"name":"RedFox","count":1}],`+
		`"code_references":["internal/mail/send.go","f(x)"]}`)
	mailtest.WantFields(t, "empty", (&summaryBuilder{}).summary(), "participants", "key_points", "action_items", "total_messages", "open_actions", "done_actions", "mentions")
	var long summaryBuilder
	for i := range 30 {
		long.read(fmt.Sprintf("- p%d %s\n- [ ] a%d\n@Name%d `c%d/`", i, strings.Repeat("é", 300), i, i, i))
	}
	l := long.summary()
	mailtest.Want(t, "at most ten of each", len(l.KeyPoints)+len(l.ActionItems)+len(l.Mentions)+len(l.CodeReferences), 40)
	mailtest.Want(t, "first seen first", l.ActionItems[0], "a0")
	mailtest.Want(t, "characters", utf8.RuneCountInString(l.KeyPoints[0]), 200)
	mailtest.Want(t, "open", l.OpenActions, 30)
}

func FuzzASummaryIsBoundedWhateverTheText(f *testing.F) {
	for _, seed := range []string{minutes, "```", "- ", "[ ]", "@", "@@@a", "`", "``a/`", "1) x\n2.", "\u2028- x", "~~~\n```\n", strings.Repeat("- [ ] x\n", 20)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var g summaryBuilder
		g.read(text)
		s := g.summary()
		for _, list := range [][]string{s.KeyPoints, s.ActionItems, s.CodeReferences} {
			if len(list) > 10 {
				t.Errorf("%d points", len(list))
			}
			for i, p := range list {
				if p == "" || utf8.RuneCountInString(p) > 200 || strings.ContainsAny(p, "\n\r\x1b") || slices.Contains(list[:i], p) {
					t.Errorf("point %q", p)
				}
			}
		}
		if len(s.Mentions) > 10 || s.OpenActions+s.DoneActions > strings.Count(text, "]") {
			t.Errorf("%+v", s)
		}
		for _, m := range s.Mentions {
			if m.Count < 1 || !strings.Contains(text, "@"+m.Name) || strings.Count(text, "@"+m.Name) < m.Count {
				t.Errorf("mention %+v", m)
			}
		}
	})
}
