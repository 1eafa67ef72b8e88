package command

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// HubDatabase returns the address of the hub's database: the one that a flag names, else that of the
// settings, else a file in the data directory.
func (p *Process) HubDatabase(cmd *cobra.Command, named string) (string, error) {
	if named == "" {
		named = p.Setting("hub.database")
	}
	if named != "" {
		return named, nil
	}
	config, err := p.Config(cmd)
	return "sqlite:" + filepath.Join(config.Dir, "hub.db"), err
}
