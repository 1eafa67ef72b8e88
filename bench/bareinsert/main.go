// Command bareinsert stores the start of its standard input as one row of a plain SQLite table.
// This is the minimum cost of a hook that stores anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"cairn/bench/baresqlite"
)

// kept is the mean number of input bytes in a cairn row.
const kept = 400

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "bareinsert:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader) (err error) {
	if len(args) != 1 {
		return errors.New("takes the path of a database file")
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	t, err := baresqlite.Open(ctx, args[0], false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return t.Insert(ctx, string(text[:min(len(text), kept)]))
}
