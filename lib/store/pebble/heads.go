package pebble

import (
	"bytes"
	"hash/maphash"
)

// heads remembers what stands under the keys that were written last, so that most decisions need no read: what starts a run, and
// what ends it, comes soon after what made it. It is exact, since only the goroutine that decides writes, and tells it of each
// write. It holds no more than its sets have room for, 8 MiB; what has to make room is what was written longest ago.
//
// What was decided but not yet given to Pebble stands only here, and so must not make room: its round is the one under way.
type heads struct {
	lines []line // one for each set
	slots []slot // headWays for each set

	seed   maphash.Seed // of stripes
	floors floors
}

const (
	headSets = 1 << 13 // of 1 KiB
	headWays = 8
	headKey  = 103 // the longest key that is remembered; those of runs have some 50 bytes
)

// line is what is looked at first of a set, in one line of the processor's cache.
type line struct {
	tags   [headWays]uint32 // of the key's hash; 0: an empty slot
	rounds [headWays]uint32 // when the slot was last written
}

// slot has no pointers, so that the garbage collector does not look at it. A key under which nothing stands has version 0.
type slot struct {
	header
	size uint8
	key  [headKey]byte
}

func newHeads(sets int, seed maphash.Seed) *heads {
	return &heads{lines: make([]line, sets), slots: make([]slot, sets*headWays), seed: seed}
}

func (t *heads) set(hash uint64) int { return int(hash % uint64(len(t.lines))) }

// find gives the place of the key's slot, -1 where there is none.
func (t *heads) find(hash uint64, key []byte) int {
	set := t.set(hash)
	tag := tagOf(hash)
	for way, other := range &t.lines[set].tags {
		if other != tag {
			continue
		}
		place := set*headWays + way
		if s := &t.slots[place]; bytes.Equal(s.key[:s.size], key) {
			return place
		}
	}
	return -1
}

func tagOf(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// get gives what stands under the key, false where that is not remembered.
func (t *heads) get(hash uint64, key []byte) (header, bool) {
	place := t.find(hash, key)
	if place < 0 {
		return header{}, false
	}
	return t.slots[place].header, true
}

// put remembers what this round has made of a key. It is false where there is no room for it.
func (t *heads) put(hash uint64, key []byte, h header, round uint32) bool {
	set := t.set(hash)
	l := &t.lines[set]
	place := t.find(hash, key)
	if place < 0 {
		way := l.oldest(round)
		if way < 0 || len(key) > headKey {
			t.raise(key, h)
			return false
		}
		place = set*headWays + way
		s := &t.slots[place]
		if l.tags[way] != 0 {
			t.raise(s.key[:s.size], s.header)
		}
		s.size = uint8(copy(s.key[:], key))
		l.tags[way] = tagOf(hash)
	}
	t.slots[place].header = h
	l.rounds[place%headWays] = round
	return true
}

// raise is for a key that is not, or will not be, remembered.
func (t *heads) raise(key []byte, h header) {
	if h.version != 0 {
		t.floors.raise(stripeOf(t.seed, key[3:prefixLen(key)]), key)
	}
}

// writtenIn tells whether this round has written the key, if it had room for all that it wrote.
func (t *heads) writtenIn(hash uint64, key []byte, round uint32) bool {
	place := t.find(hash, key)
	return place >= 0 && t.lines[place/headWays].rounds[place%headWays] == round
}

// oldest is the way to write to, -1 where all are of this round.
func (l *line) oldest(round uint32) int {
	found, most := -1, uint32(0)
	for way, tag := range &l.tags {
		if tag == 0 {
			return way
		}
		if age := round - l.rounds[way]; age > most {
			found, most = way, age
		}
	}
	return found
}
