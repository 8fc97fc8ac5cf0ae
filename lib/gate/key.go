package gate

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ID names a gate: a job's own, or where the job has one for each value of a key, that of a value.
type ID struct {
	Tenant, Job string
	Key         string // as KeyOf gives it; "" for the gate of all runs
}

// Of is the gate that a run names as the one where it waits, or has been let in.
func Of(r run.Run) ID { return ID{r.Tenant, r.ID.Job, r.GateKey} }

// What a key begins with: one that stands for itself, and one of which only the hash is kept. So no hash is taken for a value that looks like it.
const (
	literal = "="
	hashed  = ">"
)

// MaxKey is up to how many bytes a value stands in a key as it is: it is in the record of its run, which is written often.
const MaxKey = 40

// KeyOf gives the key of a value. What is longer than MaxKey, or holds what cannot be shown, is kept as its hash.
func KeyOf(value string) string {
	unshown := func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }
	if len(value) <= MaxKey && strings.IndexFunc(value, unshown) < 0 {
		return literal + value
	}
	sum := sha256.Sum256([]byte(value))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}

// shownHash begins what is shown of a value that is kept as its hash. With that it is longer than any value that is shown itself.
const shownHash = "sha256:"

var isHash = regexp.MustCompile(`^sha256:[A-Za-z0-9_-]{43}$`)

// ShownKey is a key as people and programs see it: the value, or "sha256:" and its hash. "" stands for the gate of all.
func ShownKey(key string) string {
	if hash, ok := strings.CutPrefix(key, hashed); ok {
		return shownHash + hash
	}
	return strings.TrimPrefix(key, literal)
}

// KeyAsked is the key that somebody asks for, by the value itself or as ShownKey shows it.
func KeyAsked(text string) string {
	if isHash.MatchString(text) {
		return hashed + strings.TrimPrefix(text, shownHash)
	}
	return KeyOf(text)
}

// Keys stand in sort keys, before "#": none holds that itself.
var (
	escape   = strings.NewReplacer("%", "%25", "#", "%23")
	unescape = strings.NewReplacer("%25", "%", "%23", "#")
)

// all is where the gate of all runs stands, before those of values.
const all = "-"

// Item is where the gate stands. All gates of a job are in one partition.
func (i ID) Item() store.Key {
	sort := all
	if i.Key != "" {
		sort = escape.Replace(i.Key)
	}
	return store.Key{Partition: "gate#" + i.Tenant + "#" + Name(i.Job), Sort: sort}
}

// keyFrom gives the key of the gate that stands at a sort key.
func keyFrom(sort string) string {
	if sort == all {
		return ""
	}
	return unescape.Replace(sort)
}

// Gates are the items of all gates of a job: that of all runs first, then those of values by their keys.
func Gates(tenant, job string, limit int) store.Range {
	return store.Range{Partition: ID{tenant, job, ""}.Item().Partition, Limit: limit}
}

// InKeyedLine tells of the sort key of a place whether that is in the line of a value's gate.
func InKeyedLine(sort string) bool {
	return strings.HasPrefix(sort, literal) || strings.HasPrefix(sort, hashed)
}

// lines is the partition of the gate's line. The lines of all values of a job are in one: before begins the sort keys of this one.
func (i ID) lines() string {
	partition := "line#" + i.Tenant + "#" + Name(i.Job)
	if i.Key != "" {
		partition += "#"
	}
	return partition
}

func (i ID) before() string {
	if i.Key == "" {
		return ""
	}
	return escape.Replace(i.Key) + "#"
}

// KeyedLines finds the next line of a value's gate, behind that of a key, or with "" the first: the first place in the range is one of it.
func KeyedLines(tenant, job, after string) store.Range {
	r := store.Range{Partition: ID{tenant, job, literal}.lines(), Limit: 1}
	if after != "" {
		r.From = past(ID{tenant, job, after}.before())
	}
	return r
}

// past is behind everything that begins with a text that ends with "#".
func past(before string) string { return strings.TrimSuffix(before, "#") + "$" }
