package mail

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"sync"
)

const tokenBytes = 32

// Keyring holds the hashes of the tokens that were issued or shown in one stdio
// process, where one client alone can call (mail §4). The zero Keyring is empty and
// ready; it may be used by several goroutines.
type Keyring struct {
	mu    sync.Mutex
	known map[string]bool // SHA-256 in hexadecimal digits
}

func (k *Keyring) add(hash string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]bool{}
	}
	k.known[hash] = true
}

func (k *Keyring) has(hash string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[hash]
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// isProtected reports whether acting as an agent needs its token.
func (o *Service) isProtected(a *Agent) bool {
	switch o.config.Tokens {
	case TokensOff:
		return false
	case TokensEnforced:
		return true
	}
	return a.TokenSHA256 != nil
}

// checkToken refuses whoever may not act as an agent.
func (s *callTx) checkToken(a *Agent) error {
	if s.caller.Owner || !s.isProtected(a) {
		return nil
	}
	denied := problemf(CodeDenied, "agent %s is protected: its registration_token is needed", quoted(a.Name)).with("agent", a.Name)
	if a.TokenSHA256 == nil {
		return denied.hint("it has no token yet; the owner of the store gives it one with `cairn agents token`")
	}
	given := s.caller.Token
	if given == "" {
		given = s.caller.HeaderToken
	}
	switch hash := tokenHash(given); {
	case given == "" && s.caller.Keyring.has(*a.TokenSHA256):
		return nil
	case given != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(*a.TokenSHA256)) == 1:
		s.caller.Keyring.add(hash)
		return nil
	}
	return denied.hint("pass the registration_token that registering returned; `cairn agents token` makes a new one")
}

// newToken gives an agent a token, of which only the hash is kept.
func (s *callTx) newToken(a *Agent) (token string) {
	var b [tokenBytes]byte
	rand.Read(b[:])
	token = base64.RawURLEncoding.EncodeToString(b[:])
	hash := tokenHash(token)
	a.TokenSHA256 = &hash
	s.caller.Keyring.add(hash)
	return token
}
