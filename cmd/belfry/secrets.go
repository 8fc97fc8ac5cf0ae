package main

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// keyVariable may hold the keys for secrets themselves, where there is no file for them.
const keyVariable = "BELFRY_SECRETS_KEY"

// mostKeys bounds what is read of a file of keys.
const mostKeys = 64 << 10

// secretFlags say where attempts find secrets.
type secretFlags struct {
	dir     string // "": none
	keyFile string // "": none, or keyVariable
	makeKey string // dev: the file of keys where none is named, made when it is not there
}

// sources are the flags of whatever runs attempts.
func (s *secretFlags) sources(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.dir, "secrets-dir", "", "`DIR` with one file a secret, as Docker and Kubernetes mount them")
}

// keys are the flags of whatever keeps secrets.
func (s *secretFlags) keys(cmd *cobra.Command) {
	says := "`FILE` with the keys that Belfry's own secrets are encrypted under, as \"belfry secret new-key\" makes it; " + keyVariable + " may hold keys too"
	cmd.Flags().StringVar(&s.keyFile, "secrets-key-file", "", says)
}

func (s *secretFlags) check() error {
	if s.dir != "" {
		if info, err := os.Stat(s.dir); err != nil {
			return fmt.Errorf("--secrets-dir: %w", err)
		} else if !info.IsDir() {
			return misused("--secrets-dir %s: want a folder", s.dir)
		}
	}
	if s.keyFile != "" && os.Getenv(keyVariable) != "" {
		return misused("--secrets-key-file and %s exclude each other", keyVariable)
	}
	return nil
}

// local are the sources that a process has without a server: its environment and its folder.
func (s *secretFlags) local() []secret.Source {
	sources := []secret.Source{secret.Environment(defaultTenant, os.LookupEnv)}
	if s.dir != "" {
		sources = append(sources, secret.Folder(defaultTenant, s.dir))
	}
	return sources
}

// warn tells the log of files with keys and secrets that others get at.
func (s *secretFlags) warn(log *slog.Logger) {
	for _, file := range []string{s.keyFile, s.makeKey} {
		logExposed(log, "the keys of Belfry's own secrets", exposed(file))
	}
	if s.dir != "" {
		logExposed(log, "a secret", exposedIn(s.dir))
	}
}

// open makes the vault over a store, and what attempts ask.
func (s *secretFlags) open(on store.Store, log *slog.Logger) (*secret.Vault, target.Secrets, error) {
	s.warn(log)
	vault, err := secret.New(secret.Config{Store: on, Now: time.Now, Random: crand.Reader, NewID: newID, Keys: s.ring()})
	if err != nil {
		return nil, nil, err
	}
	return vault, secret.Finder(append(s.local(), vault.Source())...), nil
}

// ring gives what reads the keys, nil where there are none.
func (s *secretFlags) ring() func() (*secret.Ring, error) {
	file := s.keyFile
	switch {
	case file != "":
	case os.Getenv(keyVariable) != "":
		return func() (*secret.Ring, error) {
			ring, err := secret.ParseRing(os.Getenv(keyVariable))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", keyVariable, err)
			}
			return ring, nil
		}
	case s.makeKey != "":
		file = s.makeKey
	default:
		return nil
	}
	return func() (*secret.Ring, error) {
		text, err := readUpTo(file, mostKeys)
		if errors.Is(err, fs.ErrNotExist) && file == s.makeKey {
			if _, err = addKey(file); err == nil {
				text, err = readUpTo(file, mostKeys)
			}
		}
		if err != nil {
			return nil, err
		}
		ring, err := secret.ParseRing(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return ring, nil
	}
}

// addKey puts a new key before those of a file, which is made when it is not there; only its owner may read it. The file is
// whole at every moment: a key that is lost takes its secrets with it. It tells whether there were keys before.
func addKey(path string) (rotates bool, err error) {
	old, err := readUpTo(path, mostKeys)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, err
	default:
		if _, err := secret.ParseRing(string(old)); err != nil {
			return false, fmt.Errorf("%s: %w", path, err)
		}
	}
	key, err := secret.NewKey(crand.Reader)
	if err != nil {
		return false, err
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".belfry-key-*") // with mode 0600
	if err != nil {
		return false, err
	}
	defer os.Remove(part.Name()) // where it was not renamed
	_, err = part.WriteString(key + "\n" + string(old))
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return false, err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return false, err
	}
	return len(old) > 0, syncFolder(filepath.Dir(path))
}
