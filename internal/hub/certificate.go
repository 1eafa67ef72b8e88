package hub

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
)

// TLS returns a configuration with the certificate and key in two PEM files. Because
// certificates are renewed while a hub runs, changed files are read again. Invalid new files
// are ignored. Errors: Invalid with code usage for files without a valid pair.
func TLS(certFile, keyFile string) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if _, err := c.current(nil); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, database.CodeUsage, "the certificate cannot be used: "+err.Error()).
			WithHint("--tls-cert and --tls-key name PEM files that belong together")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.current}, nil
}

type certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the certificate's file, when it was loaded
}

func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && info.ModTime().Equal(c.changed) {
		return c.loaded, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err == nil {
			c.loaded, c.changed = &pair, info.ModTime()
		}
	}
	if c.loaded != nil {
		return c.loaded, nil
	}
	return nil, err
}
