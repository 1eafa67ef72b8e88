package shell

import "strings"

// maxShellBytes is how many bytes of a command line are read. The rest is ignored.
const maxShellBytes = 64 << 10

// maxShellDepth is the maximum nesting of quotations, parentheses and substitutions. No person or
// model writes a deeper line; parsing ends there.
const maxShellDepth = 500

// word is one word of a command line, without its quotes.
type word struct {
	text  string
	plain int // number of leading bytes outside quotes
	end   int // offset of the byte after it
}

func (w word) isPlain() bool { return w.plain == len(w.text) }

// simpleCommand is the part of a command line between two operators. It has at least one word.
// Redirections are not words.
type simpleCommand struct {
	words  []word
	quoted bool // in a substitution inside a quotation
	nested bool // in parentheses or in a substitution
	and    bool // the operator after it is &&
	start  int  // offset of the first word
	after  int  // offset of the byte after that operator
}

// simpleCommands splits a command line into its simple commands. A nested command precedes the
// command that contains it. Comments and the texts of here-documents are skipped. It reads each
// byte once, and at most maxShellBytes bytes.
func simpleCommands(line string, powerShell bool) []simpleCommand {
	s := shellScanner{src: line[:min(len(line), maxShellBytes)], powerShell: powerShell}
	s.open(listFrame, 0)
	for s.pos < len(s.src) {
		switch s.top().kind {
		case quoteFrame:
			s.scanQuotation()
		case bracesFrame:
			s.scanBraces()
		case arithmeticFrame:
			s.scanArithmetic()
		case arrayFrame:
			s.scanArray()
		default:
			s.scanList()
		}
	}
	for len(s.frames) > 0 {
		s.close()
	}
	return s.commands
}

// frameKind is the kind of construct that the scanner is in.
type frameKind uint8

const (
	listFrame       frameKind = iota // commands: the line itself, ( ), $( ), backticks
	quoteFrame                       // " "
	bracesFrame                      // ${ }
	arithmeticFrame                  // (( ))
	arrayFrame                       // name=( )
)

type frame struct {
	kind   frameKind
	closer byte // byte that ends a list; 0 for the line itself
	quoted bool // inside a quotation, at any depth
	list   int  // index of the list that contains this frame, or of this frame if it is a list
	depth  int  // open parentheses of an arithmetic frame

	// Only for a list: the command being read.
	words  []word
	start  int // offset of the first word
	text   []byte
	plain  int  // bytes of text before the first quoted byte; -1 if there is none
	inWord bool // text is a word, possibly an empty one
	target bool // the next word belongs to a redirection
}

// shellScanner is the state of simpleCommands, with a stack of open constructs.
type shellScanner struct {
	src        string
	pos        int
	powerShell bool
	frames     []frame
	heredocs   []heredoc // their texts begin after this line
	commands   []simpleCommand
}

func (s *shellScanner) top() *frame  { return &s.frames[len(s.frames)-1] }
func (s *shellScanner) list() *frame { return &s.frames[s.top().list] }

func (s *shellScanner) at(text string) bool { return strings.HasPrefix(s.src[s.pos:], text) }

// open enters a frame whose opening has n bytes.
func (s *shellScanner) open(kind frameKind, n int) {
	if len(s.frames) == maxShellDepth {
		s.pos = len(s.src)
		return
	}
	f := frame{kind: kind, plain: -1, list: len(s.frames)}
	if len(s.frames) > 0 {
		f.quoted = s.top().quoted || kind == quoteFrame
		if kind != listFrame {
			f.list = s.top().list
		}
	}
	s.frames = append(s.frames, f)
	s.pos += n
}

// openList enters a list of commands that ends with closer.
func (s *shellScanner) openList(closer byte, n int) {
	s.open(listFrame, n)
	s.top().closer = closer
}

func (s *shellScanner) close() {
	if s.top().kind == listFrame {
		s.endCommand(false)
	}
	s.frames = s.frames[:len(s.frames)-1]
}

// add appends one byte to the current word.
func (s *shellScanner) add(c byte) {
	f := s.list()
	s.beginWord()
	f.text = append(f.text, c)
}

// addQuoted appends text to the current word and marks it as quoted.
func (s *shellScanner) addQuoted(text string) {
	f := s.list()
	s.beginWord()
	if f.plain < 0 {
		f.plain = len(f.text)
	}
	f.text = append(f.text, text...)
}

func (s *shellScanner) beginWord() {
	f := s.list()
	if !f.inWord && len(f.words) == 0 && !f.target {
		f.start = s.pos
	}
	f.inWord = true
}

func (s *shellScanner) endWord() {
	f := s.list()
	if !f.inWord {
		return
	}
	if f.plain < 0 {
		f.plain = len(f.text)
	}
	if !f.target {
		f.words = append(f.words, word{string(f.text), f.plain, s.pos})
	}
	f.text, f.plain, f.inWord, f.target = f.text[:0], -1, false, false
}

// endCommand ends the current command at an operator that starts here.
func (s *shellScanner) endCommand(and bool) {
	s.endWord()
	f := s.list()
	f.target = false
	if len(f.words) == 0 {
		return
	}
	after := s.pos
	for after < len(s.src) && strings.IndexByte("&|;\n", s.src[after]) >= 0 {
		after++
	}
	s.commands = append(s.commands, simpleCommand{f.words, f.quoted, s.top().list > 0, and, f.start, after})
	f.words = nil
}

func (s *shellScanner) scanList() {
	c := s.src[s.pos]
	switch c {
	case ' ', '\t', '\r':
		s.endWord()
		s.pos++
	case '\n':
		s.endCommand(false)
		s.pos++
		s.skipHeredocs()
	case ';', '&', '|':
		s.scanOperator()
	case '(', ')':
		s.scanParenthesis(c)
	case '<', '>':
		s.scanRedirection()
	case '#':
		if s.list().inWord {
			s.add(c)
			s.pos++
			return
		}
		s.skipTo("\n", 0)
	case '{', '}':
		if s.powerShell {
			s.endCommand(false)
		} else {
			s.add(c)
		}
		s.pos++
	default:
		s.scanText(c)
	}
}

// scanText reads a part of a word.
func (s *shellScanner) scanText(c byte) {
	switch {
	case c == '"':
		s.addQuoted("")
		s.open(quoteFrame, 1)
	case c == '\'':
		s.scanSingleQuoted()
	case c == '@' && s.powerShell && !s.list().inWord && (s.at("@'") || s.at(`@"`)):
		s.addQuoted("")
		s.skipTo("\n"+s.src[s.pos+1:s.pos+2]+"@", len("\n'@"))
	case c == s.escape():
		s.scanEscape()
	case c == '`' && s.list().closer == '`':
		s.close()
		s.pos++
	case !s.expansion():
		s.add(c)
		s.pos++
	}
}

// escape returns the escape character.
func (s *shellScanner) escape() byte {
	if s.powerShell {
		return '`'
	}
	return '\\'
}

// scanEscape reads an escaped character outside quotes. An escaped line break joins the lines. In
// C:\path the backslash is not an escape.
func (s *shellScanner) scanEscape() {
	text := s.list().text
	switch {
	case !s.powerShell && len(text) >= 2 && text[1] == ':' && isLetter(text[0]):
		s.add('\\')
		s.pos++
		return
	case strings.HasPrefix(s.src[s.pos+1:], "\n"):
	case strings.HasPrefix(s.src[s.pos+1:], "\r\n"):
		s.pos++
	default:
		s.addQuoted(s.src[s.pos+1 : min(s.pos+2, len(s.src))])
	}
	s.pos = min(s.pos+2, len(s.src))
}

// scanSingleQuoted reads up to the next single quote.
func (s *shellScanner) scanSingleQuoted() {
	text, _, _ := strings.Cut(s.src[s.pos+1:], "'")
	s.addQuoted(text)
	s.pos = min(s.pos+len(text)+2, len(s.src))
}

// expansion enters a construct that starts with a dollar sign or, in POSIX shells, a backtick. In
// the word, a dollar sign replaces the unknown value. It returns false if no construct starts
// here.
func (s *shellScanner) expansion() bool {
	switch {
	case s.at("$((") && !s.powerShell:
		s.addQuoted("$")
		s.open(arithmeticFrame, 3)
		s.top().depth = 2
	case s.at("$("):
		s.addQuoted("$")
		s.openList(')', 2)
	case s.at("${"):
		s.addQuoted("$")
		s.open(bracesFrame, 2)
	case s.at("`") && !s.powerShell:
		s.addQuoted("$")
		s.openList('`', 1)
	case s.at("$'") && !s.powerShell && s.top().kind != quoteFrame:
		s.addQuoted("")
		s.scanCQuoted()
	default:
		return false
	}
	return true
}

// scanCQuoted reads $'…', in which a backslash escapes.
func (s *shellScanner) scanCQuoted() {
	start := s.pos + 2
	for s.pos = start; s.pos < len(s.src) && s.src[s.pos] != '\''; s.pos++ {
		if s.src[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos = min(s.pos, len(s.src))
	s.addQuoted(s.src[start:s.pos])
	s.pos = min(s.pos+1, len(s.src))
}

func (s *shellScanner) scanQuotation() {
	c := s.src[s.pos]
	switch {
	case c == '"':
		s.close()
		s.pos++
	case c == s.escape():
		s.scanQuotedEscape()
	case !s.expansion():
		s.addQuoted(s.src[s.pos : s.pos+1])
		s.pos++
	}
}

// scanQuotedEscape reads an escape between double quotes. There, a backslash before an ordinary
// character is literal.
func (s *shellScanner) scanQuotedEscape() {
	next := s.src[s.pos+1 : min(s.pos+2, len(s.src))]
	switch {
	case next == "\n":
	case s.powerShell || next != "" && strings.Contains("$`\"\\", next):
		s.addQuoted(next)
	default:
		s.addQuoted(`\` + next)
	}
	s.pos = min(s.pos+2, len(s.src))
}

// scanBraces reads ${…}. Only its end matters.
func (s *shellScanner) scanBraces() {
	c := s.src[s.pos]
	switch {
	case c == '}':
		s.close()
		s.pos++
	case c == '"':
		s.open(quoteFrame, 1)
	case c == '\'' && !s.top().quoted:
		s.scanSingleQuoted()
	case c == s.escape():
		s.pos = min(s.pos+2, len(s.src))
	case !s.expansion():
		s.pos++
	}
}

func (s *shellScanner) scanArithmetic() {
	switch s.src[s.pos] {
	case '(':
		s.top().depth++
	case ')':
		s.top().depth--
		if s.top().depth == 0 {
			s.close()
		}
	}
	s.pos++
}

// scanArray reads name=(…), whose words are not commands.
func (s *shellScanner) scanArray() {
	c := s.src[s.pos]
	switch {
	case c == ')':
		s.close()
		s.pos++
	case c == '"':
		s.open(quoteFrame, 1)
	case c == '\'':
		s.scanSingleQuoted()
	case c == '\\':
		s.pos = min(s.pos+2, len(s.src))
	case !s.expansion():
		s.pos++
	}
}

// scanOperator reads the end of a command. An & that belongs to a redirection does not end it.
func (s *shellScanner) scanOperator() {
	if s.at("&>") {
		s.endWord()
		s.pos++
		return
	}
	s.endCommand(s.at("&&"))
	s.pos++
	if s.pos < len(s.src) && strings.IndexByte("&|;", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *shellScanner) scanParenthesis(c byte) {
	f := s.list()
	switch {
	case c == ')':
		s.endCommand(false)
		if f.closer == ')' {
			s.close()
		}
		s.pos++
	case s.powerShell: // may be a computed argument, which does not end the command
		s.openList(')', 1)
	case f.inWord && f.plain < 0 && f.text[len(f.text)-1] == '=':
		s.open(arrayFrame, 1)
	case s.at("(("):
		s.endCommand(false)
		s.open(arithmeticFrame, 2)
		s.top().depth = 2
	default:
		s.endCommand(false)
		s.openList(')', 1)
	}
}

// skipTo moves to n bytes after the start of the next end, or to the end of the line if there is
// none.
func (s *shellScanner) skipTo(end string, n int) {
	if i := strings.Index(s.src[s.pos:], end); i >= 0 {
		s.pos += i + n
		return
	}
	s.pos = len(s.src)
}
