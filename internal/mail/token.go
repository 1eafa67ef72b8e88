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

// Keyring holds the hashes of the tokens that were issued or presented in one stdio process,
// which has a single client (mail §4). The zero Keyring is empty and ready to use. It is safe
// for concurrent use.
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

// IsProtected reports whether acting as an agent requires its token.
func (o *Kernel) IsProtected(a *Agent) bool {
	switch o.Config.Tokens {
	case TokensOff:
		return false
	case TokensEnforced:
		return true
	}
	return a.TokenSHA256 != nil
}

// CheckToken returns CAPABILITY_DENIED if the caller may not act as an agent.
func (s *CallTx) CheckToken(a *Agent) error {
	if s.Caller.Owner || !s.IsProtected(a) {
		return nil
	}
	denied := Errorf(CodeDenied, "agent %s is protected: its registration_token is needed", Quoted(a.Name)).With("agent", a.Name)
	if a.TokenSHA256 == nil {
		return denied.Hint("it has no token yet; the owner of the store gives it one with `cairn agents token`")
	}
	given := s.Caller.Token
	if given == "" {
		given = s.Caller.HeaderToken
	}
	switch hash := tokenHash(given); {
	case given == "" && s.Caller.Keyring.has(*a.TokenSHA256):
		return nil
	case given != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(*a.TokenSHA256)) == 1:
		s.Caller.Keyring.add(hash)
		return nil
	}
	return denied.Hint("pass the registration_token that registering returned; `cairn agents token` makes a new one")
}

// NewToken gives an agent a new token and returns it. Only its hash is stored.
func (s *CallTx) NewToken(a *Agent) (token string) {
	var b [tokenBytes]byte
	rand.Read(b[:])
	token = base64.RawURLEncoding.EncodeToString(b[:])
	hash := tokenHash(token)
	a.TokenSHA256 = &hash
	s.Caller.Keyring.add(hash)
	return token
}
