package carecmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// manyBytes is the size from which encrypting a store takes more than a second.
const manyBytes = 16 << 20

func encryptCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "encrypt",
		Short: "Encrypt the store on disk",
		Long: `encrypt encrypts the store. It creates an encrypted copy, checks that it has the same
rows, replaces the plain file by it and overwrites every plain copy that cairn made.
If it is interrupted, one complete store remains. No other process may have the store
open while it runs.

The key is 32 bytes, as 64 hex digits or base64. It is taken from CAIRN_KEY, else
from the file that store.key_file in config.toml names, else from the file key in
the data directory, which is created if there is no key. Every agent's hooks and
servers must find it in the same place. Keep a copy of it elsewhere: without the key
the store cannot be read, not even by cairn.

An encrypted store is slower to write and to search, and its hooks take some
milliseconds longer. A disk, above all an SSD, may keep old copies of data that was
overwritten. A store that is encrypted before its first event leaves none.

To decrypt, run ` + "`cairn export --all --out FILE`" + `, which writes everything in plain
text, then ` + "`cairn import FILE`" + ` with --db into a new store.`,
		Example: "  cairn encrypt\n  CAIRN_KEY=$(pass show cairn) cairn encrypt",
		Args:    command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if info, err := os.Stat(c.Path()); err == nil && info.Size() > manyBytes {
				fmt.Fprintf(p.Err, "cairn: encrypting %.0f MB; nothing can be recorded meanwhile\n", float64(info.Size())/1e6)
			}
			e, err := c.Encrypt(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, e)
			}
			return printEncryption(p, e)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printEncryption(p *command.Process, e workspace.Encryption) error {
	w := p.Out
	if e.Already {
		_, err := fmt.Fprintf(w, "%s is already encrypted\n", e.Store)
		return err
	}
	fmt.Fprintf(w, "encrypted  %s: %d rows in %d tables, %.1f MB\n", e.Store, e.Rows, e.Tables, float64(e.Bytes)/1e6)
	for _, name := range e.Destroyed {
		fmt.Fprintf(w, "destroyed  %s\n", name)
	}
	for _, name := range e.Left {
		fmt.Fprintf(w, "left       %s: a plain database that cairn did not make\n", name)
	}
	made := ""
	if e.KeyMade {
		made = ", made just now"
	}
	_, err := fmt.Fprintf(w, "key        %s%s; keep a copy of it elsewhere\n", e.Key, made)
	return err
}
