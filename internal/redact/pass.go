package redact

import "strings"

// passOpens reports whether "pass" at t[start:end] ends the name of a password: DB_PASS,
// smtp_pass, userPass, --pass, -storepass. It is false for first_pass, bypass and the
// result of a test. The name "pass" alone counts only next to a user's name.
func passOpens(t string, start, end int) bool {
	if end < len(t) && isLetter(t[end]) {
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
	case t[start] == 'P' && isAlnum(before):
		return isAccountName(t[:start])
	case isLetter(before):
		return isKeytoolFlag(t[:start])
	}
	return nextToUser(t, start, end)
}

// wordBefore reports whether a word ends at text[:i].
func wordBefore(t string, i int) bool { return i > 0 && isWord(t[i-1]) }

// isKeytoolFlag reports whether t ends with a flag of keytool up to "pass":
// -storepass, -keypass.
func isKeytoolFlag(t string) bool {
	flag := back(t, len(t), 16, isLetter)
	return flag > 0 && t[flag-1] == '-' && (endsFold(t, "store") || endsFold(t, "key"))
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
	word := back(t, len(t), longest, isLower)
	if word > 0 && isUpper(t[word-1]) { // dbPass, DBPass, DB_PASS
		word = back(t, word, longest, isUpper)
	}
	return isAccountWord(strings.ToLower(t[word:])) || hasFold(t[back(t, word, longest, isWord):], "ansible_")
}

// nextToUser reports whether the name "pass" at t[start:end] is a field with a quoted
// value. It must follow a field with a user's name: { user: "bob", pass: "v" }.
func nextToUser(t string, start, end int) bool {
	const reach = 100 // bytes before the name
	i := skip(t, end, 2, func(c byte) bool { return isQuote(c) || c == '\\' })
	if i == len(t) || t[i] != ':' && t[i] != '=' {
		return false
	}
	i = skip(t, i+1, 4, isBlank)
	i = skip(t, i, 2, func(c byte) bool { return c == '\\' })
	if i == len(t) || !isQuote(t[i]) {
		return false
	}
	before := t[max(0, start-reach):start]
	for j := 0; j+len("user") < len(before); j++ {
		if hasFold(before[j:], "user") {
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
