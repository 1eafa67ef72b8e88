//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user that the server runs as; nil for this one.
type owner struct{ credential *syscall.Credential }

// newOwner gives dir to a user that is not root.
func newOwner(dir string) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.Atoi(u.Uid)
		gid, gerr := strconv.Atoi(u.Gid)
		if uerr != nil || gerr != nil {
			continue
		}
		return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, uid, gid)
	}
	return owner{}, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

func (o owner) apply(cmd *exec.Cmd) {
	if o.credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	}
}
