package cairn

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// key looks at the key of the store and returns it if the store is encrypted and
// the key is its own. Only a key that its place does not give up, or that is the
// wrong one, is a problem: a plain store needs none (observations §11.4).
func (d *diagnosing) key() []byte {
	config := d.config
	config.Cwd = "" // a repository's settings have no part in it
	c, err := Open(config)
	if err != nil {
		if encrypted, lerr := store.LooksEncrypted(d.config.DB); lerr == nil && encrypted {
			d.encrypted = true
			d.unknown("key", err)
		}
		return nil
	}
	k, err := c.KeyState()
	if err != nil {
		d.unknown("key", err)
		return nil
	}
	d.encrypted = k.State != KeyPlain
	if d.encrypted && k.Place != keyVariable {
		d.keyFile = k.Place
	}
	switch {
	case !d.encrypted:
		d.add("key", CheckOK, "the store is not encrypted", "", "")
	case k.State != KeyFits:
		d.add("key", CheckProblem, k.Why, "nothing can be read or recorded", "put the store's key there; "+store.KeyPlaces)
	case k.Place == keyVariable:
		d.add("key", CheckOK, "the key in CAIRN_KEY fits the encrypted store; agents need it in their environment too", "", "")
	default:
		d.add("key", CheckOK, "the key in "+k.Place+" fits the encrypted store", "", "")
	}
	if k.State != KeyFits {
		return nil
	}
	found, err := c.findKey(k.Place)
	if err != nil {
		d.unknown("key", err)
	}
	return found.Bytes
}

// encryptedSchema is schema for a store whose file tells nothing without its key.
// failed is why it could not be opened.
func (d *diagnosing) encryptedSchema(ctx context.Context, s *store.Store, failed error) {
	if fault.HasCode(failed, store.CodeNewer) {
		d.add("schema", CheckProblem, errorText(failed), "it is refused, for reading too", "upgrade cairn")
	}
	if failed != nil {
		return
	}
	found, known, err := s.SchemaNumbers(ctx)
	d.addSchema(found, known, err)
}
