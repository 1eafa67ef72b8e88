package githook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The scripts begin with a line for the shell and a line that identifies cairn, with a
// hash of the text that follows.
const (
	shebang     = "#!/bin/sh\n"
	chainMark   = "# cairn-chain 1 "
	guardMark   = "# cairn-guard 1 "
	hashDigits  = 2 * sha256.Size
	origComment = "# before: "
)

// signed returns a script with its hash.
func signed(mark, body string) string {
	return shebang + mark + hashOf(body) + "\n" + body
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// bodyOf returns the text after the hash of a script. ours reports whether this package
// wrote the script, intact whether it is unedited.
func bodyOf(text []byte, mark string) (body string, intact, ours bool) {
	rest, ok := bytes.CutPrefix(text, []byte(shebang+mark))
	if !ok || len(rest) <= hashDigits {
		return "", false, ok
	}
	body = string(rest[hashDigits+1:])
	return body, rest[hashDigits] == '\n' && string(rest[:hashDigits]) == hashOf(body), true
}

// chainText returns the script that replaces a hook. orig is the file name of the
// original hook, "" for none. sourced means that the original is sourced instead of
// executed.
func chainText(hook, orig string, sourced bool) string {
	var b strings.Builder
	b.WriteString(`# Runs every program in hooks.d/` + hook + ` in order, then the original hook.
# Written by "cairn guard install"; "cairn guard uninstall" restores the original.
`)
	if orig != "" {
		b.WriteString(origComment + orig + "\n")
	}
	b.WriteString(`case $0 in
*/*) dir=${0%/*} ;;
*) dir=. ;;
esac
`)
	run, feed := `"$hook" "$@" || exit`, ""
	if hook == PrePush {
		feed = `printf %s "$refs" 2>/dev/null | `
		run = feed + run
		b.WriteString(`refs=$(cat && printf .) || exit
refs=${refs%.}
`)
	}
	each := `for hook in "$dir"/hooks.d/` + hook + `/*; do
	if [ -f "$hook" ] && [ -x "$hook" ]; then
		` + run + `
	fi
done
`
	if orig == "" {
		return signed(chainMark, b.String()+each+"exit 0\n")
	}
	call := feed + `"$orig" "$@"`
	if sourced {
		// The original checks the name it was called by, and may call that name again.
		each = `if [ "${CAIRN_CHAIN-}" != "$PWD:$0" ]; then
` + each + `fi
CAIRN_CHAIN=$PWD:$0 CAIRN_ORIG=$orig
export CAIRN_CHAIN CAIRN_ORIG
`
		call = feed + `sh -c '. "$CAIRN_ORIG"' "$0" "$@"`
	}
	b.WriteString(`orig=$dir/` + orig + "\n" + each + `[ -x "$orig" ] || exit 0
` + call + "\n")
	return signed(chainMark, b.String())
}

// origOf returns the name of the file that a chain runs last, or "".
func origOf(body string) string {
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, origComment); ok {
			return strings.TrimSuffix(name, "\n")
		}
	}
	return ""
}

// mustBeSourced reports whether a hook works only under its own name: shell scripts that
// use $0, such as husky's.
func mustBeSourced(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch strings.Join(strings.Fields(strings.TrimPrefix(string(first), "#!")), " ") {
	case "/bin/sh", "/usr/bin/sh", "/usr/bin/env sh":
	default:
		return false
	}
	return bytes.Contains(text, []byte("basename")) || bytes.Contains(text, []byte(`. "$(dirname`))
}

// guardText returns the script that runs cairn.
func (g Guard) guardText() string {
	ask := `"$cairn" guard check --pre-push`
	if g.Hook == PreCommit {
		ask = "git " + strings.Join(g.Staged, " ") + ` |
	"$cairn" guard check --stdin-nul`
	}
	if g.Project != "" {
		ask += " --project " + quoted(g.Project)
	}
	if g.Hook == PrePush {
		ask += ` -- "$1"`
	}
	return signed(guardMark, `# Asks cairn whether other agents have reserved what is about to change.
# Written by "cairn guard install"; "cairn guard uninstall" removes it.
`+programIs+quoted(g.Program)+`
[ -f "$cairn" ] && [ -x "$cairn" ] || cairn=$(command -v cairn) || {
	echo 'cairn: guard: the program cairn is not there; nothing was checked' >&2
	exit 0
}
`+ask+`
case $? in
0) exit 0 ;;
1) exit 1 ;;
esac
echo 'cairn: guard: cairn failed; nothing was checked' >&2
exit 0
`)
}

// programIs precedes the program in a guard.
const programIs = "cairn="

// programOf returns the program that a guard calls, or "".
func programOf(body string) (program string) {
	_, rest, ok := strings.Cut("\n"+body, "\n"+programIs+"'")
	for ok {
		var part string
		if part, rest, ok = strings.Cut(rest, "'"); !ok {
			return ""
		}
		program += part
		if rest, ok = strings.CutPrefix(rest, `\''`); ok {
			program += "'"
		}
	}
	return program
}

// quoted returns a shell word.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
