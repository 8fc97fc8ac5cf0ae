package access

import "github.com/belfry-scheduler/belfry/lib/store"

// KeyOf is where a token is stored.
func KeyOf(id string) store.Key { return keyOf(id) }

// Forge makes the text of a token out of an ID and a secret of one's own choice.
func Forge(id, secret string) string {
	text := prefix + id + "_" + secret
	return text + checksum(text)
}

// Remembered is how many IDs are kept that no token has.
func (s *Tokens) Remembered() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return len(s.cache.absent)
}

// Addresses is how many addresses are remembered.
func (g *Gate) Addresses() int {
	g.failures.mu.Lock()
	defer g.failures.mu.Unlock()
	return len(g.failures.buckets)
}
