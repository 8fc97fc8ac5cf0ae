package target

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Secrets gives what a tenant's secret holds at this moment. Its errors say why it cannot, and are shown: they must not hold
// any of it.
type Secrets func(ctx context.Context, tenant, name string) (string, error)

// NoSecrets is the source of a worker that has none.
func NoSecrets(context.Context, string, string) (string, error) {
	return "", errors.New("this worker has no source of secrets")
}

// secretsTimeout bounds the look-up of all secrets of an attempt: the attempt's own timeout may be hours.
const secretsTimeout = 10 * time.Second

// SecretNames lists the secrets that a call needs, each once.
func (s Spec) SecretNames() []string {
	if s.HTTP == nil && s.Exec == nil {
		return nil
	}
	names := map[string]bool{}
	add := func(values map[string]Value) {
		for _, value := range values {
			names[value.Secret] = true
		}
	}
	if s.HTTP != nil {
		add(s.HTTP.Headers)
		if sign := s.HTTP.Sign; sign != nil {
			names[sign.Secret], names[sign.Previous] = true, true
		}
	}
	if s.Exec != nil {
		add(s.Exec.Env)
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// revealed is what the secrets of one attempt hold. It lives as long as the attempt.
type revealed struct {
	values map[string]string // by name
	veil   *veil             // over what the target says
}

// reveal looks up every secret that the call needs, before any of it is done.
func (s *Set) reveal(ctx context.Context, spec Spec, tenant string) (revealed, error) {
	names := spec.SecretNames()
	if len(names) == 0 {
		return revealed{}, nil
	}
	looking, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	values := make(map[string]string, len(names))
	for _, name := range names {
		value, err := s.cfg.Secrets(looking, tenant, name)
		switch {
		case ctx.Err() != nil:
			return revealed{}, unsent(ctx)
		case Short(err) != nil:
			return revealed{}, Short(err)
		case err != nil:
			return revealed{}, failed(KindSecret, err, "%s: %v", name, err)
		}
		values[name] = value
	}
	return revealed{values, newVeil(values)}, nil
}

// texts gives the texts of values, each as fits says that it is right. What is wrong with a secret's text is said without it.
func (r revealed) texts(values map[string]Value, limit int, fits func(string) bool, want string) (map[string]string, error) {
	texts, size := make(map[string]string, len(values)), 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, text := values[name], values[name].Text
		if value.Secret != "" {
			text = r.values[value.Secret]
			if !fits(text) {
				return nil, failed(KindSecret, nil, "%s cannot be the value of %s: want %s", value.Secret, name, want)
			}
		}
		texts[name] = text
		size += len(name) + len(text)
	}
	if size > limit && len(r.values) > 0 {
		return nil, failed(KindSecret, nil, "the values with their secrets are %d bytes: want at most %d", size, limit)
	}
	return texts, nil
}
