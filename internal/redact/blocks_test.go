package redact

import (
	"strings"
	"testing"
)

func TestPrivateSections(t *testing.T) {
	t.Parallel()
	redactions{
		{"a <private>x y</private> b", "a [PRIVATE] b"},
		{"a <PRIVATE>x</private> b", "a [PRIVATE] b"},
		{"a <Private>\nx\n</PrIvAtE>\nb", "a [PRIVATE]\nb"},
		{"a <private>x", "a [PRIVATE]"},
		{"<private>", "[PRIVATE]"},
		{"<private></private>", "[PRIVATE]"},
		{"<private>a</private><private>b</private>", "[PRIVATE][PRIVATE]"},
		{"<private>a<private>b</private>c</private>d", "[PRIVATE]d"},
		{"<private>password=hunter2</private> token=abcd1234", "[PRIVATE] token=[REDACTED]"},
		{"<private>" + keyBlock("PRIVATE KEY", "\n") + "</private> b", "[PRIVATE] b"},
		{"a </private> b", "a </private> b"},
		{"a <privatekey> b", "a <privatekey> b"},
		{"private: x", "private: x"},
	}.run(t, mustFilter(t, Options{}))
}

func keyKinds() []string {
	return []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "ANY OTHER-1 PRIVATE KEY"}
}

func TestKeyBlocks(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for _, kind := range keyKinds() {
		for _, eol := range []string{"\n", "\r\n", `\n`, `\r\n`, " "} {
			block := keyBlock(kind, eol)
			begin, _, _ := strings.Cut(block, letters(3, base64, 64))
			redactions{
				{block, Mark},
				{"a\n" + block + "\nb", "a\n" + Mark + "\nb"},
				{`{"private_key": "` + block + `", "x": 1}`, `{"private_key": "` + Mark + `", "x": 1}`},
				{"x " + begin, "x " + Mark},
				{"x " + begin + letters(9, base64, 5000), "x " + Mark},
				{block + " and " + block, Mark + " and " + Mark},
				{strings.TrimRight(block, "-"), Mark},
			}.run(t, f)
		}
	}
	redactions{
		{"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nabc\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\nx", Mark + "\nx"},
		{"-----begin rsa private key-----\nabc\n-----end rsa private key-----\nx", Mark + "\nx"},
	}.run(t, f)
}

func TestPublicBlocksStay(t *testing.T) {
	t.Parallel()
	untouched{
		"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----", "-----BEGIN PGP SIGNATURE-----",
		"------------------------------", "---- BEGIN ----", "-----BEGIN OF A STORY ABOUT A PRIVATE PERSON-----", "-----END RSA PRIVATE KEY-----",
	}.run(t, mustFilter(t, Options{}))
}

func TestKubernetesSecrets(t *testing.T) {
	t.Parallel()
	redactions{
		{
			"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  user: Ym9i\n  pass: aHVudGVyMg==\nstringData:\n  note: hunter2 again\n---\nkind: ConfigMap\ndata:\n  a: plainvalue\n",
			"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  user: [REDACTED]\n  pass: [REDACTED]\nstringData:\n  note: [REDACTED]\n---\nkind: ConfigMap\ndata:\n  a: plainvalue\n",
		},
		{
			"data:\n  a: aHVudGVyMg==\nkind: Secret\n",
			"data:\n  a: [REDACTED]\nkind: Secret\n",
		},
		{
			"kind: \"Secret\"\r\ndata:\r\n  a: \"aHVudGVyMg==\"\r\nx: plainvalue\r\n",
			"kind: \"Secret\"\r\ndata:\r\n  a: \"[REDACTED]\"\r\nx: plainvalue\r\n",
		},
		{
			"kind: Secret\nstringData:\n  k: |\n    line one\n    line two\nmetadata:\n  name: x\n",
			"kind: Secret\nstringData:\n  k: |\n    [REDACTED]\n    [REDACTED]\nmetadata:\n  name: x\n",
		},
		{
			`{"kind": "Secret", "data": {"a": "aHVudGVyMg==", "b": "eA=="}, "type": "Opaque"}`,
			`{"kind": "Secret", "data": {"a": "[REDACTED]", "b": "[REDACTED]"}, "type": "Opaque"}`,
		},
	}.run(t, mustFilter(t, Options{Level: Relaxed}))
	untouched{"kind: Secret\nmetadata:\n  name: database\n", "kind: SecretStore\ndata:\n  a: plainvalue\n", "a kind: Secret Santa\n", "kind: ConfigMap\ndata:\n  a: plainvalue\n",
		"kind: Secret\ndata:\n  a: {{ .Values.a }}\n"}.run(t, mustFilter(t, Options{}))
}
