package notes

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const audience = "https://api.example.test/"

// gatehouse is a server in a process of its own.
type gatehouse struct {
	url    string
	client *http.Client
	stop   func()
}

var server gatehouse

// TestMain starts Gatehouse before the first test, and stops it after the last one.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		data, err := os.MkdirTemp("", "gatehouse-")
		if err == nil {
			defer os.RemoveAll(data)
			server, err = startGatehouse(data)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.stop()
		return m.Run()
	}())
}

// startGatehouse starts one with config/tenant.yaml, on a free port.
func startGatehouse(data string) (gatehouse, error) {
	command := os.Getenv("GATEHOUSE")
	if command == "" {
		command = "node ../../src/main.js"
	}
	words := strings.Fields(command)
	process := exec.Command(words[0], words[1:]...)
	process.Env = append(os.Environ(), "PORT=0", "DATA_DIR="+data)
	process.Stderr = os.Stderr
	// A group of its own: npx starts another process.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := process.StdoutPipe()
	if err != nil {
		return gatehouse{}, err
	}
	if err := process.Start(); err != nil {
		return gatehouse{}, err
	}
	stop := func() {
		syscall.Kill(-process.Process.Pid, syscall.SIGTERM)
		process.Wait()
	}
	url, err := listening(output)
	if err != nil {
		stop()
		return gatehouse{}, err
	}
	// Somebody has to read what else it logs.
	go io.Copy(io.Discard, output)
	authority, err := os.ReadFile(filepath.Join(data, "tls", "ca.pem"))
	if err != nil {
		stop()
		return gatehouse{}, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	return gatehouse{url, &http.Client{Transport: transport}, stop}, nil
}

// listening reads the log, which is JSON, a line for each event, up to the address of the server.
func listening(log io.Reader) (string, error) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var event struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Msg == "listening" {
			return event.URL, nil
		}
	}
	return "", errors.New("Gatehouse has ended: its output says why")
}

// tokenOf returns an access token of a user in config/tenant.yaml.
func tokenOf(t *testing.T, email, scope string) string {
	t.Helper()
	answer, err := server.client.PostForm(server.url+"/oauth/token", url.Values{
		"grant_type":    {"password"},
		"client_id":     {"tests"},
		"client_secret": {"tests-example-secret"},
		"username":      {email},
		"password":      {"Gatehouse-1"},
		"audience":      {audience},
		"scope":         {scope},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&tokens); err != nil || tokens.AccessToken == "" {
		t.Fatalf("no token for %s: status %d", email, answer.StatusCode)
	}
	return tokens.AccessToken
}
