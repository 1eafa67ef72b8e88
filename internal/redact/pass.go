package redact

import "strings"

// passOpens reports whether "pass" at t[start:end] ends the name of a password:
// DB_PASS, smtp_pass, userPass, --pass, -storepass. It is false for first_pass,
// bypass and the result of a test. A name that is "pass" alone counts only beside
// a user's name.
func passOpens(t string, start, end int) bool {
	if end < len(t) && isLetter(t[end]) {
		return false
	}
	before := byte(' ')
	if start > 0 {
		before = t[start-1]
	}
	switch {
	case before == '-' && (start == 1 || t[start-2] == '-' || isBreak(t[start-2])):
		return start > 1 && t[start-2] == '-' // --pass; not -pass, which other programs use
	case before == '_' && t[start:end] == "PASS" && end < len(t) && t[end] == '=':
		return true
	case before == '_' || before == '-' || before == '.':
		word := back(t, start-1, 16, isAlnum)
		return isAccountWord(strings.ToLower(t[word:start-1])) || hasFold(t[back(t, word, 16, isWord):], "ansible_")
	case t[start] == 'P' && isAlnum(before):
		word := back(t, start, 16, isLower)
		if word > 0 && isUpper(t[word-1]) {
			word--
		}
		return isAccountWord(strings.ToLower(t[word:start]))
	case isLetter(before):
		flag := back(t, start, 16, isLetter)
		return flag > 0 && t[flag-1] == '-' && (endsFold(t[:start], "store") || endsFold(t[:start], "key"))
	}
	return besideUser(t, start, end)
}

// besideUser reports whether the name "pass" at t[start:end] is a field with a
// quoted value that follows a field with a user's name:
// { user: "bob", pass: "v" }.
func besideUser(t string, start, end int) bool {
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

// isAccountWord reports whether w, in lower case, before "pass" makes the name of
// a password.
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
