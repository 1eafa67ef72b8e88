package wiring

import (
	"cmp"
	"os"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
)

// Harnesses lists the supported harnesses in display order, by the names that `record --from`
// accepts.
func Harnesses() []string { return harnesses.Names() }

// Title returns a harness's display name.
func Title(name string) string {
	if h, ok := harnesses.Of(name); ok {
		return h.Title
	}
	return name
}

// Paths contains the locations of the harnesses and of cairn. The command line reads them from
// the environment.
type Paths struct {
	Home    string              // the user's home directory
	Getenv  func(string) string // the environment, which can move harnesses' folders; nil for an empty one
	DataDir string              // cairn's data directory
	Path    string              // PATH, to find programs
	Program string              // absolute path of cairn for agents to call; see Program
	Hook    string              // absolute path of the program that hooks call, "" for Program; see HookProgram
	Windows bool                // shells and paths are those of Windows
}

// hook returns the program that hooks call.
func (p Paths) hook() string { return cmp.Or(p.Hook, p.Program) }

func (p Paths) homes() harness.Homes { return harness.Homes{User: p.Home, Getenv: p.Getenv} }

// Folder returns the folder of a harness's user-level settings, "" for an unknown harness.
func (p Paths) Folder(name string) string {
	h, ok := harnesses.Of(name)
	if !ok {
		return ""
	}
	return h.Folder(p.homes())
}

// Found reports whether a harness's folder exists.
func (p Paths) Found(name string) bool {
	info, err := os.Stat(p.Folder(name))
	return err == nil && info.IsDir()
}
