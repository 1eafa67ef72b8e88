package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/store"
)

// manyBytes is the size of a store from which encrypting it takes more than a second.
const manyBytes = 16 << 20

func encryptCommand(p *Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "encrypt",
		Short: "Encrypt the store on disk",
		Long: `encrypt turns the store into an encrypted one: it makes an encrypted copy, checks
that it holds the same rows, puts it in the place of the plain file and overwrites
every plain copy that cairn made. Interrupted at any point, one complete store
remains. Nobody else may have the store open meanwhile.

The key is 32 bytes, as 64 hex digits or base64. It is taken from CAIRN_KEY, else
from the file that store.key_file in config.toml names, else from the file key in
the data directory, which is made if there is no key at all. Every agent's hooks
and servers must find it in the same way. Keep a copy of it elsewhere: without it
nobody can read the store, cairn included.

An encrypted store is slower to write and to search. Disks may keep old copies of
what is overwritten, above all those without moving parts; what was encrypted from
its first event on never was on them.

The way back: ` + "`cairn export --all --out FILE`" + `, which writes everything readably
into a file, and ` + "`cairn import FILE`" + ` with --db into a new store.`,
		Example: "  cairn encrypt\n  CAIRN_KEY=$(pass show cairn) cairn encrypt",
		Args:    noArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if info, err := os.Stat(c.Path()); err == nil && info.Size() > manyBytes {
				fmt.Fprintf(p.Err, "cairn: encrypting %.0f MB; nothing can be recorded meanwhile\n", float64(info.Size())/1e6)
			}
			e, err := c.Encrypt(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, e)
			}
			return p.printEncryption(e)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p *Process) printEncryption(e cairn.Encryption) error {
	w := p.Out
	if e.Already {
		_, err := fmt.Fprintf(w, "%s is encrypted already\n", e.Store)
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
