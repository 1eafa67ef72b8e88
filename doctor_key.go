package cairn

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"cairn/internal/store"
)

// keyed checks the key of an encrypted store. Without one that fits, nothing of
// what the store holds is looked at.
func (d *diagnosing) keyed(c *Cairn) {
	k, key, err := c.keyState()
	if err != nil {
		d.unread = true
		d.unknown("key", err)
		return
	}
	d.key = key
	switch k.State {
	case KeyPlain:
		d.add("key", CheckOK, "the store is not encrypted", "", "")
	case KeyFits:
		d.add("key", CheckOK, "the store is encrypted, and the key in "+k.Place+" fits", "", "")
	default:
		d.unread = true
		d.add("key", CheckProblem, k.Why, "the store is not damaged, but nothing can be read or recorded without its key", store.KeyPlaces)
		return
	}
	if !k.Wide {
		return
	}
	d.keyAt = k.Place
	d.Checks = d.Checks[:len(d.Checks)-1]
	info, err := os.Stat(k.Place)
	if err != nil {
		d.unknown("key", err)
		return
	}
	d.add("key", CheckProblem, fmt.Sprintf("%s is %03o, not 600", k.Place, info.Mode().Perm()),
		"other users of this machine can read the key", "run `cairn doctor --fix`")
	if d.args.Fix {
		d.fixRights([]tooOpen{{k.Place, info.Mode(), 0o600}})
	}
}

// encryption says that one has not come to its end. It reads the store's file, so
// the store must not be open yet.
func (d *diagnosing) encryption() {
	files, ferr := store.Files(d.config.DB)
	encrypted, err := store.LooksEncrypted(d.config.DB)
	if err := errors.Join(ferr, err); err != nil {
		d.unknown("encryption", err)
		return
	}
	if slices.ContainsFunc(files, func(f store.File) bool {
		return f.Role == store.Encrypting || f.Role == store.KeyCheck && !encrypted
	}) {
		d.add("encryption", CheckProblem, "an encryption of the store is under way, or was interrupted",
			"until its end what is stored lies there in plain",
			"if none is running, run any other command, for instance `cairn status`, which completes or undoes it")
	}
}
