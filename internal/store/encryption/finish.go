package encryption

import (
	"context"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/store/locks"
)

// Finish reports whether the store at a path is encrypted. Without any encryption it
// costs one failed open. It first finishes or undoes an interrupted Encrypt, and waits
// for a running one. Afterwards exactly one complete store exists; if that is the plain
// one, the result is false.
//
// Errors: CodeBusy while an Encrypt runs, CodeReadOnly and CodeFull if an interrupted
// Encrypt cannot be finished.
func Finish(ctx context.Context, path string, wait time.Duration) (bool, error) {
	if !disk.Exists(path + disk.CipherSuffix) {
		return false, nil
	}
	plain, err := disk.IsPlain(path)
	if err != nil {
		return false, store.Explain(err)
	}
	if !plain && !disk.Exists(path+disk.EncryptedSuffix) {
		return true, nil
	}
	if wait == 0 {
		wait = 5 * time.Second
	}
	line := locks.NewFair(path)
	defer line.Leave()
	if err := line.Enter(ctx, time.Now().Add(wait)); err != nil {
		return false, store.Explain(err)
	}
	plain, err = finishEncrypt(path)
	return !plain, store.Explain(err)
}

// finishEncrypt ends an interrupted Encrypt. The caller must hold the writers' lock. It
// undoes the encryption if the plain file is untouched, else it completes it. It reports
// whether the store is plain.
func finishEncrypt(path string) (plain bool, err error) {
	if !disk.Exists(path + disk.CipherSuffix) {
		return true, nil // another process was faster
	}
	if plain, err = disk.IsPlain(path); err != nil {
		return plain, err
	}
	if plain {
		return true, disk.RemoveAll(path+disk.EncryptingSuffix, path+disk.EncryptedSuffix, path+disk.CipherSuffix)
	}
	if disk.Exists(path + disk.EncryptedSuffix) {
		if err := takeOver(path); err != nil {
			return false, err
		}
		_, _, err := takenOver(path)
		return false, err
	}
	return false, disk.RemoveAll(path + disk.EncryptingSuffix)
}
