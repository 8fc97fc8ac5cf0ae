package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Config is what a Vault stands on. All fields are required but Keys.
type Config struct {
	Store  store.Store
	Now    func() time.Time
	Random io.Reader     // of nonces: crypto/rand.Reader
	NewID  func() uint64 // marks writes; random, never 0

	// Keys reads the keys, at the start and at each Rotate. nil: the vault keeps and opens nothing.
	Keys func() (*Ring, error)
}

// Vault keeps secrets in a store. It is safe for concurrent use.
type Vault struct {
	Config
	ring atomic.Pointer[Ring]
}

// New reads the keys.
func New(cfg Config) (*Vault, error) {
	if cfg.Store == nil || cfg.Now == nil || cfg.Random == nil || cfg.NewID == nil {
		return nil, errors.New("secret: Store, Now, Random and NewID are required")
	}
	v := &Vault{Config: cfg}
	return v, v.readKeys()
}

func (v *Vault) readKeys() error {
	if v.Keys == nil {
		return nil
	}
	ring, err := v.Keys()
	if err != nil {
		return fmt.Errorf("read the keys for secrets: %w", err)
	}
	v.ring.Store(ring)
	return nil
}

// stored is a secret's record.
type stored struct {
	Key     string `cbor:"1,keyasint"` // its ID
	Nonce   []byte `cbor:"2,keyasint"`
	Sealed  []byte `cbor:"3,keyasint"`
	Created int64  `cbor:"4,keyasint"` // Unix ms
	Updated int64  `cbor:"5,keyasint"` // Unix ms: when somebody set it, not when it was sealed again
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"secret": stored{}} }

func partition(tenant string) string { return "secret#" + tenant }

func keyOf(tenant, name string) store.Key {
	return store.Key{Partition: partition(tenant), Sort: name}
}

// Info is what may be shown of a secret.
type Info struct {
	Name    string
	Created time.Time
	Updated time.Time
	Key     string // ID of the key that it is sealed under
	Current bool   // that is the key which seals now
}

// tries bounds how often a change is begun again because somebody else changed the secret meanwhile.
const tries = 5

// Set keeps a secret, in place of the one of that name. created tells that there was none.
func (v *Vault) Set(ctx context.Context, tenant, name, value string) (info Info, created bool, err error) {
	if err := errors.Join(ValidName(name), ValidValue(value)); err != nil {
		return Info{}, false, err
	}
	for range tries {
		item, err := v.read(ctx, tenant, name)
		if err != nil {
			return Info{}, false, err
		}
		now := v.Now().UnixMilli()
		next := stored{Created: now, Updated: now}
		if item.Exists() {
			var old stored
			if err := record.Decode(item.Value, &old); err != nil {
				return Info{}, false, fmt.Errorf("secret %s: %w", name, err)
			}
			next.Created = old.Created
		} else if err := v.hasRoom(ctx, tenant); err != nil {
			return Info{}, false, err
		}
		if err := v.seal(&next, tenant, name, value); err != nil {
			return Info{}, false, err
		}
		switch err := v.write(ctx, item, next); {
		case err == nil:
			return v.info(name, next), !item.Exists(), nil
		case store.AsConflict(err) == nil:
			return Info{}, false, err
		}
	}
	return Info{}, false, fmt.Errorf("secret %s: overtaken %d times: %w", name, tries, store.ErrThrottled)
}

func (v *Vault) read(ctx context.Context, tenant, name string) (store.Item, error) {
	items, err := v.Store.Get(ctx, keyOf(tenant, name))
	if err != nil {
		return store.Item{}, fmt.Errorf("read secret %s: %w", name, err)
	}
	return items[0], nil
}

// write puts a record where the item was read. When it returns nil the secret is durable.
func (v *Vault) write(ctx context.Context, over store.Item, next stored) error {
	value, err := record.Encode(next)
	if err != nil {
		return err
	}
	_, err = v.Store.Write(ctx, store.Op{Kind: store.Put, Key: over.Key, If: store.At(over), Value: value, Attempt: v.NewID()})
	return err
}

// hasRoom refuses a secret too many. Two that are made at once may both find room: the bound is on cost, not on meaning.
func (v *Vault) hasRoom(ctx context.Context, tenant string) error {
	number := 0
	for item, err := range v.all(ctx, tenant, "") {
		if err != nil {
			return err
		}
		if number++; number >= MaxNumber && item.Exists() {
			return ErrTooMany
		}
	}
	return nil
}

func (v *Vault) seal(s *stored, tenant, name, value string) error {
	k, ok := v.ring.Load().current()
	if !ok {
		return ErrNoKey
	}
	s.Key, s.Nonce = k.id, make([]byte, k.aead.NonceSize())
	if _, err := io.ReadFull(v.Random, s.Nonce); err != nil {
		return fmt.Errorf("seal secret %s: %w", name, err)
	}
	s.Sealed = k.aead.Seal(nil, s.Nonce, []byte(value), place(tenant, name))
	return nil
}

func (v *Vault) open(s stored, tenant, name string) (string, error) {
	if v.ring.Load() == nil {
		return "", ErrNoKey
	}
	k, ok := v.ring.Load().find(s.Key)
	if !ok {
		return "", fmt.Errorf("it is sealed under the key %s: %w", s.Key, ErrNoKey)
	}
	if len(s.Nonce) != k.aead.NonceSize() {
		return "", record.ErrBroken
	}
	value, err := k.aead.Open(nil, s.Nonce, s.Sealed, place(tenant, name))
	if err != nil {
		return "", errors.New("its record was damaged, or moved here from another name")
	}
	return string(value), nil
}

// place is authenticated with a value. Neither part holds a NUL.
func place(tenant, name string) []byte { return []byte("belfry secret\x00" + tenant + "\x00" + name) }

// Value gives what a secret holds, ErrMissing where there is none of that name.
func (v *Vault) Value(ctx context.Context, tenant, name string) (string, error) {
	item, err := v.read(ctx, tenant, name)
	if err != nil {
		return "", err
	}
	if !item.Exists() {
		return "", ErrMissing
	}
	var s stored
	if err := record.Decode(item.Value, &s); err != nil {
		return "", err
	}
	return v.open(s, tenant, name)
}

// List gives a tenant's secrets after a name, by name, at most limit, and whether there are more.
func (v *Vault) List(ctx context.Context, tenant, after string, limit int) (infos []Info, more bool, err error) {
	for item, err := range v.all(ctx, tenant, after) {
		switch {
		case err != nil:
			return nil, false, err
		case len(infos) == limit:
			return infos, true, nil
		}
		var s stored
		if err := record.Decode(item.Value, &s); err != nil {
			return nil, false, fmt.Errorf("secret %s: %w", item.Sort, err)
		}
		infos = append(infos, v.info(item.Sort, s))
	}
	return infos, false, nil
}

func (v *Vault) info(name string, s stored) Info {
	k, _ := v.ring.Load().current()
	return Info{Name: name, Created: time.UnixMilli(s.Created).UTC(), Updated: time.UnixMilli(s.Updated).UTC(), Key: s.Key, Current: s.Key == k.id}
}

// all walks over the items of a tenant, page after page, up to the first error.
func (v *Vault) all(ctx context.Context, tenant, after string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		r := store.Range{Partition: partition(tenant)}
		if after != "" {
			r.From = after + "\x00"
		}
		for {
			page, err := v.Store.Query(ctx, r)
			if err != nil {
				yield(store.Item{}, fmt.Errorf("list secrets: %w", err))
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if r.Cursor = page.Cursor; r.Cursor == "" {
				return
			}
		}
	}
}

// Delete removes a secret, ErrMissing where there is none of that name.
func (v *Vault) Delete(ctx context.Context, tenant, name string) error {
	item, err := v.read(ctx, tenant, name)
	if err != nil {
		return err
	}
	if !item.Exists() {
		return ErrMissing
	}
	if _, err := v.Store.Write(ctx, store.Op{Kind: store.Delete, Key: item.Key}); err != nil {
		return fmt.Errorf("delete secret %s: %w", name, err)
	}
	return nil
}

// Rotate reads the keys anew and seals again, under the newest, what is sealed under another. It gives how many those were.
// After an error it can be called again, and goes on where it was.
func (v *Vault) Rotate(ctx context.Context, tenant string) (int, error) {
	if err := v.readKeys(); err != nil {
		return 0, fmt.Errorf("%w that can be read: %w", ErrNoKey, err)
	}
	current, ok := v.ring.Load().current()
	if !ok {
		return 0, ErrNoKey
	}
	sealed := 0
	for item, err := range v.all(ctx, tenant, "") {
		if err != nil {
			return sealed, err
		}
		again, err := v.sealAgain(ctx, tenant, item, current)
		if err != nil {
			return sealed, fmt.Errorf("secret %s: %w", item.Sort, err)
		}
		if again {
			sealed++
		}
	}
	return sealed, nil
}

// sealAgain tells whether it had to. What somebody set or deleted meanwhile is looked at once more.
func (v *Vault) sealAgain(ctx context.Context, tenant string, item store.Item, under key) (bool, error) {
	for range tries {
		if !item.Exists() {
			return false, nil
		}
		var s stored
		if err := record.Decode(item.Value, &s); err != nil {
			return false, err
		}
		if s.Key == under.id {
			return false, nil
		}
		value, err := v.open(s, tenant, item.Sort)
		if err != nil {
			return false, err
		}
		if err := v.seal(&s, tenant, item.Sort, value); err != nil {
			return false, err
		}
		err = v.write(ctx, item, s)
		conflict := store.AsConflict(err)
		if conflict == nil {
			return err == nil, err
		}
		key := item.Key
		item = conflict.Standing
		item.Key = key
	}
	return false, fmt.Errorf("overtaken %d times: %w", tries, store.ErrThrottled)
}
