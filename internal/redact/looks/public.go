package looks

import (
	"strings"

	"cairn/internal/redact/shape"
)

// public returns the length of a random but public text at the start of w, or 0. A run of
// letters and digits must begin there.
func public(w string) int {
	for _, length := range [...]func(string) int{uuidLength, ulid, digest, sshPublicKey, nodeID, podSuffix, vendorID, macTemporary, nixStore} {
		if n := length(w); n > 0 {
			return n
		}
	}
	return 0
}

// publicAt is public for w[i:]. It also checks the text before i.
func publicAt(w string, i int) int {
	if n := public(w[i:]); n > 0 || i > 0 && (w[i-1] == '+' || w[i-1] == '/') {
		return n
	}
	if i > 0 && w[i-1] == '-' {
		return nameSuffix(w[i:])
	}
	return buildID(w[i:])
}

// uuidLength returns 36 if w begins with a UUID, else 0.
func uuidLength(w string) int {
	if len(w) >= 36 && w[8] == '-' && shape.IsUUID(w[:36]) {
		return 36
	}
	return 0
}

// sshPublicKey returns the length of an SSH public key at the start of w, 0 if it
// does not begin with one.
func sshPublicKey(w string) int {
	for _, p := range [...]string{"AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh", "AAAAGnNr"} {
		if strings.HasPrefix(w, p) {
			return shape.CountClass(w, 0, len(w), 'F')
		}
	}
	return 0
}

// kubernetesLetters is true for the letters and digits in the random parts of names that
// Kubernetes and its tools generate. It excludes vowels and similar-looking characters.
var kubernetesLetters = [256]bool{
	'b': true, 'c': true, 'd': true, 'f': true, 'g': true, 'h': true, 'j': true, 'k': true, 'l': true, 'm': true, 'n': true, 'p': true,
	'q': true, 'r': true, 's': true, 't': true, 'v': true, 'w': true, 'x': true, 'z': true,
	'2': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
}

// isKubernetesLetter reports whether c can occur in such a part. Hashes may contain the
// digits that other parts omit.
func isKubernetesLetter(c byte) bool {
	return kubernetesLetters[c] || c == '0' || c == '1' || c == '3'
}

// podSuffix returns the length of the suffix that Kubernetes appends to a pod's name, such
// as 6d4cf56db6-x7k2p, at the start of w. It returns 0 if there is none.
func podSuffix(w string) int {
	const shortest, longest, pod = 5, 10, 5
	hash := shape.Skip(w, 0, longest+1, isKubernetesLetter)
	if hash < shortest || hash > longest || hash == len(w) || w[hash] != '-' || !strings.ContainsAny(w[:hash], "0123456789") {
		return 0
	}
	end := shape.Skip(w, hash+1, pod+1, func(c byte) bool { return kubernetesLetters[c] })
	if end != hash+1+pod || end < len(w) && (shape.IsWord(w[end]) || w[end] == '-') {
		return 0
	}
	return end
}

// nameSuffix returns the length of the hash that ends the name of a Kubernetes object,
// such as x7k2p or 9tg5m2kbhc, at the start of w. It returns 0 if there is none. A hyphen
// precedes w.
func nameSuffix(w string) int {
	const shortest, longest = 5, 10
	end := shape.Skip(w, 0, longest+1, isKubernetesLetter)
	if end < shortest || end > longest || end < len(w) && (shape.IsWord(w[end]) || w[end] == '-' || w[end] == '+' || w[end] == '=') ||
		!strings.ContainsAny(w[:end], "0123456789") {
		return 0
	}
	return end
}

// IsKubernetesName reports whether v is the name of a Kubernetes object that ends
// in a generated part: words, hyphens, then the part.
func IsKubernetesName(v string) bool {
	words := 0
	for rest := v; ; words++ {
		word := shape.Skip(rest, 0, len(rest), func(c byte) bool { return shape.IsLower(c) || shape.IsDigit(c) })
		if words > 0 && (podSuffix(rest) == len(rest) || nameSuffix(rest) == len(rest)) {
			return true
		}
		if word == 0 || word == len(rest) || rest[word] != '-' || Strangest(rest[:word]).HalfBits >= 8 {
			return false
		}
		rest = rest[word+1:]
	}
}

// vendorID returns the length of a request, message or call id from a model vendor at the
// start of w. It returns 0 if there is none.
func vendorID(w string) int {
	switch w[0] {
	case 't', 's', 'r', 'm', 'c':
		for _, p := range [...]string{"toolu_", "srvtoolu_", "req_", "msg_", "call_", "resp_", "chatcmpl-"} {
			if strings.HasPrefix(w, p) {
				return len(p) + shape.CountClass(w, len(p), 64, 'a')
			}
		}
	}
	return 0
}

// nodeID returns the length of a GitHub GraphQL id, such as PR_kwDO…, at the start of w.
// It returns 0 if there is none.
func nodeID(w string) int {
	i := shape.Skip(w, 0, 6, shape.IsUpper)
	if i == 0 || len(w) < i+3 || w[i:i+2] != "_k" || w[i+2] != 'w' && w[i+2] != 'g' {
		return 0
	}
	return i + shape.CountClass(w, i, 64, 'b')
}

// macTemporary returns the length of "var/folders/xx/long name" at the start of w. It
// returns 0 if w does not begin with such a path.
func macTemporary(w string) int {
	const folders = "var/folders/"
	if !strings.HasPrefix(w, folders) {
		return 0
	}
	n := len(folders)
	for range 2 {
		if j := strings.IndexByte(w[n:], '/'); j >= 0 {
			n += j + 1
		} else {
			return len(w)
		}
	}
	return n
}

// digest returns the length of a digest prefixed with its algorithm's name, as in lock
// files, at the start of w. It returns 0 if there is none.
func digest(w string) int {
	if c := w[0]; c != 's' && c != 'h' && c != 'S' {
		return 0
	}
	for _, d := range [...]struct {
		prefix string
		length int // length of the digest in base64
	}{{"sha1-", 28}, {"sha256-", 44}, {"sha384-", 64}, {"sha512-", 88}, {"h1:", 44}, {"SHA256:", 43}} {
		if strings.HasPrefix(w, d.prefix) {
			if n := shape.CountClass(w, len(d.prefix), 100, 'F'); n == d.length {
				return len(d.prefix) + n
			}
		}
	}
	return 0
}

// ulid returns the length of a ULID with a present-day timestamp at the start of w. It
// returns 0 if there is none.
func ulid(w string) int {
	const length = 26
	if !strings.HasPrefix(w, "01") || shape.CountClass(w, 0, length+1, 'a') != length {
		return 0
	}
	for i := range length {
		if strings.IndexByte("iloILOuU", w[i]) >= 0 {
			return 0
		}
	}
	return length
}

// NixLetters are the characters of Nix's base32.
const NixLetters = "0123456789abcdfghijklmnpqrsvwxyz"

// nixStore returns the length of a Nix store path up to its hash, "nix/store/<32>", at the
// start of w. It also accepts a hash of 52 letters there. It returns 0 if there is
// neither.
func nixStore(w string) int {
	const (
		store  = "nix/store/"
		length = 32
		sha256 = 52
	)
	isNix := func(c byte) bool { return strings.IndexByte(NixLetters, c) >= 0 }
	if w[0] == 'n' && strings.HasPrefix(w, store) {
		if end := shape.Skip(w, len(store), length+1, isNix); end == len(store)+length && (end == len(w) || w[end] == '-' || w[end] == '.') {
			return end
		}
		return 0
	}
	if len(w) >= sha256 && isNix(w[0]) && shape.Skip(w, 0, sha256+1, isNix) == sha256 && (len(w) == sha256 || !shape.IsWord(w[sha256])) {
		return sha256
	}
	return 0
}

// buildID returns the length of a Go build id at the start of w: two or four hashes of 20
// letters, separated by slashes. It returns 0 if there is none.
func buildID(w string) int {
	const length = 20
	if len(w) < 2*length+1 || w[length] != '/' {
		return 0
	}
	n := 0
	for end := 0; ; n++ {
		if shape.CountClass(w, end, length+1, 'b') != length {
			return 0
		}
		if end += length; end == len(w) || w[end] != '/' {
			if n != 1 && n != 3 || end < len(w) && (w[end] == '+' || w[end] == '=') {
				return 0
			}
			return end
		}
		end++
	}
}

// documents contains hosts with the beginning of the path that precedes a document's
// public id.
var documents = [...]string{
	"drive.google.com/open?id=", "docs.google.com/open?id=", "docs.google.com/", "drive.google.com/", "sheets.google.com/", "slides.google.com/", "colab.research.google.com/", "www.google.com/maps/",
	"www.figma.com/", "figma.com/", "www.notion.so/", "notion.so/", "miro.com/", "airtable.com/", "trello.com/", "linear.app/",
	"www.youtube.com/watch?v=", "www.youtube.com/", "youtu.be/", "open.spotify.com/", "asciinema.org/", "www.loom.com/", "app.asana.com/", "lucid.app/", "www.canva.com/",
	"codesandbox.io/", "stackblitz.com/", "replit.com/", "jsfiddle.net/", "codepen.io/", "godbolt.org/", "go.dev/play/", "play.golang.org/",
	"play.rust-lang.org/", "www.typescriptlang.org/play", "gist.github.com/", "imgur.com/", "medium.com/", "arxiv.org/", "claude.ai/", "chatgpt.com/",
}

// DocumentEnd returns the end of the path of a URL in word if document ids are public on
// its host. It returns 0 for other words. The rest of the word is a query or a fragment.
func DocumentEnd(word string) int {
	i := strings.Index(word, "://")
	if i < 0 {
		return 0
	}
	i += len("://")
	for _, d := range documents {
		if strings.HasPrefix(word[i:], d) {
			i += len(d)
			if n := strings.IndexAny(word[i:], "?#&"); n >= 0 {
				return i + n
			}
			return len(word)
		}
	}
	return 0
}
