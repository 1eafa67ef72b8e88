package continuity

import (
	"slices"
	"strings"
)

// section is one section of an injected text.
type section struct {
	name, text string
	files      []string // files that the section names
}

// Section is the cost and the named files of one section of an injected text.
type Section struct {
	Name    string   `json:"name"`
	Tokens  int      `json:"tokens"`
	Named   []string `json:"named"` // distinct files
	Edited  []string `json:"hits_edited"`
	Touched []string `json:"hits_touched"`
}

// Sections whose headings differ between sessions.
const (
	headSection  = "head"  // the lines before the first heading
	tableSection = "table" // the project's observations
)

// splitSections splits an injected text at its headings. The section of the project, whose
// heading is the project's id, is called table.
func splitSections(text string) (list []section) {
	for i, part := range strings.Split("\n"+text, "\n## ") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, body, _ := strings.Cut(part, "\n")
		switch {
		case i == 0:
			name, body = headSection, part
		case strings.HasPrefix(body, "| ID |") && name != "Pinned":
			name = tableSection
		}
		list = append(list, section{name: name, text: "## " + body})
	}
	return list
}

func (m *Moment) section(s section) Section {
	out := Section{Name: s.name, Tokens: (len(s.name) + len(s.text) + 2) / 4, Named: []string{}}
	for _, file := range s.files {
		if !slices.Contains(out.Named, file) {
			out.Named = append(out.Named, file)
		}
	}
	out.Edited, out.Touched = m.Edited.hits(out.Named), m.Touched.hits(out.Named)
	return out
}

// SectionFigure summarises one section over the texts of a period and moment.
type SectionFigure struct {
	Period    string  `json:"period"`
	When      string  `json:"when"`
	Name      string  `json:"name"`
	Shown     int     `json:"shown"`     // number of texts with the section
	Tokens    float64 `json:"tokens"`    // mean over these texts
	Files     float64 `json:"files"`     // named files, mean over these texts
	Precision float64 `json:"precision"` // share of the named files that the session touched
}

// sectionFigures summarises the sections in the order in which they first appear.
func sectionFigures(sessions []Session, spans []period) (out []SectionFigure) {
	for _, p := range spans {
		for _, when := range []string{atStart, atPrompt} {
			var list []*SectionFigure
			hits := map[string]int{}
			for i := range sessions {
				m := sessions[i].moment(when)
				if m == nil || !p.holds(sessions[i].Start) {
					continue
				}
				for _, s := range m.Sections {
					k := slices.IndexFunc(list, func(f *SectionFigure) bool { return f.Name == s.Name })
					if k < 0 {
						k = len(list)
						list = append(list, &SectionFigure{Period: p.name, When: when, Name: s.Name})
					}
					f := list[k]
					f.Shown++
					f.Tokens += float64(s.Tokens)
					f.Files += float64(len(s.Named))
					hits[s.Name] += len(s.Touched)
				}
			}
			for _, f := range list {
				if f.Files > 0 {
					f.Precision = float64(hits[f.Name]) / f.Files
				}
				f.Tokens, f.Files = share(f.Tokens, f.Shown), share(f.Files, f.Shown)
				out = append(out, *f)
			}
		}
	}
	return out
}
