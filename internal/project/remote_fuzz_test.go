package project

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// checkRemoteKey tests what holds for every key that NormalizeRemote returns.
func checkRemoteKey(t *testing.T, address, key string) {
	t.Helper()
	if strings.ContainsFunc(key, unicode.IsControl) || !utf8.ValidString(key) {
		t.Errorf("%q: control characters or broken bytes in %q", address, key)
	}
	if len(key) > 4*maxOrigin {
		t.Errorf("%.100q: a key of %d bytes", address, len(key))
	}
	if key == "" || strings.HasPrefix(key, pathKind) {
		return
	}
	host, path, _ := strings.Cut(key, "/")
	if host == "" || path == "" || strings.ContainsAny(host, "@ ") || host != strings.ToLower(host) {
		t.Errorf("%q: the host is %q in %q", address, host, key)
	}
	if again := NormalizeRemote("https://"+key, ""); again != key {
		t.Errorf("%q: %q, then %q", address, key, again)
	}
}

// For any address, the key is stable, limited in length and has no control characters.
func FuzzNormalizeRemote(f *testing.F) {
	for _, seed := range []string{
		"", "https://github.com/Acme/shop.git/", "git@github.com:Acme/shop.git", "ssh://git@GitHub.com:22/Acme/shop", "[git.local:2222]:a/b", "git@[::1]:a",
		"https://[::1]:8443/a", "https://[fe80::1%25eth0]/a", "https://h/a%00b", "https://h/a%0ab", "https://h/%ff", "https://h/My%20Project/c%23", "git@h:My%20Project/c#",
		"https://h/a%2Fb", "https://h/a%3Fb?x=y#z", "https://h/a%25b", "h:a%zz", "https://h/a .git/ ", "https://h/...git", "https://h/..git", "https://h/a/.git", "https://h/a%20.git",
		"file:///srv/a%00.git", "file:///srv/a%ff", "/srv/git/a.git", "../a", "a<b:c", `C:\git\a`, "x:y://u@h/p", "https://İ.com/a", "https://h./a", "user:pw@h:a", "ssh://h/~u/a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		checkRemoteKey(t, address, NormalizeRemote(address, filepath.FromSlash("/srv/work")))
	})
}

// For any user and password and any form of address, the key is that of the same address
// without them.
func FuzzNormalizeRemoteDropsUsers(f *testing.F) {
	for _, seed := range []struct{ user, password, host, path string }{
		{"git", "", "h", "a/b.git"}, {"u", "p:w@d/x", "H.example", "a"}, {"a@b", "", "[::1]", "x y"}, {"", "p", "h", "a@b:c"}, {"git", "", "h", "c#"},
	} {
		f.Add(seed.user, seed.password, seed.host, seed.path)
	}
	f.Fuzz(func(t *testing.T, user, password, host, path string) {
		if strings.ContainsAny(host, "@/:") && !strings.HasPrefix(host, "[") || strings.ContainsAny(host, `/\?#@`) || len(user)+len(password)+len(path) > maxOrigin/4 {
			return // the address would have other parts
		}
		for _, scheme := range []string{"https", "ssh"} {
			in := url.UserPassword(user, password).String() + "@"
			with, without := NormalizeRemote(scheme+"://"+in+host+"/"+path, ""), NormalizeRemote(scheme+"://"+host+"/"+path, "")
			if with != without {
				t.Errorf("%s, user %q, password %q: %q, without them %q", scheme, user, password, with, without)
			}
		}
		if strings.ContainsAny(user, "@:/[") || strings.Contains(path, "://") || user == "" || user != strings.TrimSpace(user) || len(host) < 2 {
			return
		}
		if with, without := NormalizeRemote(user+"@"+host+":"+path, ""), NormalizeRemote(host+":"+path, ""); with != without && utf8.ValidString(user) && !strings.ContainsFunc(user, unicode.IsControl) && strings.TrimSpace(host) == host {
			t.Errorf("user %q: %q, without it %q", user, with, without)
		}
	})
}

// The addresses have parts that earlier versions ignored.
func TestRemotesOfOneRepositoryHaveOneKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key       string
		addresses []string
	}{
		{"git.local/a/b", []string{"[git.local:2222]:a/b", "git@[git.local:2222]:a/b.git", "ssh://git@git.local:2222/a/b"}},
		{"[::1]/a", []string{"https://[::1]/a", "git@[::1]:a", "ssh://git@[::1]:22/a.git"}},
		{"h.example/My Project/x", []string{"https://h.example/My%20Project/x", "git@h.example:My Project/x"}},
		{"h.example/a", []string{"h.example:a", "git@h.example:a", "user:pw@h.example:a"}},
		{"h.example/c%23", []string{"https://h.example/c%23.git", "git@h.example:c#"}},
		{"", []string{"https://h/a%00b", "https://h/a%0Ab", "https://h/%ff", "file:///srv/a%00b", "https://h/..", "git@h:...git", "https://h/.git"}},
	} {
		for _, address := range c.addresses {
			if key := NormalizeRemote(address, ""); key != c.key {
				t.Errorf("%s: %q, not %q", address, key, c.key)
			}
		}
	}
}
