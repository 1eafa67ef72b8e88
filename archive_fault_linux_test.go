package cairn

import (
	"os"
	"syscall"
	"testing"

	"cairn/internal/mail"
)

// TestAReadOnlyOrFullArchiveDelaysNobody mounts a small volume for the archive.
func TestAReadOnlyOrFullArchiveDelaysNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fault, repair func(m *mailed) error }{
		"read-only": {
			fault: func(m *mailed) error {
				return syscall.Mount("", m.ArchiveDir(), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
			},
			repair: func(m *mailed) error { return syscall.Mount("", m.ArchiveDir(), "", syscall.MS_REMOUNT, "") },
		},
		"full": {
			fault:  func(m *mailed) error { return fillUp(m.ArchiveDir() + "/.filler") },
			repair: func(m *mailed) error { return os.Remove(m.ArchiveDir() + "/.filler") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailed(t)
			if err := os.WriteFile(m.dir+"/config.toml", []byte("[disk]\ncritical_mb = 0\nfatal_mb = 0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(m.ArchiveDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("cairn", m.ArchiveDir(), "tmpfs", 0, "size=4m,mode=0700"); err != nil {
				t.Skip("cannot mount a small file system: ", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(m.ArchiveDir(), syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			m = &mailed{home: home{Cairn: opened(t, m.config), t: t, dir: m.dir}, office: m.office, log: m.log}
			m.populate("shop")
			m.sync()
			if err := c.fault(m); err != nil {
				t.Fatal(err)
			}
			m.follow()
			m.send("shop", mail.SendArgs{To: []string{"BlueDog"}, Subject: "meanwhile"})
			within(t, patience, "metrics rise", func() bool {
				got := m.metrics()
				return got.NeedsReindex > 0 && got.WriteErrors+got.CommitErrors > 0
			})
			if err := c.repair(m); err != nil {
				t.Fatal(err)
			}
			within(t, patience, "the archive catches up by itself", func() bool {
				return m.archived("shop", "meanwhile") && m.metrics().NeedsReindex == 0
			})
			m.agrees("shop")
		})
	}
}

// fillUp leaves no room on a volume.
func fillUp(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	return nil
}
