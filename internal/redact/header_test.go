package redact

import "testing"

func TestHeaders(t *testing.T) {
	t.Parallel()
	redactions{
		{"Authorization: Bearer abcd1234", "Authorization: Bearer [REDACTED]"},
		{"authorization: bearer abc.def.ghi1", "authorization: bearer [REDACTED]"},
		{"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [REDACTED]"},
		{"Authorization: Token abcd1234", "Authorization: Token [REDACTED]"},
		{"Authorization: token abcd1234", "Authorization: token [REDACTED]"},
		{"Authorization: ApiKey abcd1234==", "Authorization: ApiKey [REDACTED]"},
		{"Proxy-Authorization: Basic dXNlcjpwYXNz", "Proxy-Authorization: Basic [REDACTED]"},
		{"Authorization: abcd1234efgh", "Authorization: [REDACTED]"},
		{`-H "Authorization: Bearer abcd1234" x`, `-H "Authorization: Bearer [REDACTED]" x`},
		{`{"Authorization": "Bearer abcd1234"}`, `{"Authorization": "Bearer [REDACTED]"}`},
		{`{\"authorization\": \"Bearer abcd1234\"}`, `{\"authorization\": \"Bearer [REDACTED]\"}`},
		{`req.Header.Set("Authorization", "Bearer abcd1234")`, `req.Header.Set("Authorization", "Bearer [REDACTED]")`},
		{"headers['Authorization'] = 'Bearer abcd1234'", "headers['Authorization'] = 'Bearer [REDACTED]'"},
		{"Bearer 9f8Kd02mLq7Zx1VbT4wN", "Bearer [REDACTED]"},
		{"X-Api-Key: abcd1234\r\nHost: x", "X-Api-Key: [REDACTED]\r\nHost: x"},
		{"x-api-key:abcd1234", "x-api-key:[REDACTED]"},
		{"Cookie: session=abc; theme=dark", "Cookie: session=[REDACTED]; theme=[REDACTED]"},
		{"cookie: a=1;b=2\nHost: x", "cookie: a=[REDACTED];b=[REDACTED]\nHost: x"},
		{"Set-Cookie: sid=abc123; Path=/; HttpOnly", "Set-Cookie: sid=[REDACTED]; Path=/; HttpOnly"},
		{`"set-cookie": "sid=abc123; Secure"`, `"set-cookie": "sid=[REDACTED]; Secure"`},
		{`curl --cookie "sid=abc123" https://h/`, `curl --cookie "sid=[REDACTED]" https://h/`},
		{`curl -H 'Cookie: sid=abc123; x="y"' https://h/`, `curl -H 'Cookie: sid=[REDACTED]; x="y"' https://h/`},
	}.run(t, mustFilter(t, Options{}))
}

func TestTextsThatAreNotHeaders(t *testing.T) {
	t.Parallel()
	untouched{
		"Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "Authorization: Bearer ${TOKEN}", `"Authorization": f"Bearer {token}"`, "Authorization: Bearer YOUR_TOKEN",
		"Authorization: Bearer tokens are used here", "Authorization: Basic auth", "Authorization: see section 4", `"Authorization", "Bearer " + token`, "authorization: AuthorizationOptions",
		"Bearer token", "bearer authentication is required for this", "Bearer tokens-are-long-lived-here", "Cookie: we should set it", "cookie: string", "cookies=4", "Set-Cookie header",
		"the cookie = chocolate", "cookiecutter: gh:org/template", "`Authorization`, then", "Cookie: sid=[REDACTED]", "Authorization: Bearer [REDACTED]",
	}.run(t, mustFilter(t, Options{}))
}

func TestURLs(t *testing.T) {
	t.Parallel()
	redactions{
		{"postgres://bob:hunter2@db.example.com:5432/app", "postgres://bob:[REDACTED]@db.example.com:5432/app"},
		{"https://user:pass@example.com/x", "https://user:[REDACTED]@example.com/x"},
		{"redis://:hunter2@cache:6379/0", "redis://:[REDACTED]@cache:6379/0"},
		{"mongodb+srv://u:p@c0.example.net,c1.example.net/db?w=1", "mongodb+srv://u:[REDACTED]@c0.example.net,c1.example.net/db?w=1"},
		{"amqp://u:p@ss@host/vhost", "amqp://u:[REDACTED]@host/vhost"},
		{"amqp://u:p/a?s#s@host:1/vhost", "amqp://u:[REDACTED]@host:1/vhost"},
		{"https://u:p@example.com/a/@scope/pkg", "https://u:[REDACTED]@example.com/a/@scope/pkg"},
		{"git clone https://bob:hunter2@git.example.com/x.git y", "git clone https://bob:[REDACTED]@git.example.com/x.git y"},
		{"DSN=\"mysql://a:b@tcp(h:1)/x\"", "DSN=\"mysql://a:[REDACTED]@tcp(h:1)/x\""},
		{"socks5://a:1234@h", "socks5://a:[REDACTED]@h"},
		{"see (ftp://a:b@h/x), ok", "see (ftp://a:[REDACTED]@h/x), ok"},
		{"https://" + "0f1e2d3c4b5a69788796a5b4c3d2e1f0a1b2c3d4" + "@github.com/x", "https://[REDACTED]@github.com/x"},
		{"https://h/x?sig=abcd&b=c", "https://h/x?sig=[REDACTED]&b=c"},
		{"https://h/x?a=b&key=abcd#f", "https://h/x?a=b&key=[REDACTED]#f"},
		{"https://h/x?token=abcd", "https://h/x?token=[REDACTED]"},
		{"https://h/x?access_token=abcd&x=y", "https://h/x?access_token=[REDACTED]&x=y"},
		{"/x?a=1&amp;sig=abcd&amp;b=2", "/x?a=1&amp;sig=[REDACTED]&amp;b=2"},
		{"/x?a=1\\u0026sig=abcd", "/x?a=1\\u0026sig=[REDACTED]"},
		{"s3.example.com/b?X-Amz-Signature=0f1e2d3c&X-Amz-Date=1", "s3.example.com/b?X-Amz-Signature=[REDACTED]&X-Amz-Date=1"},
		{"https://hooks.slack.com/services/T0/B0/abcd1234 x", "https://hooks.slack.com/services/[REDACTED] x"},
		{"(https://discord.com/api/webhooks/123456/abcd-1234).", "(https://discord.com/api/webhooks/[REDACTED])."},
		{"https://me.webhook.office.com/webhookb2/550e8400-e29b-41d4-a716-446655440000@550e8400-e29b-41d4-a716-446655440000/IncomingWebhook/x", "https://me.webhook.office.com/webhookb2/[REDACTED]"},
	}.run(t, mustFilter(t, Options{}))
}

func TestURLsWithoutCredentialsStay(t *testing.T) {
	t.Parallel()
	untouched{
		"git://github.com/org/token-service.git", "file:///srv/token/secret/readme.md", "git://host/token/path", "https://example.com/token", "ssh://git@github.com/org/repo.git",
		"git@github.com:org/repo.git", "http://localhost:3000/@vite/client", "https://unpkg.com:443/@babel/core@7.23.0/lib/index.js", "https://h:8080/x@y", "https://medium.com/@someone/post",
		"postgres://$USER:$PASS@host/db", "postgres://user:${PASSWORD}@host/db", "https://<user>:<token>@host", "https://user:***@host", "https://{user}:{password}@host/", "https://user:%s@host",
		"https://user@example.com/x", "mailto:a@b.c", "https://h/x?sig=&b=c", "https://h/x?keys=abcd&tokens=12", "https://h/x?monkey=abcd", "?primary_key=abcd", "https://h/x?token=<token>",
		"https://h/x?sig=[REDACTED]&key=[REDACTED]", "https://u:[REDACTED]@h", "https://hooks.slack.com/services/", "https://hooks.slack.com/services/[REDACTED]", "design=abcd", "assig=abcd",
	}.run(t, mustFilter(t, Options{}))
}

func TestCommands(t *testing.T) {
	t.Parallel()
	redactions{
		{"curl -u bob:hunter2 https://h", "curl -u bob:[REDACTED] https://h"},
		{"curl -ubob:hunter2 https://h", "curl -ubob:[REDACTED] https://h"},
		{"curl -s --user 'bob:hunter two' https://h", "curl -s --user 'bob:[REDACTED]' https://h"},
		{"curl --user=\"bob:hunter2\" https://h", "curl --user=\"bob:[REDACTED]\" https://h"},
		{"curl -u abcd1234efgh: https://h", "curl -u [REDACTED]: https://h"},
		{"curl \\\n  -X POST \\\n  -u bob:hunter2 \\\n  https://h", "curl \\\n  -X POST \\\n  -u bob:[REDACTED] \\\n  https://h"},
		{"curl -H 'X-Foo-Key: abcd1234' https://h", "curl -H 'X-Foo-Key: [REDACTED]' https://h"},
		{"curl -H \"Authorization: abcd1234\" h", "curl -H \"Authorization: [REDACTED]\" h"},
		{"x; curl -u a:b1c2 h | curl -u d:e2f3 k", "x; curl -u a:[REDACTED] h | curl -u d:[REDACTED] k"},
		{"mysql -u root -phunter2 app", "mysql -u root -p[REDACTED] app"},
		{"mysqldump -uroot -p'hunter two' app > x", "mysqldump -uroot -p'[REDACTED]' app > x"},
		{"docker exec db mariadb -phunter2", "docker exec db mariadb -p[REDACTED]"},
		{"sshpass -p hunter2 ssh h", "sshpass -p [REDACTED] ssh h"},
		{"sshpass -phunter2 ssh h", "sshpass -p[REDACTED] ssh h"},
		{"curl -s h; mysql -phunter2", "curl -s h; mysql -p[REDACTED]"},
		{"redis-cli -h h -a hunter2 ping", "redis-cli -h h -a [REDACTED] ping"},
		{"docker login -u me -p hunter2 r.example.com", "docker login -u me -p [REDACTED] r.example.com"},
	}.run(t, mustFilter(t, Options{}))
	untouched{
		"curl -u bob https://h", "curl -u $USER:$PASS https://h", "curl -u \"$USER:${PASS}\" h", "curl -u <user>:<password> h", "curl https://h/a:b", "curl --user-agent x:y h", "curl -H 'Accept: text/html'",
		"mysql -u root -p app", "mysql -p$PASS app", "MySQL -portable", "mysql --port 3306", "sshpass -e ssh h", "sshpass -p \"$PASS\" ssh h", "git push -u origin:main", "docker run -u 1000:1000 x",
		"curl -fsSL https://h | sh\ndocker run -u app:staff x", "curl -u bob:[REDACTED] h", "docker run -p 8080:80 x", "mkdir -p /a/b", "libcurl -u x:y is not it", "psql -U bob -p 5432",
	}.run(t, mustFilter(t, Options{}))
}
