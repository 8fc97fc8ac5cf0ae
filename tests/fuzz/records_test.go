package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// kinds are the structs of all that is stored, by what partitions begin with.
func kinds() map[string]any {
	all := map[string]any{}
	for _, of := range []map[string]any{job.Records(), run.Records(), gate.Records(), timer.Records(), tick.Records(), stats.Records(), control.Records(), access.Records(), secret.Records(), lease.Records()} {
		maps.Copy(all, of)
	}
	return all
}

// unreleased are records of kinds that no release has written yet.
var unreleased = map[string][]byte{
	"tickets": append([]byte{record.Format, 0xa1, 1, 0x58, 32}, make([]byte, 32)...),
	"gate":    {record.Format, 0xa3, 1, 0x81, 0xa4, 1, 0x19, 0x03, 0xe8, 2, 0x61, 'a', 3, 5, 4, 1, 2, 2, 3, 0x19, 0x03, 0xe9}, // one entry, and two that wait
	"gates":   {record.Format, 0xa3, 1, 0xa2, 1, 5, 2, 3, 2, 0x19, 0x03, 0xe8, 3, 0xa1, 1, 7},                                 // five units, three may wait, and it is closed
	"down":    {record.Format, 0xa2, 1, 7, 2, 0x62, 'a', '~'},
	"streak":  {record.Format, 0xa2, 1, 7, 2, 3},
	"line":    {record.Format, 0xa1, 1, 0x19, 0x03, 0xe8},
	"sum":     {record.Format, 0xa3, 1, 0x19, 0x03, 0xe8, 2, 0xa1, 1, 0x86, 1, 0, 0, 0, 0, 0, 3, 0x81, 0x62, 'a', '~'},
	"owed":    {record.Format, 0xa2, 1, 0x81, 0xa2, 1, 0x61, 'a', 2, 0x19, 0x03, 0xe8, 2, 0x81, 0xa2, 1, 0x61, 'b', 2, 0x19, 0x03, 0xe8},
	"step":    {record.Format, 0xa2, 1, byte(run.Queued), 2, 1},
}

// FuzzRecords reads bytes as a record of each kind. What is read must be the same when it was written and read again, so that no
// version of Belfry loses what it reads; what is not must be told as broken or as newer, and both leave the struct's reader with
// memory in proportion to the bytes. People can look at either with belfry store show.
func FuzzRecords(f *testing.F) {
	all := kinds()
	names := slices.Sorted(maps.Keys(all))
	seen := map[string]int{}
	for _, stored := range released(f) {
		kind, _, _ := strings.Cut(stored.partition, "#")
		if seen[kind]++; seen[kind] <= 4 {
			f.Add(uint8(slices.Index(names, kind)), stored.value)
		}
	}
	for name, stored := range unreleased {
		seen[name]++
		f.Add(uint8(slices.Index(names, name)), stored)
	}
	for _, name := range names {
		if seen[name] == 0 {
			f.Errorf("no release has a record of kind %s", name)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, stored []byte) {
		kind := all[names[int(which)%len(names)]]
		explained, errExplain := record.Explain(stored, kind)
		if errExplain == nil {
			if _, err := json.Marshal(explained); err != nil {
				t.Fatalf("what is shown of it, %v, cannot be written as JSON: %v", explained, err)
			}
		}
		first, err := decoded(stored, kind)
		if err != nil {
			if newer := len(stored) > 0 && stored[0] > record.Format; errors.Is(err, record.ErrNewer) != newer || errors.Is(err, record.ErrBroken) == newer {
				t.Fatalf("%v, though newer is %t", err, newer)
			}
			return
		}
		once, err := record.Encode(first)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", first, err)
		}
		second, err := decoded(once, kind)
		if err != nil {
			t.Fatalf("%+v was read, and cannot be read when written: %v", first, err)
		}
		twice, err := record.Encode(second)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("%+v\nwas written, and is read as\n%+v", first, second)
		}
	})
}

// decoded reads a record into a new struct like kind.
func decoded(stored []byte, kind any) (any, error) {
	into := reflect.New(reflect.TypeOf(kind))
	err := record.Decode(stored, into.Interface())
	return into.Interface(), err
}

type item struct {
	partition string
	value     []byte
}

// released gives the items of the stores that releases have left for the tests of upgrades.
func released(tb testing.TB) []item {
	tb.Helper()
	files, err := filepath.Glob("../upgrade/testdata/*/belfry.backup")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no backups of releases: %v", err)
	}
	var all []item
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer file.Close()
		from, err := backup.Open(file)
		if err != nil {
			tb.Fatal(err)
		}
		defer from.Close()
		for {
			e, err := from.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				tb.Fatal(err)
			}
			if e.Item.Exists() {
				all = append(all, item{e.Item.Partition, e.Item.Value})
			}
		}
	}
	return all
}
