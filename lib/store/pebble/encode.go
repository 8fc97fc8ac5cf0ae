package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// The key of an item is: one byte that says what it is, the partition's length in two bytes, the partition, the sort key. The
// length makes it unambiguous for any bytes and keeps a partition together; within it, keys are in the order of the sort key.
// The order of partitions among each other means nothing: the port has no scan over them.
const itemSpace = 0x01

func keyLen(k store.Key) int { return 3 + len(k.Partition) + len(k.Sort) }

func appendKey(dst []byte, partition, sort string) []byte {
	dst = append(dst, itemSpace, byte(len(partition)>>8), byte(len(partition)))
	dst = append(dst, partition...)
	return append(dst, sort...)
}

func decodeKey(key []byte) (store.Key, error) {
	if len(key) < 3 || key[0] != itemSpace {
		return store.Key{}, fmt.Errorf("key %q: %w", key, errMalformed)
	}
	n := int(key[1])<<8 | int(key[2])
	if len(key) < 3+n {
		return store.Key{}, fmt.Errorf("key %q: %w", key, errMalformed)
	}
	return store.Key{Partition: string(key[3 : 3+n]), Sort: string(key[3+n:])}, nil
}

// appendPartitionEnd is the smallest key above all of a partition: the last byte that can grow does, and what follows it
// goes. One always can, since the first byte of a key is not 0xff.
func appendPartitionEnd(dst []byte, partition string) []byte {
	return end(appendKey(dst, partition, ""))
}

// end makes a prefix the smallest key above all that begin with it.
func end(prefix []byte) []byte {
	for prefix[len(prefix)-1] == 0xff {
		prefix = prefix[:len(prefix)-1]
	}
	prefix[len(prefix)-1]++
	return prefix
}

// A value is: flags, version (uvarint), expiry in Unix seconds (uvarint, if flagged), attempt (8 bytes, if flagged), the
// item's value. An unknown flag is damage, or a newer format whose marker was lost: it is refused, never skipped.
const (
	hasExpiry  = 1 << 0
	hasAttempt = 1 << 1
	allFlags   = hasExpiry | hasAttempt
)

// header is all of a stored item but its key and value.
type header struct {
	version uint64
	expires int64
	attempt uint64
}

// maxHeader is the most that a header takes.
const maxHeader = 1 + binary.MaxVarintLen64 + binary.MaxVarintLen64 + 8

func appendHeader(dst []byte, h header) []byte {
	var flags byte
	if h.expires != 0 {
		flags |= hasExpiry
	}
	if h.attempt != 0 {
		flags |= hasAttempt
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, h.version)
	if h.expires != 0 {
		dst = binary.AppendUvarint(dst, uint64(h.expires))
	}
	if h.attempt != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.attempt)
	}
	return dst
}

var errMalformed = errors.New("a stored item that this format does not know")

// decode takes a stored value apart; value points into raw.
func decode(raw []byte) (h header, value []byte, err error) {
	if len(raw) == 0 || raw[0]&^allFlags != 0 {
		return header{}, nil, errMalformed
	}
	flags, rest := raw[0], raw[1:]
	next := func() uint64 {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			err = errMalformed
			return 0
		}
		rest = rest[n:]
		return v
	}
	h.version = next()
	if flags&hasExpiry != 0 {
		h.expires = int64(next())
	}
	if flags&hasAttempt != 0 {
		if len(rest) < 8 {
			return header{}, nil, errMalformed
		}
		h.attempt = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	}
	if err != nil || h.version == 0 || h.expires < 0 {
		return header{}, nil, errMalformed
	}
	return h, rest, nil
}

// item makes what the port shows; value is kept as it is.
func (h header) item(k store.Key, value []byte) store.Item {
	return store.Item{Key: k, Version: h.version, Value: value, Expires: store.ExpiryTime(h.expires), Attempt: h.attempt}
}

func damaged(k store.Key, err error) error {
	return fmt.Errorf("item %q: %w", k.String(), err)
}
