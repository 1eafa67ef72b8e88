package redact

import "cairn/internal/redact/looks"

// commandFamilies are secrets in sentences, in calls and in arguments of programs.
func commandFamilies() []family {
	return []family{
		{"the password is", chosenPassword, []string{"the password is §", "The password is §.", "the password for bob is § and the port is 22"},
			[]string{"the password is required", "The password is base64 encoded", "the password is 12 characters long"}},
		{"set the password to", chosenPassword, []string{"set the password to § now", "password was §", "change the passphrase to \"§\""}, []string{"convert password to UTF-16LE", "the password to the vault", "password is correct"}},
		{"with password", chosenPassword, []string{"log in with password §", "connect as bob using password § on h", "with the password `§`"}, []string{"with password authentication", "with password hashing v2", "using the password field"}},
		{"the token is", alnumToken(16), []string{"the token is §", "the api key is §.", "the client secret is '§'"}, []string{"the token is valid", "the token is JWT-based", "the api key is missing"}},
		{"passphrase of words", func(s uint64) string { return "correct horse battery " + letters(s, smalls, 7) }, []string{"passphrase: §", "Passphrase: §\n", "passphrase=\"§\""},
			[]string{"passphrase: enter it twice when asked", "passphrase: leave empty for none", "passphrase: required"}},
		{"argument of Setenv", plainPassword, []string{`os.Setenv("DB_PASSWORD", "§")`, `t.Setenv('API_TOKEN', '§')`, `headers.set("X-Api-Key", "§")`}, []string{`os.Setenv("DB_PASSWORD", pw)`, `t.Setenv("DB_PASSWORD", "")`, `flag.String("password", "", "the password")`}},
		{"argument of setPassword", chosenPassword, []string{`setPassword("§")`, `user.set_password('§')`, `builder.withPassword("§").build()`}, []string{`getPassword("Enter password: ")`, `setPassword(os.Getenv("X"))`, `setToken("identifier")`}},
		{"basic authentication in code", chosenPassword, []string{`req.SetBasicAuth("bob", "§")`, `requests.get(u, auth=("bob", "§"))`, `url.UserPassword("bob", "§")`}, []string{"req.SetBasicAuth(user, pass)", "requests.get(u, auth=(user, password))", `auth("bob")`}},
		{"standard input", plainPassword, []string{"echo § | docker login -u me --password-stdin", "printf '§' | sudo -S true; echo \"§\" | gh auth login --with-token", "docker login --password-stdin <<< \"§\""},
			[]string{"cat pw | docker login --password-stdin", "echo $PAT | docker login --password-stdin", "aws ecr get-login-password | docker login --password-stdin h"}},
		{"chpasswd", plainPassword, []string{"echo \"bob:§\" | sudo chpasswd", "echo bob:§ | chpasswd -c SHA512", "printf 'bob:§' | chpasswd"}, []string{"cat users | chpasswd", "echo $LINE | chpasswd", "man chpasswd | less"}},
		{"sudo -S", plainPassword, []string{"echo § | sudo -S apt update", "echo '§' | sudo -S -k true", "a; echo § | sudo -S b"}, []string{"echo hello | sudo -s x", "sudo -S true < pw", "echo $PW | sudo -S x"}},
		{"curl -u", plainPassword, []string{"curl -u bob:§ https://h", "curl --user 'bob:§' h", "curl -ubob:§ h"}, []string{"curl -u bob https://h", "curl -u $USER:$PASS h", "curl --user-agent x:y h"}},
		{"curl -b", alnumToken(20), []string{"curl -b sid=§ https://h", "curl -b 'sid=§; a=§' h", "curl -s -c jar -b \"sid=§\" h"}, []string{"curl -b cookies.txt h", "curl -c jar.txt h", "curl -b $JAR h"}},
		{"mysql -p", plainPassword, []string{"mysql -u root -p§ app", "mysqldump -p'§' app", "mariadb -p§ x"}, []string{"mysql -u root -p app", "mysql -p$PASS app", "mysql --port 3306"}},
		{"sshpass", plainPassword, []string{"sshpass -p § ssh h", "sshpass -p§ ssh h", "sshpass -p '§' scp a h:"}, []string{"sshpass -e ssh h", "sshpass -p \"$PASS\" ssh h", "sshpass -f file ssh h"}},
		{"redis-cli -a", plainPassword, []string{"redis-cli -a § ping", "redis-cli -h h -a '§' ping", "redis-cli -p 1 -a § x"}, []string{"redis-cli -h h ping", "redis-cli -a $PASS ping", "redis-cli --askpass"}},
		{"docker login -p", plainPassword, []string{"docker login -u me -p § h", "podman login -p § h", "helm registry login -u me -p § h"}, []string{"docker run -p 8080:80 x", "docker login -u me h", "docker login -p $PW h"}},
		{"mongodump -p", plainPassword, []string{"mongodump -u bob -p § --db x", "mongosh -u bob -p '§'", "mongorestore -p § dump"}, []string{"docker run --name mongo -p 27017:27017 mongo", "mongosh --port 27017", "mongodump -p $PW"}},
		{"openssl", plainPassword, []string{"openssl rsa -in k.pem -passin pass:§", "openssl enc -aes-256-cbc -pass pass:§ -in x", "openssl enc -k § -in x"}, []string{"openssl enc -pass env:PW -in x", "openssl rsa -passin file:pw", "openssl req -newkey rsa:4096 -keyout key.pem"}},
		{"htpasswd -b", plainPassword, []string{"htpasswd -b .htpasswd bob §", "htpasswd -nbB bob §", "htpasswd -cbBC 10 f bob §"}, []string{"htpasswd -c .htpasswd bob", "htpasswd -B .htpasswd bob", "htpasswd -b f bob $PW"}},
		{"unzip -P", plainPassword, []string{"unzip -P § a.zip", "zip -P § a.zip b", "unzip -o -P '§' a.zip"}, []string{"unzip -p a.zip f", "zip -r a.zip b", "unzip -P \"$PW\" a.zip"}},
		{"7z -p", plainPassword, []string{"7z x -p§ a.7z", "7za a -mhe=on -p§ a.7z b", "unrar x -p§ a.rar"}, []string{"7z x a.7z -oout", "7z a -p a.7z", "7z x -p$PW a.7z"}},
		{"smbclient -U", plainPassword, []string{"smbclient //h/s -U bob%§", "smbclient -U 'bob%§' //h/s -c ls", "rpcclient -U bob%§ h"}, []string{"smbclient //h/s -U bob", "smbclient -N //h/s", "smbclient -U bob%$PW //h/s"}},
		{"ConvertTo-SecureString", chosenPassword, []string{`ConvertTo-SecureString "§" -AsPlainText -Force`, `$s = ConvertTo-SecureString -String '§' -AsPlainText`, `(ConvertTo-SecureString -AsPlainText "§" -Force)`},
			[]string{"ConvertTo-SecureString $plain -AsPlainText", "Get-Content f | ConvertTo-SecureString", "ConvertFrom-SecureString $s"}},
		{"keytool", plainPassword, []string{"keytool -storepass § -list", "keytool -genkey -keypass § -alias a", "jarsigner -storepass '§' a.jar"}, []string{"keytool -storepass:env PW", "keytool -storetype PKCS12", "keytool -storepass $PW"}},
		{"other programs", plainPassword, []string{"wpa_passphrase Home §", "rabbitmqctl add_user bob §", "sqlcmd -S h -U sa -P § -Q x"}, []string{"wpa_passphrase Home < pw", "rabbitmqctl list_users", "sqlcmd -S h -E"}},
		{"kubernetes secret", plainPassword, []string{"kind: Secret\ndata:\n  a: §\n", "kind: Secret\nstringData:\n  b: '§'\n", `{"kind": "Secret", "data": {"a": "§"}}`}, []string{"kind: ConfigMap\ndata:\n  a: plainvalue\n", "kind: SecretStore\ndata:\n  a: x", "a kind: Secret Santa"}},
	}
}

// publicFamilies are random texts that must stay, and secrets next to or like them.
func publicFamilies() []family {
	const google = "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms"
	id := func(n uint64) string { return letters(n, base64u, 20) }
	return []family{
		{"kubernetes names", alnumToken(32), []string{"pod/web-6d4cf56db6-x7k2p §", "token: §", "job-x7k2p: §"},
			[]string{"pod/payment-gateway-worker-6b8c9f7d5z-x7k2p", "serviceaccount token: default-token-x7k2p", "secret: db-credentials-9tg5m2kbhc", "secretName: api-gateway-tls-9tg5m2kbhc", "replicaset/a-long-service-name-5b8f6"}},
		{"nix store", alnumToken(32), []string{"/nix/store/0c1x7mgp3h0kq2y8mnr8z0gk8xv5wl3p-hello §", "/nix/store and §", "nix-token=§"},
			[]string{"/nix/store/0c1x7mgp3h0kq2y8mnr8z0gk8xv5wl3p-hello-2.12", "/nix/store/" + letters(1, looks.NixLetters, 32) + "-glibc-2.38/lib", "sha256 = \"" + letters(2, looks.NixLetters, 52) + "\";"}},
		{"go build ids", alnumToken(32), []string{"-buildid §", "buildid=" + id(1) + "/" + id(2) + " §", "build id §"},
			[]string{"-buildid " + id(1) + "/" + id(1), "Go BuildID=" + id(1) + "/" + id(2) + "/" + id(3) + "/" + id(4) + ", stripped", "build id \"" + id(5) + "/" + id(6) + "\""}},
		{"ids of documents", alnumToken(32), []string{"https://docs.google.com/document/d/" + google + "/edit?token=§", "https://example.com/d/§", "https://docs.google.com.example.com/§"},
			[]string{"https://docs.google.com/document/d/" + google + "/edit#gid=0", "https://drive.google.com/file/d/" + letters(1, base64u, 33) + "/view?usp=sharing", "https://www.figma.com/file/" + letters(2, alnum, 22) + "/A-Title"}},
		{"usage texts", plainPassword, []string{"  --password §   x", "tool --password § [x]", "usage: see --token §"},
			[]string{"  --password PASS        the password", "  -p, --password text    password to use", "usage: tool --user USER --password PASSWD", "  [--password PASS] [--token TOK]", "  --secret stringArray   secrets to expose"}},
		{"steps through a menu", plainPassword, []string{"secret: §", "password: § (see Settings)", "Secret: §"},
			[]string{"secret: Settings > Secrets and variables", "Token: Settings → Developer settings", "API key: Dashboard > API"}},
		{"digests", alnumToken(32), []string{"sha256 §", "digest: §", "a@sha256:§"},
			[]string{"sha512-" + letters(7, base64, 86) + "==", "h1:" + letters(8, base64, 43) + "=", "ghcr.io/org/app@sha256:" + letters(5, hexes, 64)}},
	}
}
