package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"cairn/internal/store"
	"cairn/internal/store/disk"
)

// checkKey checks the key of an encrypted store. Without a matching key the content of the
// store is not checked.
func (d *doctorRun) checkKey() {
	k, err := d.subject.Key()
	if err != nil {
		d.storeUnreadable = true
		d.unknown("key", err)
		return
	}
	d.key = k.Bytes
	switch {
	case k.Why != "":
		d.storeUnreadable = true
		d.add("key", Problem, k.Why, "the store is not damaged, but nothing can be read or recorded without its key", store.KeyPlaces)
		return
	case !k.Wide && k.Bytes != nil:
		d.add("key", OK, "the store is encrypted, and the key in "+k.Place+" fits", "", "")
	case !k.Wide:
		d.add("key", OK, "the store is not encrypted", "", "")
	default:
		d.wideKey(k.Place)
	}
}

// wideKey reports a key that other users can read.
func (d *doctorRun) wideKey(place string) {
	d.keyAt = place
	info, err := os.Stat(place)
	if err != nil {
		d.unknown("key", err)
		return
	}
	d.add("key", Problem, fmt.Sprintf("%s is %03o, not 600", place, info.Mode().Perm()),
		"other users of this machine can read the key", "run `cairn doctor --fix`")
	if d.args.Fix {
		d.fixRights([]tooOpen{{place, info.Mode(), 0o600}})
	}
}

// encryption reports an unfinished encryption. It reads the store's file, so the store must
// not be open yet.
func (d *doctorRun) encryption() {
	files, ferr := disk.Files(d.subject.DB)
	encrypted, err := store.LooksEncrypted(d.subject.DB)
	if err := errors.Join(ferr, err); err != nil {
		d.unknown("encryption", err)
		return
	}
	if slices.ContainsFunc(files, func(f disk.File) bool {
		return f.Role == disk.Encrypting || f.Role == disk.KeyCheck && !encrypted
	}) {
		d.add("encryption", Problem, "an encryption of the store is running or was interrupted",
			"until it is complete, the data is stored in plain text",
			"if none is running, run any other command, for instance `cairn status`, which completes or undoes it")
	}
}
