package ledger

// Injection is the context for a new session.
type Injection struct {
	Text   string // Markdown that ends in a newline; "" if there is no context
	Tokens int    // ceil(bytes / 4)
	Items  []Item // the rows that Text shows, in its order
}

// Rows returns the number of observations in the tables, including pinned rows.
func (c *Injection) Rows() (n int) {
	for _, i := range c.Items {
		switch i.Section {
		case SectionPinned, SectionLocal, SectionCross:
			n++
		}
	}
	return n
}

// Item is one row shown in an injected text.
type Item struct {
	Section     string // a Section constant; related, file and command only occur during a session
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

// Line is one line of text for one row, or for several rows that share it.
type Line struct {
	ID   int64
	Text string
	File string  // the row's file in the builder's project, "" for none
	Also []int64 // further rows that the line covers
}

// Items returns the rows of a line as ledger items, which share its tokens (cost).
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
