package pebble

import "bytes"

// floors are what heads knows of keys that it does not hold: in a partition that has a floor, all that stands at it or above is in
// heads. What is new mostly stands above all else in its partition, since keys of runs and of timers begin with a time, and so it
// needs no read to tell that nothing stands there. What makes room in heads raises its partition's floor above itself.
type floors [stripes]floor

// floor is of one partition of a stripe, the last that was asked for.
type floor struct {
	open   bool // false: the partition is none where new keys stand above all others, or none at all
	prefix uint8
	size   uint8
	key    [headKey + 1]byte // begins with the partition, as keys of items do
}

// prefixLen is how much of an item's key is its partition.
func prefixLen(key []byte) int { return 3 + (int(key[1])<<8 | int(key[2])) }

func (f *floor) of(key []byte) bool {
	return f.prefix > 0 && int(f.prefix) == prefixLen(key) && bytes.Equal(f.key[:f.prefix], key[:f.prefix])
}

// above tells that nothing stands under a key that heads does not hold.
func (f *floors) above(p *part) bool {
	at := &f[p.stripe]
	return at.open && at.of(p.key) && bytes.Compare(p.key, at.key[:at.size]) >= 0
}

// asked tells whether it was already seen what stands above some key of the partition.
func (f *floors) asked(p *part) bool { return f[p.stripe].of(p.key) }

// set keeps that nothing stands in the partition at this key or above, or else that something does.
func (f *floors) set(p *part, nothing bool) {
	at := &f[p.stripe]
	*at = floor{}
	if len(p.key) > headKey {
		return
	}
	at.open, at.prefix, at.size = nothing, uint8(prefixLen(p.key)), uint8(copy(at.key[:], p.key))
}

// raise keeps that something stands under a key that heads does not hold.
func (f *floors) raise(stripe uint32, key []byte) {
	at := &f[stripe]
	switch {
	case !at.open || !at.of(key) || bytes.Compare(key, at.key[:at.size]) < 0:
	case len(key) > headKey:
		at.open = false
	default:
		n := copy(at.key[:], key)
		at.key[n] = 0 // the next key in the order of keys
		at.size = uint8(n + 1)
	}
}
