package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hubProcess is a process of cairn hub.
type hubProcess struct {
	h      *home
	cmd    *exec.Cmd
	url    string
	stderr *gathered
	client *http.Client
}

func (h *home) hub(args ...string) *hubProcess {
	h.t.Helper()
	p := &hubProcess{h: h, cmd: h.command(append([]string{"hub", "--listen", "127.0.0.1:0"}, args...)...), stderr: &gathered{}, client: &http.Client{Timeout: stopLimit}}
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it has already exited, unless the test failed
	h.soon("the hub's address", func() bool { return strings.Contains(p.stderr.String(), "\n") })
	url, ok := strings.CutPrefix(p.stderr.String(), "cairn: hub at ")
	if !ok {
		h.t.Fatalf("cairn hub said %s", p.stderr)
	}
	p.url = strings.TrimSpace(url)
	return p
}

func (p *hubProcess) call(method, path, token, body string) (int, string) {
	p.h.t.Helper()
	r, err := http.NewRequestWithContext(p.h.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := p.client.Do(r)
	if err != nil {
		p.h.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if cerr := answer.Body.Close(); err != nil || cerr != nil {
		p.h.t.Fatal(err, cerr)
	}
	return answer.StatusCode, string(text)
}

// stop stops the hub. It must exit with 0 and print nothing more.
func (p *hubProcess) stop() {
	p.h.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.h.t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.h.t.Errorf("cairn hub: %v, %s", err, p.stderr)
	}
	if said := p.stderr.String(); strings.Count(said, "\n") != 1 {
		p.h.t.Errorf("cairn hub said %s", said)
	}
}

const hubMemory = "5f0c1d2e-0000-4000-8000-000000000001"

func hubPush(seq int, kind, doc string) string {
	return fmt.Sprintf(`{"device_id":"desk","items":[{"stream":%q,"seq":%d,"kind":%q,"id":"pending-1","op":"put","key":"key-%d","doc":%s}]}`, hubMemory, seq, kind, seq, doc)
}

func TestAHubStopsInOrderAndKnowsEverythingWhenItStartsAgain(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	out, err := h.command("hub", "token", "create", "--user", "new").Output()
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(out))
	p := h.hub()
	if status, body := p.call("GET", "/v1/health", "", ""); status != 200 || !strings.Contains(body, `"healthy"`) {
		t.Errorf("health: %d %s", status, body)
	}
	if status, _ := p.call("GET", "/v1/hub/whoami", "x", ""); status != 401 {
		t.Errorf("with another token: %d", status)
	}
	const vault = `"vault":{"vaultId":"5f0c1d2e-0000-4000-8000-000000000002","title":"work","creationTime":"2026-01-01T00:00:00Z"}`
	for seq, item := range [][2]string{
		{"memory", `{"memoryId":"` + hubMemory + `","memoryType":"chat","title":"main","creationTime":"2026-01-01T00:00:00Z",` + vault + `}`},
		{"entry", `{"rawEntry":"kept","capturedTime":"2026-01-01T00:00:00Z"}`},
	} {
		if status, body := p.call("POST", "/v1/hub/push", token, hubPush(seq+1, item[0], item[1])); status != 200 || !strings.Contains(body, `"status":201`) {
			t.Fatalf("push: %d %s", status, body)
		}
	}
	pull := `{"cursors":[{"stream":"` + hubMemory + `","after":%d}],"wait_ms":%d}`
	waited := make(chan string, 1)
	go func() {
		_, body := p.call("POST", "/v1/hub/pull", token, fmt.Sprintf(pull, 2, 25000))
		waited <- body
	}()
	p.h.soon("the waiting pull", func() bool {
		_, body := p.call("GET", "/metrics", token, "")
		return strings.Contains(body, "cairn_hub_waiting_pulls 1\n")
	})
	p.stop()
	if body := <-waited; !strings.Contains(body, `"streams":[]`) {
		t.Errorf("the waiting pull got %s", body)
	}
	p = h.hub()
	if _, body := p.call("POST", "/v1/hub/pull", token, fmt.Sprintf(pull, 0, 0)); !strings.Contains(body, `"rawEntry":"kept"`) {
		t.Errorf("after a restart: %s", body)
	}
	p.stop()
}

func TestAHubSpeaksTLSAndTakesARenewedCertificate(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newClone(t)
	cert, key := filepath.Join(h.dir, "cert.pem"), filepath.Join(h.dir, "key.pem")
	first := makeCertificate(t, cert, key)
	p := h.hub("--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("the hub is at %s", p.url)
	}
	trust := func(c *x509.Certificate) int {
		roots := x509.NewCertPool()
		roots.AddCert(c)
		p.client = &http.Client{Timeout: stopLimit, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		defer p.client.CloseIdleConnections()
		status, body := p.call("GET", "/v1/health", "", "")
		var health struct{ Status string }
		if err := json.Unmarshal([]byte(body), &health); err != nil || health.Status != "healthy" {
			t.Errorf("health: %s", body)
		}
		return status
	}
	if trust(first) != 200 {
		t.Error("no answer over TLS")
	}
	second := makeCertificate(t, cert, key)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	if trust(second) != 200 {
		t.Error("no answer with the renewed certificate")
	}
	p.stop()
}

// makeCertificate writes a certificate for 127.0.0.1 and its key.
func makeCertificate(t *testing.T, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
