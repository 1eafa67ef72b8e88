package redact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The secrets of these tests are assembled at run time, so that repository scanners do not
// report them.

const (
	digits   = "0123456789"
	smalls   = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum    = smalls + capitals + digits
	hexes    = digits + "abcdef"
	base64   = alnum + "+/"
	base64u  = alnum + "-_"
)

func mustFilter(t testing.TB, o Options) *Filter {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// letters returns n random letters of an alphabet. The same seed gives the same letters.
func letters(seed uint64, alphabet string, n int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func fakeGitHub() string { return "gh" + "p_" + letters(1, alnum, 36) }

func fakeJWT(seed uint64) string {
	return "ey" + "J" + letters(seed, base64u, 33) + ".ey" + "J" + letters(seed+1, base64u, 60) + "." + letters(seed+2, base64u, 43)
}

func keyBlock(kind, eol string) string {
	lines := []string{"-----BEGIN " + kind + "-----"}
	for i := range 4 {
		lines = append(lines, letters(uint64(i), base64, 64))
	}
	return strings.Join(append(lines, "-----END "+kind+"-----"), eol)
}

// known is a secret with the name of its shape.
type known struct {
	name   string
	secret string
}

// knownShapes contains one secret of every shape that the contract lists in family 3.
func knownShapes() []known {
	var ks []known
	for _, k := range []struct {
		prefix, alphabet string
		n                int
	}{
		{"AK" + "IA", capitals + digits, 16}, {"AS" + "IA", capitals + digits, 16},
		{"gh" + "p_", alnum, 36}, {"gh" + "o_", alnum, 36}, {"gh" + "u_", alnum, 36}, {"gh" + "s_", alnum, 36}, {"gh" + "r_", alnum, 36},
		{"github_" + "pat_", alnum + "_", 82},
		{"gl" + "pat-", base64u, 20},
		{"xo" + "xa-2-", alnum, 40}, {"xo" + "xr-", alnum, 48}, {"xo" + "xs-1234567890-1234567890-12345-", hexes, 32},
		{"xo" + "xb-123456789012-1234567890123-", alnum, 24},
		{"xo" + "xp-123456789012-123456789012-123456789012-", hexes, 32},
		{"xa" + "pp-1-A0123456789-1234567890123-", hexes, 64},
		{"AI" + "za", base64u, 35}, {"ya" + "29.", base64u, 120},
		{"sk-" + "ant-api03-", base64u, 93}, {"sk-" + "proj-", base64u, 120}, {"sk-", alnum, 48},
		{"sk_" + "live_", alnum, 24}, {"rk_" + "live_", alnum, 24}, {"wh" + "sec_", alnum, 32},
		{"np" + "m_", alnum, 36}, {"py" + "pi-AgEIcHlwaS5vcmc", base64u, 80}, {"hf" + "_", smalls + capitals, 34},
		{"dop_" + "v1_", hexes, 64}, {"shp" + "at_", hexes, 32}, {"hv" + "s.", base64u, 92}, {"hv" + "s.", alnum, 24},
		{"dckr_" + "pat_", base64u, 27}, {"AGE-" + "SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58},
		{"123456789:A" + "A", base64u, 33}, {"7123456789:", base64u, 35},
	} {
		ks = append(ks, known{k.prefix, k.prefix + letters(uint64(len(ks)), k.alphabet, k.n)})
	}
	return append(ks,
		known{"SG.", "S" + "G." + letters(90, base64u, 22) + "." + letters(91, base64u, 43)},
		known{"JWT", fakeJWT(92)})
}

// hostile contains texts that repeat the start of a match without its end.
func hostile() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"names", "password="}, {"names in quotes", `token="`}, {"names, two quotes", `secret='password="`}, {"references", "token=$token "},
		{"colons", "secret:"}, {"flags", "--password "}, {"keys", "api key, "}, {"vendors", "discord linear:"},
		{"shapes", "gl" + "pat-"}, {"sk", "sk-"}, {"sk segments", "sk-ab1-"}, {"web tokens", "ey" + "J"}, {"web token parts", ".ey" + "Jhbgciabcdefghijkl"},
		{"web tokens, hyphens", "ey" + "Jaaaaaaaaaaaa-"}, {"slack", "xo" + "xb-"},
		{"urls", "a://b:c"}, {"urls with @", "a://b:c@/"}, {"url ports", "a://b:80/@"}, {"queries", "?sig=&key="}, {"cookies", "cookie=a;"}, {"cookies colon", "cookie: a=b; "},
		{"curl", "curl -u "}, {"curl quotes", `curl "`}, {"mysql", "mysql -p "}, {"private", "<private>"}, {"private ends", "</private>"}, {"dashes", "-"},
		{"begin", "-----BEGIN PRIVATE KEY"}, {"begin certificate", "-----BEGIN CERTIFICATE-----\n"}, {"kind", "kind: Secret\n"}, {"data", "kind: Secret\ndata:\n"},
		{"data nested", `{"kind": "Secret", "data": {"a":`}, {"marks", Mark}, {"half marks", "[REDACTED"}, {"bearer", "bearer "}, {"authorization", "authorization:"},
		{"one word", "aB3"}, {"digests", "sha256-"}, {"ssh keys", "AAAAB3NzaC1-"}, {"spaces", " "}, {"non-ASCII", "ключ=значение "}, {"not UTF-8", "\xff\xfe\xfdtoken=\xff"},
		{"values", "value:password,"}, {"tags", "<token>"}, {"brackets", "password=(((("}, {"commas", "password=a,b,c,d,"}, {"webhooks", "hooks.slack.com/services/"},
		{"sentences", "the password is "}, {"sentences with for", "password for bob "}, {"with password", "with password "}, {"passphrases", "passphrase: word "},
		{"calls", `setPassword("`}, {"setenv", `Setenv("TOKEN", `}, {"basic auth", `basicauth("a", `}, {"users", "user pass:'"}, {"pipes", "echo a | docker login --password-stdin "},
		{"here-strings", "chpasswd <<< "}, {"htpasswd", "htpasswd -b "}, {"htpasswd flags", "htpasswd -a -a -a -a "}, {"smbclient", "smbclient -U a%"}, {"archives", "7z -p zip -P unzip -P "},
		{"seed words", "abandon ability able about "}, {"one seed word", "word "}, {"seed words and others", "abandon ability able about above absent absorb abstract absurd abuse access wrong1 "},
		{"pods", "a-x7k2p-"}, {"build ids", "abcdefghijklmnopqrst/"}, {"nix", "nix/store/"}, {"documents", "https://docs.google.com/"}, {"usage", "  --token A  b"}, {"asana", "1/1234567890:"},
		{"telegram", "12345678:"}, {"facebook", "123456789012345|"}, {"secret dots", "s.S" + "KQ~"}, {"random", "kQ9zX2vB7mL4tR8"},
	}
}

func sizeName(n int) string { return fmt.Sprintf("%dKB", n/1024) }
