package redact

import (
	"strings"

	"cairn/internal/redact/shape"
)

// passOpens reports whether "pass" at t[start:end] ends the name of a password: DB_PASS,
// smtp_pass, userPass, --pass, -storepass. It is false for first_pass, bypass and the
// result of a test. The name "pass" alone counts only next to a user's name.
func passOpens(t string, start, end int) bool {
	if end < len(t) && shape.IsLetter(t[end]) {
		return false
	}
	if start == 0 {
		return nextToUser(t, start, end)
	}
	switch before := t[start-1]; {
	case before == '-' && !wordBefore(t, start-1):
		return strings.HasSuffix(t[:start], "--") // not -pass, which other programs use
	case before == '_' || before == '-' || before == '.':
		return isAssignedConstant(t, start, end) || isAccountName(t[:start-1])
	case t[start] == 'P' && shape.IsAlnum(before):
		return isAccountName(t[:start])
	case shape.IsLetter(before):
		return isKeytoolFlag(t[:start])
	}
	return nextToUser(t, start, end)
}

// wordBefore reports whether a word ends at text[:i].
func wordBefore(t string, i int) bool { return i > 0 && shape.IsWord(t[i-1]) }

// isKeytoolFlag reports whether t ends with a flag of keytool up to "pass":
// -storepass, -keypass.
func isKeytoolFlag(t string) bool {
	flag := shape.Back(t, len(t), 16, shape.IsLetter)
	return flag > 0 && t[flag-1] == '-' && (shape.EndsFold(t, "store") || shape.EndsFold(t, "key"))
}

// isAssignedConstant reports whether "PASS" at t[start:end] ends the name of an
// environment variable that is assigned with "=": SMTP_PASS=v.
func isAssignedConstant(t string, start, end int) bool {
	return t[start-1] == '_' && t[start:end] == "PASS" && end < len(t) && t[end] == '='
}

// isAccountName reports whether the name that ends with t, before "pass", refers to an
// account. Its last word is an account word, or the name is one of Ansible's.
func isAccountName(t string) bool {
	const longest = 16
	word := shape.Back(t, len(t), longest, shape.IsLower)
	if word > 0 && shape.IsUpper(t[word-1]) { // dbPass, DBPass, DB_PASS
		word = shape.Back(t, word, longest, shape.IsUpper)
	}
	return isAccountWord(strings.ToLower(t[word:])) || shape.HasFold(t[shape.Back(t, word, longest, shape.IsWord):], "ansible_")
}

// nextToUser reports whether the name "pass" at t[start:end] is a field with a quoted
// value. It must follow a field with a user's name: { user: "bob", pass: "v" }.
func nextToUser(t string, start, end int) bool {
	const reach = 100 // bytes before the name
	i := shape.Skip(t, end, 2, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
	if i == len(t) || t[i] != ':' && t[i] != '=' {
		return false
	}
	i = shape.Skip(t, i+1, 4, shape.IsBlank)
	i = shape.Skip(t, i, 2, func(c byte) bool { return c == '\\' })
	if i == len(t) || !shape.IsQuote(t[i]) {
		return false
	}
	before := t[max(0, start-reach):start]
	for j := 0; j+len("user") < len(before); j++ {
		if shape.HasFold(before[j:], "user") {
			return true
		}
	}
	return false
}

// isAccountWord reports whether the lower-case word w, followed by "pass", forms the name
// of a password.
func isAccountWord(w string) bool {
	switch w {
	case "db", "database", "sql", "mysql", "mariadb", "pg", "postgres", "mongo", "mongodb", "redis", "oracle", "mssql", "elastic",
		"user", "usr", "username", "admin", "root", "sudo", "become", "login", "account", "guest", "system", "sa",
		"smtp", "imap", "mail", "email", "ftp", "sftp", "ssh", "ldap", "bind", "amqp", "rabbitmq", "mqtt", "proxy", "http", "https",
		"basic", "auth", "api", "app", "service", "svc", "client", "server", "host", "registry", "docker", "git", "wifi", "wlan",
		"vpn", "vnc", "rdp", "smb", "samba", "key", "keystore", "store", "truststore", "cert", "ssl", "tls", "pem", "zip", "backup",
		"vault", "encryption", "wp", "wordpress", "web", "jenkins", "nexus", "grafana", "master", "default", "current", "new", "old", "my":
		return true
	}
	return false
}
