package redact

// families returns all families of the table. The secrets are generated when the test
// runs.
func families() []family {
	return append(append(knownFamilies(), namedFamilies()...), append(commandFamilies(), publicFamilies()...)...)
}

// knownFamilies are blocks, and secrets with a characteristic shape.
func knownFamilies() []family {
	where := []string{"see § there", `{"x": "§"}`, "a=§"}
	return []family{
		{"private section", func(s uint64) string { return "<private>" + plainPassword(s) + "</private>" },
			[]string{"a § b", "note: §", "x\n§\ny"}, []string{"a <privates> b", "</private>", "private: yes"}},
		{"key block", pemBlock, []string{"§", "key:\n§\nend", "a § b"},
			[]string{"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "---- BEGIN ----"}},
		{"aws access key", prefixed("AK"+"IA", capitals+"234567", 16), where, []string{"AKIAdvisor", "see AK" + "IA here", "xAKIAx"}},
		{"github token", prefixed("gh"+"p_", alnum, 36), where, []string{"ghp_token", "ghs_something", "use ghp_ tokens"}},
		{"github fine-grained token", prefixed("github_"+"pat_", alnum, 82), where, []string{"github_pat_ token", "github_patch_file", "github_path"}},
		{"gitlab token", prefixed("gl"+"pat-", alnum, 20), where, []string{"glpat-documentation", "glpat-", "glpat-short1"}},
		{"circleci token", func(s uint64) string { return "CCI" + "PAT_" + letters(s, alnum, 22) + "_" + letters(s, hexes, 40) }, where,
			[]string{"CCIPAT_name", "CCIPRJ_ tokens", "CCIPAT_short_" + letters(1, hexes, 8)}},
		{"slack token", prefixed("xo"+"xb-123456789012-", alnum, 24), where, []string{"xoxb-your-token-here", "xoxo-love", "xoxb-"}},
		{"slack webhook", func(s uint64) string { return "T0" + letters(s, capitals, 8) + "/B0/" + letters(s, alnum, 24) },
			[]string{"https://hooks.slack.com/services/§", "curl -X POST https://hooks.slack.com/services/§ -d x", "url: https://hooks.slack.com/services/§"},
			[]string{"https://hooks.slack.com/services/", "https://slack.com/services/list", "hooks.slack.com"}},
		{"discord webhook", func(s uint64) string { return letters(s, digits, 18) + "/" + letters(s, alnum, 40) },
			[]string{"https://discord.com/api/webhooks/§", "(https://discord.com/api/webhooks/§)", "a https://discordapp.com/api/webhooks/§ b"},
			[]string{"https://discord.com/api/webhooks/", "https://discord.com/channels/1/2", "discord.com/developers"}},
		{"google api key", prefixed("AI"+"za", alnum, 35), where, []string{"AIzawa", "AIza keys", "AIza" + letters(1, alnum, 5)}},
		{"google oauth token", prefixed("ya"+"29.", alnum, 60), where, []string{"ya29.short", "ya29", "papaya29.txt"}},
		{"anthropic key", prefixed("sk-"+"ant-api03-", alnum, 93), where, []string{"sk-ant-short", "sk-ant", "task-antenna-control"}},
		{"openai key", prefixed("sk-"+"proj-", alnum, 80), where, []string{"sk-project-name", "sk-iplink", "sk-learn-contrib-model-selection"}},
		{"stripe key", prefixed("sk_"+"live_", alnum, 24), where, []string{"sk_live_short", "sk_lives", "task_live_reload"}},
		{"stripe webhook secret", prefixed("wh"+"sec_", alnum, 32), where, []string{"whsec_verify", "whsec_", "whsec"}},
		{"json web token", fakeJWT, where, []string{"ey" + "Jhb.not.it", "eye.eye.eye", "see ey" + "J here"}},
		{"npm token", prefixed("np"+"m_", alnum, 36), where, []string{"npm_config_registry", "npm_package_version", "npm_lifecycle_event"}},
		{"pypi token", prefixed("py"+"pi-AgEIcHlwaS5vcmc", alnum, 80), where, []string{"pypi-package", "pypi-publish-workflow", "pypi-AgE"}},
		{"huggingface token", prefixed("hf"+"_", smalls+capitals, 34), where, []string{"hf_hub_download", "hf_transfer", "half_open"}},
		{"sendgrid key", func(s uint64) string { return "S" + "G." + letters(s, alnum, 22) + "." + letters(s, alnum, 43) }, where, []string{"SG.py", "SG.short.name", "MSG.text"}},
		{"digitalocean token", prefixed("dop_"+"v1_", hexes, 64), where, []string{"dop_v1_short", "dop_v2", "adop_v1"}},
		{"shopify token", prefixed("shp"+"at_", hexes, 32), where, []string{"shpat_short", "shpat", "shapat_file"}},
		{"vault token", prefixed("hv"+"s.", alnum, 92), where, []string{"hvs.short", "s.substring", "s.ReadUint24LengthPrefixed(&x)"}},
		{"docker token", prefixed("dckr_"+"pat_", alnum, 27), where, []string{"dckr_pat_short", "dckr_pat", "docker_path"}},
		{"age secret key", prefixed("AGE-"+"SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), where, []string{"AGE-SECRET-KEY", "AGE-SECRET-KEY-1SHORT", "age of keys"}},
		{"telegram token", prefixed("712345678:A"+"A", alnum, 33), where, []string{"12345:AA", "712345678:text", "10:15:32"}},
		{"asana token", func(s uint64) string { return "1/" + letters(s, "123456789", 16) + ":" + letters(s, hexes, 32) }, where,
			[]string{"1/2", "10/0" + letters(1, hexes, 32), "a/1/2:" + letters(2, hexes, 32)}},
		{"older asana token", func(s uint64) string { return "0/" + letters(s, hexes, 32) }, where,
			[]string{"cache/0/" + letters(1, hexes, 32), "0/1 done", "10/" + letters(2, hexes, 32)}},
		{"mailgun key", prefixed("key-", hexes, 32), where, []string{"cache-key-" + letters(1, hexes, 32), "key-value", "key-" + letters(2, hexes, 40)}},
		{"newer mailgun key", func(s uint64) string {
			return letters(s, hexes, 32) + "-" + letters(s, hexes, 8) + "-" + letters(s+1, hexes, 8)
		}, where,
			[]string{letters(1, hexes, 32) + "-" + letters(2, hexes, 8), letters(1, hexes, 40) + "-" + letters(2, hexes, 8) + "-" + letters(3, hexes, 8), letters(1, hexes, 8) + "-" + letters(3, hexes, 8)}},
		{"random word", alnumToken(32), where, []string{letters(1, hexes, 40), "internationalization-of-all-messages", "550e8400-e29b-41d4-a716-446655440000"}},
		{"seed phrase of 12 words", seedPhraseOf(12), []string{"seed: §", `{"mnemonic": "§"}`, "wallet (§)\nnext"},
			[]string{"abandon ability able about above absent absorb abstract absurd abuse access", "true, false, true, true, false, true, true, false, true, true, false, true", "word word word word word word word word word word word word word word"}},
		{"seed phrase of 24 words", seedPhraseOf(24), []string{"§", "backup '§'", "words:\n§\n\n"},
			[]string{"the quick brown fox jumps over the lazy dog and then it will rest under that tree", "can will must have make keep", "about above, any other time; then again"}},
	}
}

// namedFamilies are values of names, headers and URLs.
func namedFamilies() []family {
	return []family{
		{"password, assigned", chosenPassword, []string{"password=§", "password = '§'", "DB_PASSWORD=§ cmd"}, []string{"password=$PASS", "password_validator=strict", "passwords=4"}},
		{"password, in JSON", chosenPassword, []string{`{"password": "§"}`, `{"dbPassword":"§","x":1}`, `{"a": {"passwd": "§"}}`}, []string{`{"password": null}`, `{"password": ""}`, `{"passwordHash": 12}`}},
		{"password, in YAML", chosenPassword, []string{"password: §\n", "db:\n  password: '§'\n", "  passphrase: §"}, []string{"password: ${PASS}", "password: required field", "password: {{ .Values.password }}"}},
		{"password, as a flag", chosenPassword, []string{"tool --password §", "tool --db-password=§ x", `["tool", "--password", "§"]`}, []string{"tool --password --user bob", "--password-file /run/x", "the --password flag is deprecated"}},
		{"password, in a connection string", chosenPassword, []string{"Server=db;Password=§;Database=x", "host=h password=§ dbname=x", "User Id=sa;Pwd=§;"}, []string{"Server=db;Integrated Security=true", "host=h user=u dbname=x", "Trusted_Connection=True;"}},
		{"password, in XML", chosenPassword, []string{"<password>§</password>", `<add key="Password" value="§" />`, "<dbPassword>§</dbPassword>"}, []string{"<password></password>", `<input type="password">`, "<passwordPolicy>strict</passwordPolicy>"}},
		{"password, in SQL", chosenPassword, []string{"ALTER USER bob WITH PASSWORD '§';", "CREATE ROLE x PASSWORD '§'", "CREATE USER bob WITH LOGIN PASSWORD '§';"}, []string{"SELECT password FROM users", "ALTER TABLE u DROP COLUMN password;", "PASSWORD NULL"}},
		{"password, in netrc", chosenPassword, []string{"machine h login bob password §", "default login me password §\n", "machine h\n  login bob\n  password §\n"}, []string{"login with password correct", "the login page asks for a password first", "login as root"}},
		{"name and value", chosenPassword, []string{"- name: DB_PASSWORD\n  value: §\n", `{"name": "DB_PASSWORD", "value": "§"}`, "- name: API_TOKEN\n  value: '§'"}, []string{"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: x", "- name: DB_HOST\n  value: localhost", "name: password-reset"}},
		{"token, assigned", alnumToken(16), []string{"token=§", "GITHUB_TOKEN=§", "accessToken: §"}, []string{"max_tokens=4096", "token = getToken()", "token: string"}},
		{"api key", alnumToken(16), []string{"api_key=§", "apiKey: \"§\"", "OPENAI_API_KEY=§"}, []string{"api_key=YOUR_API_KEY", "API key: not set", "apiKey: config.apiKey,"}},
		{"client secret", alnumToken(16), []string{"client_secret: §", "clientSecret = '§'", "AWS_SECRET_ACCESS_KEY=§"}, []string{"client_secret: <secret>", "secretName: my-app", "secret: nothing to see"}},
		{"secret_key_base", hexToken(32), []string{"SECRET_KEY_BASE=§", "secret_key_base: §", "config.secret_key_base = '§'"}, []string{"secret_key_base: <%= ENV[\"X\"] %>", "DATABASE_BASE=/srv", "SECRET_KEY_BASE=$BASE"}},
		{"names in _pass", plainPassword, []string{"SMTP_PASS=§", "smtp_pass: §", "dbPass = \"§\""}, []string{"first_pass=complete", "PASS: TestOpen", "render_pass: opaque"}},
		{"pass beside a user", plainPassword, []string{"{ user: 'bob', pass: '§' }", `{"user":"bob","pass":"§"}`, "tool --user bob --pass § x"}, []string{`{"suite": "x", "pass": "all"}`, "pass: true", "--pass-through x"}},
		{"credentials", func(s uint64) string { return "bob:" + plainPassword(s) }, []string{"AWS_CREDENTIALS=§", "credentials: '§'", "skopeo copy --src-creds § a b"},
			[]string{"credentials: include", "GOOGLE_APPLICATION_CREDENTIALS=/run/key.json", "credentials: oauth2client.OAuth2Credentials"}},
		{"_authToken after a blank", alnumToken(20), []string{"npm config set //registry.example.com/:_authToken §", "_authToken §", "//registry.example.com/:_authToken=§"},
			[]string{"_authToken is required", "_authToken ${NPM_TOKEN}", "the _authToken field"}},
		{"_password after a blank", plainPassword, []string{"npm config set //r.example.com/:_password §", "//r.example.com/:_password=§", "_auth=§"}, []string{"self._password is None", "the _password field", "_auth required"}},
		{"ansible_*_pass", plainPassword, []string{"ansible_ssh_pass=§", "ansible_become_pass: §", "h1 ansible_sudo_pass='§' x=1"}, []string{"ansible_become_pass: \"{{ vault_pass }}\"", "ansible_user=bob", "ansible_ssh_pass=$PASS"}},
		{"psk", plainPassword, []string{"psk=§", "  psk=\"§\"", "nmcli c mod x wifi-sec.psk §"}, []string{"key_mgmt=WPA-PSK", "psk=$PSK", "the psk is set"}},
		{"authorization header", alnumToken(20), []string{"Authorization: Bearer §", `{"Authorization": "Basic §"}`, "-H 'Authorization: token §'"}, []string{"Authorization: Bearer $TOKEN", "Authorization: Basic auth", "Bearer tokens are used"}},
		{"api key header", alnumToken(16), []string{"X-Api-Key: §", "curl -H 'X-Foo-Key: §' h", "Private-Token: §"}, []string{"X-Api-Key: <key>", "Accept: text/html", "X-Request-Id: 550e8400-e29b-41d4-a716-446655440000"}},
		{"cookie header", plainPassword, []string{"Cookie: sid=§", "Set-Cookie: sid=§; Path=/", "curl --cookie 'sid=§' h"}, []string{"Cookie: we should set it", "cookies=4", "cookie: string"}},
		{"url password", plainPassword, []string{"postgres://bob:§@db.example.com/app", "redis://:§@cache:6379/0", "git clone https://bob:§@h.example.com/x.git"}, []string{"https://u:${PASS}@h", "ssh://git@h/x", "https://h:8080/x@y"}},
		{"token as the user of a url", func(s uint64) string { return "g" + letters(s, hexes, 5) + "X9q" + letters(s, alnum, 9) + "4Zt" }, []string{"https://§@github.com/x/y.git", "git clone https://§:@h.example.com/x", "https://§:@h.example.com/v1"},
			[]string{"https://deploy-user@h.example.com/a", "https://john.smith1985@h.example.com/a", "ssh://ubuntu2204-builder@h/a"}},
		{"sentry dsn", hexToken(32), []string{"https://§@o12345.ingest.sentry.io/123456", "dsn: \"https://§@sentry.example.com/2\",", "SENTRY_DSN=https://§@o1.ingest.de.sentry.io/7"},
			[]string{"https://o12345.ingest.sentry.io/123456", "https://public@sentry.example.com/1", "https://sentry.io/organizations/x/issues/1"}},
		{"url query", alnumToken(16), []string{"https://h/x?token=§", "https://h/x?a=b&sig=§&c=d", "https://h/x?X-Amz-Signature=§"}, []string{"https://h/x?sig=&b=c", "?primary_key=abcd", "https://h/x?token=<token>"}},
	}
}
