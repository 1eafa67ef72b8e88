package words

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
)

// The bounds of a query (contract observations §8.1).
const (
	maxQueryChars = 1000
	maxQueryTerms = 64
)

// Language describes how queries over one full-text table are parsed.
type Language struct {
	Parts  string // the column of parts, or a filter of several: {title body}
	Wholes string // likewise for wholes
	AnyOf  bool   // adjacent terms are alternatives (records §2); else all are required
}

// Parse translates a user's query into an FTS5 MATCH expression over the table (contract
// observations §8.1). SQLite accepts every expression that it returns. The contract
// leaves these details open:
//
//   - Terms without a letter or digit and empty groups are not there at all; what
//     remains decides whether an operator has operands. An operator that has not
//     is an ordinary word; of two in a row the second is, except that AND NOT
//     means NOT.
//   - A quote begins a phrase anywhere, "" inside one means a quote. A *
//     counts if it ends a word and follows a letter or digit, or follows a phrase.
//   - Parentheses inside words are text, and inside a group they are counted, so
//     that (main() OR f(x)) is one group of two words. AND(, OR( and NOT( are
//     operators before a group unless they come first.
//   - The arguments of NEAR are words and phrases; its distance defaults to 10.
//   - A phrase finds its words in a row with the identifiers split, or all in one
//     piece in any case; the latter for sure up to four identifiers.
//   - Adjacent terms bind tightest, then NOT, AND, OR; the expression states its
//     grouping with parentheses.
//
// Errors are of kind Invalid with code "invalid_query": a blank query, one without a
// searchable term, an unbalanced quote or parenthesis, more than 1,000 characters or 64
// terms, or nesting deeper than FTS5 can parse, which needs more than 15 nested NOTs. The
// time is linear in the query.
func (l Language) Parse(q string) (match string, err error) {
	switch {
	case strings.TrimSpace(q) == "":
		return "", invalidQuery("query must not be empty")
	case utf8.RuneCountInString(q) > maxQueryChars:
		return "", invalidQuery("query must not exceed 1000 characters")
	}
	r := queryReader{language: l, query: strings.ToValidUTF8(q, "\uFFFD"), groups: make([]queryGroup, 1)}
	if err := r.read(); err != nil {
		return "", err
	}
	root := &r.groups[0]
	switch {
	case len(r.groups) > 1:
		return "", invalidQuery("query has an unbalanced parenthesis").
			WithHint("close the group, or put the text in double quotes")
	case len(root.items) == 0:
		return "", invalidQuery("query has no searchable term")
	}
	e := r.build(root.items)
	switch {
	case r.terms > maxQueryTerms:
		return "", invalidQuery("query must not exceed 64 terms")
	case e.stack > maxStack:
		return "", invalidQuery("query is nested too deeply")
	}
	var b strings.Builder
	e.write(&b)
	return b.String(), nil
}

func invalidQuery(message string) *fault.Error {
	return fault.New(fault.Invalid, "invalid_query", message)
}

// queryReader reads a query from left to right. groups are the open ones,
// outermost first: groups[0] is the query itself.
type queryReader struct {
	language Language
	query    string
	at       int
	groups   []queryGroup
	terms    int
}

type queryGroup struct {
	items []queryItem
	open  int // parentheses inside words that are still open
}

// queryItem is an operand or, until build decides, an operator.
type queryItem struct {
	expr     matchExpr
	operator string // AND, OR, NOT; "" for an operand
}

func (r *queryReader) read() error {
	for {
		r.skipSpace()
		if r.at == len(r.query) {
			return nil
		}
		group := &r.groups[len(r.groups)-1]
		switch c := r.query[r.at]; {
		case c == '(':
			r.at++
			r.groups = append(r.groups, queryGroup{})
		case c == ')' && r.closesGroup():
			r.at++
			r.closeGroup()
		case strings.HasPrefix(r.query[r.at:], "NEAR("):
			if err := r.readNear(); err != nil {
				return err
			}
		default:
			term, err := r.readTerm(group)
			if err != nil {
				return err
			}
			r.add(term)
		}
	}
}

func (r *queryReader) skipSpace() {
	rest := strings.TrimLeftFunc(r.query[r.at:], unicode.IsSpace)
	r.at = len(r.query) - len(rest)
}

// closesGroup reports whether a closing parenthesis at the present position ends a group.
func (r *queryReader) closesGroup() bool {
	return len(r.groups) > 1 && r.groups[len(r.groups)-1].open == 0
}

func (r *queryReader) closeGroup() {
	inner := r.groups[len(r.groups)-1].items
	r.groups = r.groups[:len(r.groups)-1]
	if len(inner) > 0 {
		r.addOperand(r.build(inner))
	}
}

func (r *queryReader) addOperand(e matchExpr) {
	group := &r.groups[len(r.groups)-1]
	group.items = append(group.items, queryItem{expr: e})
}

// add adds a term to the innermost group if it contains a letter or digit.
func (r *queryReader) add(t searchTerm) {
	group := &r.groups[len(r.groups)-1]
	switch {
	case t.operator != "":
		group.items = append(group.items, queryItem{operator: t.operator})
	case len(t.identifiers) > 0:
		r.terms++
		r.addOperand(t.expr())
	}
}

// readTerm reads a phrase or a word. Without a group parentheses are text.
func (r *queryReader) readTerm(group *queryGroup) (searchTerm, error) {
	if r.query[r.at] != '"' {
		return r.readWord(group), nil
	}
	start := r.at
	end := closingQuote(r.query, start)
	if end < 0 {
		return searchTerm{}, invalidQuery("query has an unbalanced quote").
			WithHint("close the phrase with a double quote, or omit the quote")
	}
	r.at = end + 1
	t := searchTerm{identifiers: Identifiers(r.query[start+1 : end])}
	t.prefix = r.skipStar()
	return t, nil
}

// closingQuote returns the end of the phrase that begins at start, or -1.
func closingQuote(q string, start int) int {
	for i := start + 1; i < len(q); i++ {
		if q[i] != '"' {
			continue
		}
		if i+1 == len(q) || q[i+1] != '"' {
			return i
		}
		i++
	}
	return -1
}

// skipStar skips the star after a phrase. A star after a blank, as in FTS5's own
// examples, must not begin a word.
func (r *queryReader) skipStar() bool {
	rest := r.query[r.at:]
	apart := strings.TrimLeftFunc(rest, unicode.IsSpace)
	after, ok := strings.CutPrefix(apart, "*")
	if !ok {
		return false
	}
	if next, _ := utf8.DecodeRuneInString(after); len(apart) < len(rest) &&
		after != "" && next != ')' && next != '"' && !unicode.IsSpace(next) {
		return false
	}
	r.at = len(r.query) - len(after)
	return true
}

// readWord reads up to white space, a quote or the parenthesis that closes group.
func (r *queryReader) readWord(group *queryGroup) searchTerm {
	start := r.at
scan:
	for i, c := range r.query[start:] {
		r.at = start + i
		switch {
		case unicode.IsSpace(c) || c == '"':
			break scan
		case group == nil:
		case c == '(':
			if isOperator(r.query[start:r.at]) && len(group.items) > 0 {
				break scan
			}
			group.open++
		case c == ')' && r.closesGroup():
			break scan
		case c == ')' && group.open > 0:
			group.open--
		}
		r.at += utf8.RuneLen(c)
	}
	return wordTerm(r.query[start:r.at], group != nil)
}

func wordTerm(text string, mayOperate bool) searchTerm {
	if mayOperate && isOperator(text) {
		return searchTerm{operator: text}
	}
	t := searchTerm{identifiers: Identifiers(text)}
	if stem := strings.TrimRight(text, "*"); len(stem) < len(text) {
		last, _ := utf8.DecodeLastRuneInString(stem)
		t.prefix = classOf(last) != separator || unicode.IsMark(last)
	}
	return t
}

func isOperator(word string) bool { return word == "AND" || word == "OR" || word == "NOT" }

// readNear reads NEAR(word "a phrase" …, distance). With nothing searchable
// inside, NEAR is an ordinary word.
func (r *queryReader) readNear() error {
	const name = "NEAR"
	start := r.at + len(name) + 1
	end, err := closingParenthesis(r.query, start)
	if err != nil {
		return err
	}
	arguments, distance := cutDistance(r.query[start:end])
	inner := queryReader{query: arguments}
	var terms []searchTerm
	for inner.skipSpace(); inner.at < len(arguments); inner.skipSpace() {
		t, err := inner.readTerm(nil)
		if err != nil {
			return err
		}
		if len(t.identifiers) > 0 {
			terms = append(terms, t)
		}
	}
	r.at = end + 1
	switch len(terms) {
	case 0:
		r.add(searchTerm{identifiers: Identifiers(name)})
	case 1:
		r.add(terms[0])
	default:
		r.terms += len(terms)
		r.addOperand(r.language.nearExpr(terms, distance))
	}
	return nil
}

// closingParenthesis returns the position that closes the parenthesis opened just before
// start. It counts nested parentheses and ignores those in phrases.
func closingParenthesis(q string, start int) (int, error) {
	depth := 0
	for i := start; i < len(q); i++ {
		switch q[i] {
		case '"':
			end := closingQuote(q, i)
			if end < 0 {
				return 0, invalidQuery("query has an unbalanced quote")
			}
			i = end
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i, nil
			}
			depth--
		}
	}
	return 0, invalidQuery("query has an unbalanced parenthesis")
}

// cutDistance removes a final ", N" from the arguments of NEAR.
func cutDistance(arguments string) (rest string, distance int) {
	const normal = 10
	comma := strings.LastIndexByte(arguments, ',')
	if comma < 0 {
		return arguments, normal
	}
	number := strings.TrimSpace(arguments[comma+1:])
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return arguments, normal
	}
	distance, err := strconv.Atoi(number)
	if err != nil {
		distance = math.MaxInt32
	}
	return arguments[:comma], distance
}

// build decides which operators have operands and joins the items, at least one, by
// precedence.
func (r *queryReader) build(items []queryItem) matchExpr {
	var ors, ands, nots, adjacent []matchExpr
	together := "AND"
	if r.language.AnyOf {
		together = "OR"
	}
	endNot := func() { nots, adjacent = append(nots, joined(together, adjacent)), nil }
	endAnd := func() { endNot(); ands, nots = append(ands, joined("NOT", nots)), nil }
	endOr := func() { endAnd(); ors, ands = append(ors, joined("AND", ands)), nil }
	for i := 0; i < len(items); i++ {
		operator, following := items[i].operator, len(items)-i-1
		if operator == "AND" && following > 1 && items[i+1].operator == "NOT" && len(adjacent) > 0 {
			i++
			operator = "NOT"
		}
		switch {
		case operator == "":
			adjacent = append(adjacent, items[i].expr)
		case len(adjacent) == 0 || following == 0:
			r.terms++
			adjacent = append(adjacent, searchTerm{identifiers: Identifiers(operator)}.expr())
		case operator == "NOT":
			endNot()
		case operator == "AND":
			endAnd()
		default:
			endOr()
		}
	}
	endOr()
	return joined("OR", ors)
}

// matchExpr is a part of a MATCH expression: a leaf, or an operator with two or
// more operands.
type matchExpr struct {
	leaf     string
	operator string
	operands []matchExpr
	stack    int // maximum number of symbols on the stack of FTS5's parser
}

// FTS5's parser has a stack of 100 symbols. A leaf takes at most 8.
const (
	maxStack  = 90
	leafStack = 8
)

func leaf(text string) matchExpr { return matchExpr{leaf: text, stack: leafStack} }

// joined applies an operator to all operands; a single operand is returned unchanged. If
// the order does not matter, the deepest operand comes first, because FTS5 keeps
// everything before a parenthesis on its stack until it closes.
func joined(operator string, operands []matchExpr) matchExpr {
	if len(operands) == 1 {
		return operands[0]
	}
	if operator != "NOT" {
		slices.SortStableFunc(operands, func(a, b matchExpr) int { return b.stack - a.stack })
	}
	e := matchExpr{operator: operator, operands: operands}
	for i, o := range operands {
		need := o.stack
		if o.operator != "" {
			need++
		}
		if i > 0 {
			need += 2
		}
		e.stack = max(e.stack, need)
	}
	return e
}

func (e matchExpr) write(b *strings.Builder) {
	if e.operator == "" {
		b.WriteString(e.leaf)
		return
	}
	for i, o := range e.operands {
		if i > 0 {
			b.WriteString(" " + e.operator + " ")
		}
		if o.operator == "" {
			b.WriteString(o.leaf)
			continue
		}
		b.WriteByte('(')
		o.write(b)
		b.WriteByte(')')
	}
}
