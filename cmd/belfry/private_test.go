package main

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func opened(t *testing.T, mode os.FileMode, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// Each file with a key or a secret that the program reads gets a warning, in the log or on stderr, while others can read it.
func TestFilesWithKeysThatOthersReadGetAWarning(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys := filepath.Join(folder, "it's keys")
	if got := belfry(t, "", "secret", "new-key", keys); got.code != 0 {
		t.Fatal(got.errors)
	}
	token, apiKey, value := file("token", "bel_x"), file("api.key", "k"), file("value", "hush")
	secretsDir := filepath.Dir(file("secrets/one", "1"))
	config := file("config.toml", "[profiles.default]\ntoken = \"bel_x\"\n")
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	made := file("data/secrets.key", "")
	if err := os.Remove(made); err != nil {
		t.Fatal(err)
	}
	if got := belfry(t, "", "secret", "new-key", made); got.code != 0 {
		t.Fatal(got.errors)
	}
	mailURL := file("smtp.url", "smtps://ann:hush@mail.example.org")
	cert, tlsKey := certificateFiles(t, folder, time.Now().Add(time.Hour))

	// said is what a start or a command says.
	said := map[string]func() string{
		keys: func() string {
			cmd, _, log := startProcess(t, "--data", data, "--secrets-key-file", keys)
			stopped(t, cmd)
			return log.String()
		},
		mailURL: func() string {
			cmd, _, log := startProcess(t, "--data", data, "--smtp-url-file", mailURL, "--smtp-from", "belfry@example.org")
			stopped(t, cmd)
			return log.String()
		},
		made: func() string {
			cmd, _, log := startProcess(t, "--data", data)
			stopped(t, cmd)
			return log.String()
		},
		filepath.Join(secretsDir, "one"): func() string {
			cmd, _, log := startProcess(t, "--data", data, "--secrets-dir", secretsDir)
			stopped(t, cmd)
			return log.String()
		},
		tlsKey: func() string {
			var log lines
			if _, err := readCertificate(cert, tlsKey, slog.New(slog.NewJSONHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
			return log.String()
		},
		token: func() string {
			return belfry(t, "", "job", "list", "--address", "http://127.0.0.1:1", "--token-file", token).errors
		},
		apiKey: func() string {
			return belfry(t, "", "job", "list", "--address", "http://127.0.0.1:1", "--auth", "api-key", "--api-key-file", apiKey).errors
		},
		value: func() string {
			return belfry(t, "", "secret", "set", "s", "--from-file", value, "--address", "http://127.0.0.1:1").errors
		},
		config: func() string {
			t.Setenv("BELFRY_CONFIG", config)
			defer t.Setenv("BELFRY_CONFIG", os.DevNull)
			return belfry(t, "", "version").errors
		},
	}
	for path, says := range said {
		opened(t, 0o600, path)
		opened(t, 0o700, secretsDir)
		if got := says(); strings.Contains(got, "chmod") {
			t.Errorf("%s is its owner's alone, and it says\n%s", path, got)
		}
		opened(t, 0o755, secretsDir)
		for mode, shown := range map[os.FileMode]string{0o640: "0640", 0o604: "0604"} {
			opened(t, mode, path)
			got := says()
			quoted := path
			if path == keys {
				quoted = strings.ReplaceAll(path, "'", `'\''`)
				quoted = "'" + quoted + "'"
			}
			for _, want := range []string{"chmod 600 " + quoted, shown, "others than its owner get at"} {
				if !strings.Contains(strings.ReplaceAll(got, `\\`, `\`), want) {
					t.Errorf("%s with mode %s: it says\n%s\nwant %q", path, shown, got, want)
				}
			}
		}
		opened(t, 0o600, path)
	}

	// The doctor knows all of them that a server or worker of this configuration reads.
	t.Setenv("BELFRY_CONFIG", config)
	t.Setenv("BELFRY_TLS_KEY", tlsKey)
	t.Setenv("BELFRY_SECRETS_KEY_FILE", keys)
	t.Setenv("BELFRY_SECRETS_DIR", secretsDir)
	t.Setenv("BELFRY_SMTP_URL_FILE", mailURL)
	t.Setenv("BELFRY_TOKEN_FILE", token)
	opened(t, 0o644, tlsKey, mailURL, keys, token, config, made, filepath.Join(secretsDir, "one"))
	found := diagnosed(t, 1, "--data", data)
	for check, path := range map[string]string{"tls-key": tlsKey, "smtp-url-file": mailURL, "secrets.key": made, "config.toml": config, "token file": token, "secrets-dir": filepath.Join(secretsDir, "one")} {
		if f := found[check]; f.Status == findOK || !strings.Contains(f.Found, path+" has the mode 0644") || !strings.HasPrefix(f.Help, "chmod 600 "+path) {
			t.Errorf("%s: %+v", check, f)
		}
	}
	if f := found["secrets-key-file"]; f.Status != findProblem || !strings.HasPrefix(f.Help, "chmod 600 '") {
		t.Errorf("secrets-key-file: %+v", f)
	}
}

// stopped ends a process, and waits for it.
func stopped(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
