package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ID names a gate: one that jobs name, or a job's own, or where a job passes it by a key, that of a value of the key.
type ID struct {
	Tenant string
	Name   string // job:NAME for a job's own
	Key    string // as KeyOf gives it; "" for the gate of all runs
}

// String is the gate as logs and errors name it.
func (i ID) String() string {
	if i.Key == "" {
		return i.Name
	}
	return i.Name + " for the key " + ShownKey(i.Key)
}

// Own is the gate of all runs of a job.
func Own(tenant, of string) ID { return ID{Tenant: tenant, Name: Name(of)} }

// OwnOf gives the job whose own gate has a name; false where it is a gate that jobs name.
func OwnOf(name string) (of string, own bool) { return strings.CutPrefix(name, ownPrefix) }

// ownPrefix is what the name of a job's own gate begins with. No name of another holds a colon.
const ownPrefix = "job:"

// PassedBy names the gates that runs of a job pass.
func PassedBy(j job.Job) (names []string) {
	if !j.Def.Overlap.IsZero() {
		names = append(names, Name(j.Name))
	}
	for _, use := range j.Def.Gates {
		names = append(names, use.Gate)
	}
	return names
}

// IsNamed tells whether it is a gate that jobs name.
func (i ID) IsNamed() bool { return !strings.HasPrefix(i.Name, ownPrefix) }

// Of is the gate that a run names as the one where it waits, or of its job's own gates the one where it has been let in.
func Of(r run.Run) ID {
	if r.Waits() && r.Wait.Gate != Name(r.ID.Job) {
		return ID{r.Tenant, r.Wait.Gate, r.Wait.Key}
	}
	return OwnGate(r)
}

// OwnGate is the own gate of a run's job that the run is at, or enters.
func OwnGate(r run.Run) ID { return ID{r.Tenant, Name(r.ID.Job), r.GateKey} }

// Compare orders gates of one tenant as runs pass them, from narrow to wide: the own ones of jobs, then named ones of a value, then those of all, each by their
// names. It is one order for all runs, whatever their definitions say.
func (i ID) Compare(o ID) int {
	return cmp.Or(compareBool(i.IsNamed(), o.IsNamed()), -compareBool(i.Key != "", o.Key != ""), strings.Compare(i.Name, o.Name), strings.Compare(i.Key, o.Key))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

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
	return hashed + hashOf(value)
}

func hashOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// shownHash begins what is shown of a value that is kept as its hash. With that it is longer than any value that is shown itself.
const shownHash = "sha256:"

// shownNothing is what is shown of an empty value, which is kept as it is: its hash, as of another that cannot be shown.
var shownNothing = shownHash + hashOf("")

var isHash = regexp.MustCompile(`^sha256:[A-Za-z0-9_-]{43}$`)

// ShownKey is a key as people and programs see it: the value, or "sha256:" and its hash. "" stands for the gate of all.
func ShownKey(key string) string {
	if key == literal {
		return shownNothing
	}
	if hash, ok := strings.CutPrefix(key, hashed); ok {
		return shownHash + hash
	}
	return strings.TrimPrefix(key, literal)
}

// KeyAsked is the key that somebody asks for, by the value itself or as ShownKey shows it.
func KeyAsked(text string) string {
	if text == shownNothing {
		return literal
	}
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

// Item is where the gate stands. All gates of a name are in one partition.
func (i ID) Item() store.Key {
	sort := all
	if i.Key != "" {
		sort = escape.Replace(i.Key)
	}
	return store.Key{Partition: "gate#" + i.Tenant + "#" + i.Name, Sort: sort}
}

// KeyAt gives the key of the gate that stands at a sort key.
func KeyAt(sort string) string {
	if sort == all {
		return ""
	}
	return unescape.Replace(sort)
}

// Gates are the items of all gates of a name: that of all runs first, then those of values by their keys.
func Gates(tenant, name string, limit int) store.Range {
	return store.Range{Partition: ID{Tenant: tenant, Name: name}.Item().Partition, Limit: limit}
}

// Keyed are those of them that are of values, behind that of a key, or with "" all.
func Keyed(tenant, name, after string, limit int) store.Range {
	r := Gates(tenant, name, limit)
	r.From = all + "\x00"
	if after != "" {
		r.From = escape.Replace(after) + "\x00"
	}
	return r
}

// WhyKey is the key of the gate that skipped a run, "" where that is the gate of all.
func WhyKey(r run.Run) string {
	if r.Why.Gate == Name(r.ID.Job) {
		return r.GateKey
	}
	return r.Why.Key
}

// InKeyedLine tells of the sort key of a place whether that is in the line of a value's gate.
func InKeyedLine(sort string) bool {
	return strings.HasPrefix(sort, literal) || strings.HasPrefix(sort, hashed)
}

// lines is the partition of the gate's line. The lines of all values of a name are in one: before begins the sort keys of this one.
func (i ID) lines() string {
	partition := "line#" + i.Tenant + "#" + i.Name
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

// KeyedLines finds the next line of a value's gate of that name, behind that of a key, or with "" the first: the first place in the range is one of it.
func KeyedLines(tenant, name, after string) store.Range {
	r := store.Range{Partition: ID{tenant, name, literal}.lines(), Limit: 1}
	if after != "" {
		r.From = past(ID{tenant, name, after}.before())
	}
	return r
}

// past is behind everything that begins with a text that ends with "#".
func past(before string) string { return strings.TrimSuffix(before, "#") + "$" }
