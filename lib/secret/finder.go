package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Source is a place where secrets are found.
type Source struct {
	// value gives a tenant's secret, ErrMissing where the source has none of that name.
	value func(ctx context.Context, tenant, name string) (string, error)
	// place says, for people, where the source would have it; "" where this tenant never gets anything from it.
	place func(tenant, name string) string
}

// variable begins the names of the variables that hold secrets.
const variable = "BELFRY_SECRET_"

// Variable is where the environment holds a secret: capitals, and _ for what a variable's name cannot have.
func Variable(name string) string {
	return variable + strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(name))
}

// Environment finds one tenant's secrets in variables.
func Environment(tenant string, lookUp func(string) (string, bool)) Source {
	return Source{
		value: func(_ context.Context, of, name string) (string, error) {
			value, ok := lookUp(Variable(name))
			switch {
			case !ok || value == "" || of != tenant:
				return "", ErrMissing
			case len(value) > MaxValue:
				return "", fmt.Errorf("%s holds %d bytes; want at most %d", Variable(name), len(value), MaxValue)
			}
			return value, nil
		},
		place: func(of, name string) string {
			if of != tenant {
				return ""
			}
			return Variable(name) + " in the worker's environment"
		},
	}
}

// Folder finds one tenant's secrets in files, as Docker and Kubernetes mount them: one a secret, called as it is. A line's end
// at the end of a file is not part of it.
func Folder(tenant, dir string) Source {
	return Source{
		value: func(_ context.Context, of, name string) (string, error) {
			if of != tenant || ValidName(name) != nil {
				return "", ErrMissing
			}
			return readFile(filepath.Join(dir, name))
		},
		place: func(of, name string) string {
			if of != tenant {
				return ""
			}
			return "the file " + filepath.Join(dir, name)
		},
	}
}

func readFile(path string) (string, error) {
	// Looked at before it is opened: a pipe would hold the attempt until somebody writes to it.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrMissing
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxValue+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > MaxValue:
		return "", fmt.Errorf("%s is larger than %d bytes", path, MaxValue)
	}
	value := WithoutLineEnd(string(text))
	if value == "" {
		return "", ErrMissing
	}
	return value, nil
}

// WithoutLineEnd takes one line's end off the end of a text: editors and echo add it.
func WithoutLineEnd(text string) string {
	if short, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(short, "\r")
	}
	return text
}

// Source makes a source of the vault.
func (v *Vault) Source() Source {
	return Source{
		value: v.Value,
		place: func(_, name string) string { return fmt.Sprintf("Belfry's own store (belfry secret set %s)", name) },
	}
}

// Finder asks sources in turn. It is what target.Config.Secrets takes.
func Finder(sources ...Source) func(ctx context.Context, tenant, name string) (string, error) {
	return func(ctx context.Context, tenant, name string) (string, error) {
		var places []string
		for _, source := range sources {
			value, err := source.value(ctx, tenant, name)
			if !errors.Is(err, ErrMissing) {
				return value, err
			}
			if place := source.place(tenant, name); place != "" {
				places = append(places, place)
			}
		}
		return "", missing(places)
	}
}

func missing(places []string) error {
	if len(places) == 0 {
		return fmt.Errorf("%w: this worker has no source of secrets", ErrMissing)
	}
	last := len(places) - 1
	text := places[last]
	if last > 0 {
		text = strings.Join(places[:last], ", ") + " or " + text
	}
	return fmt.Errorf("%w; want it as %s", ErrMissing, text)
}
