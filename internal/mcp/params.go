package mcp

import "slices"

// Parameters as the tables of tools write them: must("paths", "…").of(Strings).

func must(name, about string) Param { return Param{Name: name, Required: true, Description: about} }
func may(name, about string) Param  { return Param{Name: name, Description: about} }

func (p Param) of(kind Kind) Param          { p.Kind = kind; return p }
func (p Param) or(aliases ...string) Param  { p.Aliases = aliases; return p }
func (p Param) among(words ...string) Param { p.Enum = words; return p }
func (p Param) by(standard any) Param       { p.Default = standard; return p }
func (p Param) least(n int) Param           { p.Minimum = &n; return p }
func (p Param) most(n int) Param            { p.Maximum = &n; return p }

func (p Param) optional() Param { p.Required = false; return p }

// lean tells p in the small surface, with brief as its description.
func (p Param) lean(brief string) Param { p.Lean, p.Brief = true, brief; return p }

func params(all ...Param) []Param { return all }

func and(some []Param, more ...Param) []Param { return slices.Concat(some, more) }

// momentParam is the parameter of tools that also answer about the past.
func momentParam() Param {
	return may("at", "Shows it as it was: at a time (RFC 3339, yesterday 14:00, 2h ago; without a zone in cairn's own) or at #N, a position in the change log.")
}

// flag is a boolean that is false when it is left out.
func flag(name, about string) Param { return may(name, about).of(Boolean).by(false) }

// setting is a boolean that is true when it is left out.
func setting(name, about string) Param { return may(name, about).of(Boolean).by(true) }

// count is a whole number.
func count(name string, standard int, about string) Param {
	return may(name, about).of(Integer).by(standard)
}

// untold are parameters that are taken and that no definition has.
func untold(kind Kind, names ...string) []Param {
	all := make([]Param, len(names))
	for i, name := range names {
		all[i] = Param{Name: name, Kind: kind, untold: true}
	}
	return all
}
