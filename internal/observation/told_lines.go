package observation

// Context is what a new session is told.
type Context struct {
	Text   string // Markdown that ends in a newline; "" if there is nothing to say
	Tokens int    // ceil(bytes / 4)
	Items  []Item // the rows that Text shows, in its order
}

// Rows returns the number of observations that the tables show, pinned rows included.
func (c *Context) Rows() (n int) {
	for _, i := range c.Items {
		switch i.Section {
		case sectionPinned, sectionLocal, sectionCross:
			n++
		}
	}
	return n
}

// Item is one row that a text shows.
type Item struct {
	Section     string // pinned, digest, wishes, intents, checks, local, likely or cross; related, file or command in the middle of a session
	Observation int64
	Tokens      int // of its lines
}

const (
	sectionPinned  = "pinned"
	sectionDigest  = "digest"
	sectionWishes  = "wishes"
	sectionIntents = "intents"
	sectionChecks  = "checks"
	sectionLocal   = "local"
	sectionLikely  = "likely" // files
	sectionCross   = "cross"
	sectionRelated = "related" // to a prompt
	sectionFile    = "file"
	sectionCommand = "command"
)

// contextRow is one row as a line, or several rows that share one.
type contextRow struct {
	id   int64
	line string
	file string  // of the builder's project that the row is about, "" for none
	also []int64 // further rows that the line tells of
}

// items are the rows of a line for the ledger; they share its tokens.
func (r contextRow) items(section string, cost int) []Item {
	ids := append([]int64{r.id}, r.also...)
	items := make([]Item, len(ids))
	for i, id := range ids {
		items[i] = Item{section, id, cost*(i+1)/len(ids) - cost*i/len(ids)}
	}
	return items
}

const (
	maxCell = 60 // characters of a summary
)
