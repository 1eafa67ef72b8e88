package gitdir

import (
	"iter"
	"path/filepath"
	"strings"

	"cairn/internal/regular"
)

// Config returns the text of the config of a git directory, "" if there is none or it
// cannot be read. Included files are not followed.
func Config(common string) string {
	data, err := regular.ReadHead(filepath.Join(common, "config"), MaxConfig)
	if err != nil {
		return ""
	}
	return string(data)
}

// Remote returns the address of the remote "origin" in a configuration, else that of
// its only remote; "" without a remote, and with several others.
func Remote(config string) string {
	others := map[string]string{}
	for header, entry := range configEntries(config) {
		name, ok := remoteName(header)
		if !ok || entry.value == "" || !strings.EqualFold(entry.name, "url") {
			continue
		}
		if name == "origin" {
			return entry.value
		}
		if _, known := others[name]; !known {
			others[name] = entry.value
		}
	}
	if len(others) != 1 {
		return ""
	}
	for _, address := range others {
		return address
	}
	return ""
}

// configLine is an entry of a Git configuration.
type configLine struct {
	name, value string
	alone       bool // the entry has no equals sign
}

// configEntries reads Git's configuration syntax: every entry with the header of its
// section. Names keep their case.
func configEntries(text string) iter.Seq2[string, configLine] {
	return func(yield func(string, configLine) bool) {
		rest, section := strings.TrimPrefix(text, "\uFEFF"), ""
		for rest != "" {
			rest = strings.TrimLeft(rest, " \t\r\n")
			switch {
			case rest == "":
			case rest[0] == '#' || rest[0] == ';':
				_, rest, _ = strings.Cut(rest, "\n")
			case rest[0] == '[':
				section, rest = sectionHeader(rest)
			default:
				entry := configLine{name: rest[:len(rest)-len(strings.TrimLeftFunc(rest, isNameChar))]}
				rest = strings.TrimLeft(rest[len(entry.name):], " \t")
				entry.alone = !strings.HasPrefix(rest, "=")
				entry.value, rest = configValue(rest)
				if !yield(section, entry) {
					return
				}
			}
		}
	}
}

func isNameChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

// sectionHeader splits off a section header, which ends at its bracket outside quotes. A
// header that is not closed on its line is "".
func sectionHeader(text string) (header, rest string) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return "", text[i:]
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return text[1:i], text[i+1:]
		}
	}
	return "", ""
}

// remoteName returns the remote that a section is about; ok is false for other sections.
func remoteName(header string) (name string, ok bool) {
	section, name, quoted := strings.Cut(header, `"`)
	if !quoted { // the old form, which has no case
		name, ok = strings.CutPrefix(strings.ToLower(strings.TrimSpace(header)), "remote.")
		return name, ok
	}
	name, ok = strings.CutSuffix(strings.TrimRight(name, " \t"), `"`)
	return name, ok && strings.EqualFold(strings.TrimSpace(section), "remote")
}

// configValue splits off the rest of an entry: "= value" with quotes, escapes, comments
// and continued lines. It is "" without an equals sign.
func configValue(text string) (value, rest string) {
	body, ok := strings.CutPrefix(text, "=")
	if !ok {
		_, rest, _ = strings.Cut(text, "\n")
		return "", rest
	}
	var b strings.Builder
	quoted, kept := false, 0 // kept: the length without trailing space outside quotes
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '\n':
			return strings.TrimLeft(b.String()[:kept], " \t"), body[i+1:]
		case c == '"':
			quoted = !quoted
			kept = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(body[i:], "\n")
			return strings.TrimLeft(b.String()[:kept], " \t"), rest
		case c == '\\' && i+1 < len(body):
			i++
			b.WriteString(unescaped(body, &i))
			kept = b.Len()
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' && c != '\r' {
			kept = b.Len()
		}
	}
	return strings.TrimLeft(b.String()[:kept], " \t"), ""
}

// unescaped returns the meaning of the character at i after a backslash. It advances i if
// a continued line ends in CR LF.
func unescaped(body string, i *int) string {
	switch c := body[*i]; c {
	case '\n':
		return ""
	case '\r':
		if strings.HasPrefix(body[*i+1:], "\n") {
			*i++
			return ""
		}
		return "\r"
	case 't':
		return "\t"
	case 'n':
		return "\n"
	case 'b':
		return ""
	default:
		return string(c)
	}
}

// ConfigEntry returns the last value of a name in the sections [section] of a Git
// configuration; ok is false if there is none. A name without a value means true.
func ConfigEntry(text, section, name string) (value string, ok bool) {
	for header, entry := range configEntries(text) {
		if strings.EqualFold(strings.TrimSpace(header), section) && strings.EqualFold(entry.name, name) {
			value, ok = entry.value, true
			if entry.alone {
				value = "true"
			}
		}
	}
	return value, ok
}

// IsTrue parses a boolean as Git does.
func IsTrue(value string, ok bool) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return ok
	}
	return false
}
