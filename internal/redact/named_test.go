package redact

import (
	"strings"
	"testing"
)

// redactions maps texts to their redacted forms.
type redactions []struct{ text, want string }

func (r redactions) run(t *testing.T, f *Filter) {
	t.Helper()
	for _, c := range r {
		got, changed := f.Text(c.text)
		if got != c.want || changed != (got != c.text) {
			t.Errorf("%q\n became %q\n   want %q", c.text, got, c.want)
		}
		if again, _ := f.Text(got); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
	}
}

// untouched lists texts that must be returned unchanged.
type untouched []string

func (u untouched) run(t *testing.T, f *Filter) {
	t.Helper()
	for _, s := range u {
		if got, changed := f.Text(s); changed || got != s {
			t.Errorf("%q\n became %q", s, got)
		}
	}
}

func TestNamedValues(t *testing.T) {
	t.Parallel()
	redactions{
		{"password=hunter2", "password=[REDACTED]"},
		{"password = hunter2", "password = [REDACTED]"},
		{"Password: hunter2", "Password: [REDACTED]"},
		{"password:hunter2", "password:[REDACTED]"},
		{"passwd=abcd", "passwd=[REDACTED]"},
		{"passphrase: correct-horse-battery-staple", "passphrase: [REDACTED]"},
		{"pwd=abc123;", "pwd=[REDACTED];"},
		{"DB_PASSWORD=swordfish", "DB_PASSWORD=[REDACTED]"},
		{"PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=[REDACTED] psql -h db"},
		{"dbpassword: swordfish", "dbpassword: [REDACTED]"},
		{"MYSQL_PASS=swordfish", "MYSQL_PASS=[REDACTED]"},
		{"secret=s3cr", "secret=[REDACTED]"},
		{"client_secret: abcd1234", "client_secret: [REDACTED]"},
		{"clientSecret = 'abcd'", "clientSecret = '[REDACTED]'"},
		{"token=abcd1234", "token=[REDACTED]"},
		{"GITHUB_TOKEN=abcdef0123456789abcdef0123456789abcdef01", "GITHUB_TOKEN=[REDACTED]"},
		{"accessToken: abcd1234efgh", "accessToken: [REDACTED]"},
		{"session_token: 550e8400-e29b-41d4-a716-446655440000", "session_token: [REDACTED]"},
		{"api_key=abcd1234", "api_key=[REDACTED]"},
		{"apikey: abcd1234", "apikey: [REDACTED]"},
		{"apiKey: \"abcd1234\"", "apiKey: \"[REDACTED]\""},
		{"API key: abcd1234", "API key: [REDACTED]"},
		{"OPENAI-API-KEY=abcd1234", "OPENAI-API-KEY=[REDACTED]"},
		{"aws_secret_access_key = abcd1234/EFGH", "aws_secret_access_key = [REDACTED]"},
		{"private_key: abcd1234", "private_key: [REDACTED]"},
		{"DefaultEndpointsProtocol=https;AccountName=me;AccountKey=abcd1234==;EndpointSuffix=core", "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=[REDACTED];EndpointSuffix=core"},
		{"Server=db;User Id=sa;Password=p;ss1;Database=x", "Server=db;User Id=sa;Password=[REDACTED];Database=x"},
		{"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=abcd1234=", "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=[REDACTED]"},
		{`{"password": "hunter2", "user": "bob"}`, `{"password": "[REDACTED]", "user": "bob"}`},
		{`{"password":"with \"quotes\" inside"}`, `{"password":"[REDACTED]"}`},
		{`{\"token\":\"abcd1234\",\"x\":1}`, `{\"token\":\"[REDACTED]\",\"x\":1}`},
		{`{"password": ") + ("}`, `{"password": "[REDACTED]"}`},
		{`{"secret": 123456}`, `{"secret": [REDACTED]}`},
		{"'password' => 'hunter2',", "'password' => '[REDACTED]',"},
		{"password := \"hunter2\"", "password := \"[REDACTED]\""},
		{"let password: &str = \"hunter2\";", "let password: &str = \"[REDACTED]\";"},
		{"token: Optional[str] = 'abcd1234'", "token: Optional[str] = '[REDACTED]'"},
		{"password=f\"hunter2\"", "password=f\"[REDACTED]\""},
		{"config['password'] = 'hunter2'", "config['password'] = '[REDACTED]'"},
		{"const pw = process.env.DB_PASSWORD || 'hunter2'", "const pw = process.env.DB_PASSWORD || '[REDACTED]'"},
		{"TOKEN=${TOKEN:-abcd1234}", "TOKEN=${TOKEN:-[REDACTED]}"},
		{"--password hunter2 --user bob", "--password [REDACTED] --user bob"},
		{"--password=hunter2 --user bob", "--password=[REDACTED] --user bob"},
		{"tool --db-password 'hunter two' x", "tool --db-password '[REDACTED]' x"},
		{"tool -token abcd1234", "tool -token [REDACTED]"},
		{"tool --api-key abcd1234 run", "tool --api-key [REDACTED] run"},
		{`["tool", "--password", "hunter2"]`, `["tool", "--password", "[REDACTED]"]`},
		{"docker login -u me --password swordfish registry.example.com", "docker login -u me --password [REDACTED] registry.example.com"},
		{"**Password:** hunter2", "**Password:** [REDACTED]"},
		{"**Password**: `hunter2`", "**Password**: `[REDACTED]`"},
		{"my password: swordfish.", "my password: [REDACTED]."},
		{"user: bob, password: swordfish, host: db", "user: bob, password: [REDACTED], host: db"},
		{"password: swordfish user: bob", "password: [REDACTED] user: bob"},
		{"(password: swordfish)", "(password: [REDACTED])"},
		{"password: swordfish # do not commit", "password: [REDACTED] # do not commit"},
		{"password=a(b)c1 x", "password=[REDACTED] x"},
		{"password=ab,cd1;ef&gh x", "password=[REDACTED] x"},
		{"user=a&password=b1c2d3&x=y", "user=a&password=[REDACTED]&x=y"},
		{"f(password=abc123)", "f(password=[REDACTED])"},
		{"password=$ecret123", "password=[REDACTED]"},
		{"password=p%40ss", "password=[REDACTED]"},
		{"<password>hunter2</password>", "<password>[REDACTED]</password>"},
		{"- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [REDACTED]\n"},
		{`{"name": "API_KEY", "value": "abcd1234"}`, `{"name": "API_KEY", "value": "[REDACTED]"}`},
		{`<add key="ClearTextPassword" value="hunter2" />`, `<add key="ClearTextPassword" value="[REDACTED]" />`},
		{"ALTER USER bob WITH PASSWORD 'hunter2';", "ALTER USER bob WITH PASSWORD '[REDACTED]';"},
		{"machine h login bob password hunter2", "machine h login bob password [REDACTED]"},
		{"X-Api-Key: abcd1234", "X-Api-Key: [REDACTED]"},
		{"X-Vault-Token: abcd1234", "X-Vault-Token: [REDACTED]"},
		{"Private-Token: abcd1234", "Private-Token: [REDACTED]"},
		{"password = \"unclosed", "password = \"[REDACTED]"},
		{"password=", "password="},
		{"password1=hunter2", "password1=[REDACTED]"},
		{"NPM_TOKEN_2: abcd1234", "NPM_TOKEN_2: [REDACTED]"},
		{"password='日本語パスワード'", "password='[REDACTED]'"},
		{"export PASSWORD=\"it's\"", "export PASSWORD=\"[REDACTED]\""},
		{"password: " + strings.Repeat("a", 300), "password: [REDACTED]"},
		{"password=secret", "password=[REDACTED]"},
		{"password=0000", "password=[REDACTED]"},
		{"password=password", "password=[REDACTED]"},
		{"\"password\": \"password\"", "\"password\": \"[REDACTED]\""},
		{"--password secret x", "--password [REDACTED] x"},
		{"password = SuperSecret", "password = [REDACTED]"},
		{"password = mySecretPassword", "password = [REDACTED]"},
		{"PASSWORD=default", "PASSWORD=[REDACTED]"},
		{"encryption key = 0f1e2d3c4b5a69788796a5b4c3d2e1f0", "encryption key = [REDACTED]"},
		{"key=0f1e2d3c4b5a69788796a5b4c3d2e1f0", "key=[REDACTED]"},
		{"auth: 9f8Kd02mLq7Zx1Vb", "auth: [REDACTED]"},
	}.run(t, mustFilter(t, Options{}))
}

func TestTextsThatAreNotNamedValues(t *testing.T) {
	t.Parallel()
	untouched{
		"password_validator", "password_validator=strict", "passwords=4", "passwordHash: abcdef", "max_tokens=4096", "max_tokens: 4096", "token_count=150000",
		"the token count was 150", "the token: the count", "Token: the count was 150 at the time", "password: required field", "Password: this must be changed",
		"secret: nothing to see", "token: invalid, please log in", "api key: not set", "API key: user-provided key used for requests",
		"token: string", "token?: string;", "password: str = Field(...)", "password: String,", "password: Optional[str] = None", "password: []byte", "token: Vec<u8>,",
		"secret: &str", "password: Secret<String>", "token: z.string().min(1)", "password: { type: String }", "password: null", "password = None", "token = nil;",
		"token=true", "password=$PASS", "password=${PASS}", "password=\"$DB_PASS\"", "password=$(cat /run/x)", "password=%DB_PASS%", "password=$env:PASS",
		"token=<token>", "token: <your token>", "token=***", "password=********", "password=xxxxxxxx", "password: '...'", "token=your-api-token", "api_key=YOUR_API_KEY",
		"token: {{ .Values.token }}", "token: ${{ secrets.GITHUB_TOKEN }}", "password={password}", "f\"password={password}\"", "password=#{pw}",
		"token = getToken()", "token := os.Getenv(\"TOKEN\")", "password=os.environ[\"PASSWORD\"]", "token: process.env.TOKEN,", "token: cfg.auth.token", "secret = self.config.secret",
		"password: req.body.password", "token = await getAccessToken()", "api_key=settings.API_KEY", "password = argv[1]", "token: secrets::TOKEN", "secret: Arc<Mutex<State>>",
		"token := authToken", "const token = authToken;", "self.token = auth_token", "var password = password", "f(secret=secret)", "login(user=user, password=password)", "{ token: userToken, password: hashedPassword }",
		"PWD=/home/me/project", "OLDPWD=/tmp", "\"pwd\": \"/Users/me/work\"", "password=/run/secrets/db_password", "--password-file /run/secrets/db", "--token-file=/var/run/token",
		"--password", "--password --user bob", "use --token to log in", "the --password flag is deprecated", "--token TOKEN", "[--password PASSWORD]", "--password string   the password",
		"`--token` option", "docker login --password-stdin", "docker build --secret id=npm", "log.Info(\"token: \" + t)", "fmt.Printf(\"token: %s\\n\", t)", "\"password=\" + pw",
		"echo 'password: '$PASS", "cat /etc/passwd: permission denied", "internal/token/token.go:12:5: undefined", "config/secret:12:5", "vault-secret:1.14.2", "token.count = 50000000",
		"secretName: my-app-tls-certificate", "secretKeyRef: production-database", "imagePullSecrets: registry", "secrets: inherit", "public_key: abcdefgh", "primary key: customer_number",
		"unexpected token: identifier", "if token == \"identifier\" {", "case token.STRING:", "token::parse", "passwordless login", "PASS: TestOpen", "--- PASS: TestPassword (0.00s)",
		"keyboard: qwertyuiop", "monkey: something", "tokenizer: cl100k_base", "\"output_tokens\": 12345678", "csrf-token-name: X", "token_type=bearer", "grant_type=password&scope=all",
		"password: [REDACTED]", "password=[REDACTED]", "\"password\": \"[REDACTED]\"", "password: op://vault/item/field", "secret: arn:aws:secretsmanager:eu:1:secret:x",
		"first_pass=complete", "compass=north", "bypass: everything", "key: 550e8400-e29b-41d4-a716-446655440000", "cache key: 4f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a",
		"<input type=\"password\" name=\"pw\">", "input[type=password]", "api: v1beta1", "auth: basic", "access: read-write", "credentials: include",
		"Authorization", "authorization: required", "the bearer of this", "passphrase for key '/home/me/.ssh/id'",
	}.run(t, mustFilter(t, Options{}))
}

func TestShortValuesAreLeft(t *testing.T) {
	t.Parallel()
	untouched{"password=abc", "token=abcd123", "api_key: abc1234", "secret=a1b"}.run(t, mustFilter(t, Options{}))
}
