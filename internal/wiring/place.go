package wiring

import (
	"cmp"
	"os"

	"cairn/internal/harness"
)

// Harnesses lists the harnesses that can be wired, by the names that `record --from`
// takes, in the order in which they are shown.
func Harnesses() []string { return harness.Names() }

// Title returns a harness's name for people.
func Title(name string) string {
	if h, ok := harness.Of(name); ok {
		return h.Title
	}
	return name
}

// Paths says where the harnesses and cairn are. It is read from the environment
// by the command line.
type Paths struct {
	Home    string              // the user's home directory
	Getenv  func(string) string // the environment, which may move harnesses' folders; nil for an empty one
	DataDir string              // cairn's data directory
	Path    string              // PATH, where programs are looked for
	Program string              // the absolute path by which agents call cairn; see Program
	Hook    string              // the absolute path of the program that hooks call, "" for Program; see HookProgram
	Windows bool                // whether shells and paths are those of Windows
}

// hook returns the program that hooks call.
func (p Paths) hook() string { return cmp.Or(p.Hook, p.Program) }

func (p Paths) homes() harness.Homes { return harness.Homes{User: p.Home, Getenv: p.Getenv} }

// Folder is where a harness keeps its user-level settings, "" for one that cairn does
// not know.
func (p Paths) Folder(name string) string {
	h, ok := harness.Of(name)
	if !ok {
		return ""
	}
	return h.Folder(p.homes())
}

// Found reports whether a harness's folder is there.
func (p Paths) Found(name string) bool {
	info, err := os.Stat(p.Folder(name))
	return err == nil && info.IsDir()
}
