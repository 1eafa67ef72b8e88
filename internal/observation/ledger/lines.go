package ledger

// Injection is what a new session is told.
type Injection struct {
	Text   string // Markdown that ends in a newline; "" if there is nothing to say
	Tokens int    // ceil(bytes / 4)
	Items  []Item // the rows that Text shows, in its order
}

// Rows returns the number of observations that the tables show, pinned rows included.
func (c *Injection) Rows() (n int) {
	for _, i := range c.Items {
		switch i.Section {
		case SectionPinned, SectionLocal, SectionCross:
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
	SectionPinned  = "pinned"
	SectionDigest  = "digest"
	SectionWishes  = "wishes"
	SectionIntents = "intents"
	SectionChecks  = "checks"
	SectionLocal   = "local"
	SectionLikely  = "likely" // files
	SectionCross   = "cross"
	SectionRelated = "related" // to a prompt
	SectionFile    = "file"
	SectionCommand = "command"
)

// Line is one row as a line, or several rows that share one.
type Line struct {
	ID   int64
	Text string
	File string  // of the builder's project that the row is about, "" for none
	Also []int64 // further rows that the line tells of
}

// Items are the rows of a line for the ledger; they share its tokens.
func (r Line) Items(section string, cost int) []Item {
	ids := append([]int64{r.ID}, r.Also...)
	items := make([]Item, len(ids))
	for i, id := range ids {
		items[i] = Item{section, id, cost*(i+1)/len(ids) - cost*i/len(ids)}
	}
	return items
}

const (
	MaxCell = 60 // characters of a summary
)
