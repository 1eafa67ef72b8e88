package redact

// program is a command that accepts a password in an argument whose name does not identify
// it.
type program struct {
	name  string // a name that ends with a blank is complete, others are prefixes
	flag  string // the flag before the password
	style flagStyle
}

type flagStyle uint8

const (
	attached   flagStyle = iota // -psecret
	apart                       // -p secret
	either                      // -p secret or -psecret
	percent                     // -U user%secret
	positional                  // user secret
	userPass                    // -u user:secret, headers and cookies
	stdin                       // the program or flag in name reads the secret from standard input
)

var programs = [...]program{
	{"curl", "-u", userPass},
	{"mysql", "-p", attached},
	{"mariadb", "-p", attached},
	{"sshpass", "-p", either},
	{"redis-cli", "-a", apart},
	{"docker login", "-p", apart},
	{"podman login", "-p", apart},
	{"nerdctl login", "-p", apart},
	{"buildah login", "-p", apart},
	{"skopeo login", "-p", apart},
	{"registry login", "-p", apart}, // helm, oras
	{"oc login", "-p", apart},
	{"az login", "-p", apart},
	{"cf login", "-p", apart},
	{"mongosh", "-p", apart},
	{"mongodump", "-p", apart},
	{"mongorestore", "-p", apart},
	{"mongoimport", "-p", apart},
	{"mongoexport", "-p", apart},
	{"ldapsearch", "-w", apart},
	{"ldapadd", "-w", apart},
	{"ldapmodify", "-w", apart},
	{"sqlcmd", "-P", apart},
	{"mosquitto_", "-P", apart},
	{"openssl", "pass:", attached},
	{"openssl", "-k", apart},
	{"htpasswd", "", positional},
	{"rabbitmqctl add_user", "", positional},
	{"rabbitmqctl change_password", "", positional},
	{"wpa_passphrase", "", positional},
	{"unzip", "-P", either},
	{"zip ", "-P", either},
	{"7z ", "-p", attached},
	{"7za ", "-p", attached},
	{"7zz ", "-p", attached},
	{"7zr ", "-p", attached},
	{"rar ", "-p", attached},
	{"rar ", "-hp", attached},
	{"unrar ", "-p", attached},
	{"smbclient", "-U", percent},
	{"rpcclient", "-U", percent},
	{"smbclient", "--user=", percent},
	{"xfreerdp", "/p:", attached},
	{"nmcli", "password", apart},
	{"ConvertTo-SecureString", "", positional},
	{"convertto-securestring", "", positional},
	{"-stdin", "", stdin},
	{"with-token", "", stdin},
	{"chpasswd", "", stdin},
	{"sudo -S", "", stdin},
}
