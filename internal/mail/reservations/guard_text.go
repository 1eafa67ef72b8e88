package reservations

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/neutral"
	"cairn/internal/project"
)

const (
	maxGuardText  = 400 // characters
	maxGuardFiles = 3   // obstacles and names that are listed
	maxGuardWord  = 60  // characters of a path, a pattern or a reason
)

// GuardText describes obstacles to a person or a model: facts without instructions, in at most 400
// characters. It lists at most the first three obstacles (mail §8). place is where the session
// works. names are the agents that it acts as. It returns "" without obstacles. Texts of holders
// are flattened to one line, and reasons are quoted.
func GuardText(all []ReservedFile, place project.Location, names ...string) string {
	if len(all) == 0 {
		return ""
	}
	you := ""
	if len(names) > 0 {
		you = " You are " + mail.Truncate(neutral.Line(mail.Clean(strings.Join(names[:min(len(names), maxGuardFiles)], " and "))), maxGuardWord) + "."
	}
	ways := you + fmt.Sprintf(" Ways out: another file, send_message to %s, cairn reservations check.", short(all[0].Holder))
	git := place.Git()
	var b strings.Builder
	told := 0
	for _, o := range all[:min(len(all), maxGuardFiles)] {
		line := o.line(git)
		if told > 0 {
			line = " " + line
		}
		if more := moreText(len(all) - told - 1); utf8.RuneCountInString(b.String()+line+more+ways) > maxGuardText {
			break
		}
		b.WriteString(line)
		told++
	}
	if told == 0 {
		return mail.Truncate(all[0].line(git), maxGuardText-utf8.RuneCountInString(ways)-1) + ways
	}
	return b.String() + moreText(len(all)-told) + ways
}

func moreText(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf(" And %d more.", n)
}

func (o ReservedFile) line(git project.Git) string {
	where := ""
	if o.Branch != "" && o.Branch != git.Branch {
		where = " on branch " + short(o.Branch)
	}
	if o.Worktree != git.Worktree && o.Worktree != "" {
		where += " in worktree " + short(o.Worktree)
	}
	line := fmt.Sprintf("%s is reserved by %s%s (%s) since %s until %s", short(o.Path), short(o.Holder), where, short(o.Pattern), minute(o.Since), minute(o.Until))
	if o.Reason != "" {
		line += fmt.Sprintf(", why: %q", mail.Truncate(neutral.Line(mail.Clean(o.Reason)), maxGuardWord))
	}
	return line + "."
}

func minute(t mail.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// short returns a text of another agent on one line. A long text is cut to its end.
func short(text string) string {
	text = neutral.Line(mail.Clean(text))
	if n := utf8.RuneCountInString(text); n > maxGuardWord {
		runes := []rune(text)
		return "…" + string(runes[n-maxGuardWord+1:])
	}
	return text
}
