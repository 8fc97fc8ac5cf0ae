package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// exposure is a file or folder with something secret in it that others than its owner get at.
type exposure struct {
	path string
	mode fs.FileMode
}

// exposed looks whether others than its owner get at a file or folder: nil where none do, where it is not there, and on Windows, where
// modes say nothing.
func exposed(path string) *exposure {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return &exposure{path, info.Mode()}
}

// exposedIn is exposed for a folder with a file for each secret: nil where others do not get into it, or at none of its files. It gives
// the first of these.
func exposedIn(dir string) *exposure {
	if exposed(dir) == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // whoever asks for a secret is told
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // the folders that Kubernetes keeps beside its links
		}
		if e := exposed(path); e != nil {
			return e
		}
	}
	return nil
}

// octal is the mode as chmod takes it.
func (e *exposure) octal() string { return fmt.Sprintf("%04o", e.mode.Perm()) }

// chmod is the command that mends it.
func (e *exposure) chmod() string {
	mode, path := "600", e.path
	if e.mode.IsDir() {
		mode = "700"
	}
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%", r)
	}) {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "chmod " + mode + " " + path
}

// warnExposed tells on stderr of a file with something secret, what, that a command has read.
func (c *cli) warnExposed(what, path string) {
	if e := exposed(path); e != nil {
		c.warn("%s holds %s, and others than its owner get at it (mode %s): %s", path, what, e.octal(), e.chmod())
	}
}

// logExposed tells in the log of a process.
func logExposed(log *slog.Logger, what string, e *exposure) {
	if e != nil {
		log.Warn("others than its owner get at a file with "+what, "file", e.path, "mode", e.octal(), "help", e.chmod())
	}
}
