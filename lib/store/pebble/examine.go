package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damage is a file of a store that is not what was written.
type Damage struct {
	File string // in the store's folder; "" where What names it
	What string // was found
	Cost string // what can no longer be read
}

// Examination is what Examine found.
type Examination struct {
	Tables  int      // that were read
	Bytes   int64    // of them
	Damaged []Damage // in the order of the files' names, but for those that are gone
	Held    bool     // a process has the folder open: its logs change, and were not looked at
	Young   int      // tables that no list names yet and that have no end, since that process writes them; they were not looked at
}

// Examine reads all files of a store's folder, and changes nothing. It opens no store, so that it finds all that is damaged and not what
// comes first, and works while a process has the store open. told hears after each table how many bytes of how many were read.
func Examine(ctx context.Context, dir string, fsys vfs.FS, told func(read, of int64)) (Examination, error) {
	if fsys == nil {
		fsys = vfs.Default
	}
	var e Examination
	lock, err := hold(fsys, dir)
	if e.Held = err != nil; !e.Held {
		defer lock.Close()
		e.add(checkLogs(fsys, dir), "the store does not open; behind that place lies what was written last")
	}
	list, err := e.list(fsys, dir)
	e.add(err, "the store does not open")
	names, err := fsys.List(dir)
	if err != nil {
		return e, err
	}
	slices.Sort(names)
	sizes := map[string]int64{}
	var of int64
	for _, name := range names {
		if isTable(name) {
			if info, err := fsys.Stat(fsys.PathJoin(dir, name)); err == nil {
				sizes[name] = info.Size()
				of += info.Size()
			}
		}
	}
	var unlisted []string
	for _, name := range names {
		size, is := sizes[name]
		if !is {
			continue
		}
		if err := ctx.Err(); err != nil {
			return e, err
		}
		if (list != nil || e.Held) && !list[name] && !ended(fsys, fsys.PathJoin(dir, name)) {
			unlisted = append(unlisted, name)
		} else {
			e.table(fsys, dir, name)
		}
		e.Bytes += size
		told(e.Bytes, of)
	}
	e.compare(fsys, dir, list, unlisted)
	return e, nil
}

// listTries is how often the list of a store that is open is looked for: between its name and its content another may take its place.
const listTries = 3

// list gives the tables that the store has; nil with an error.
func (e *Examination) list(fsys vfs.FS, dir string) (map[string]bool, error) {
	for tries := 1; ; tries++ {
		about, err := checkList(fsys, dir)
		var list map[string]bool
		if err == nil && about.Exists {
			list, err = listed(fsys, dir)
		}
		if err == nil || !e.Held || tries == listTries {
			return list, err
		}
	}
}

// compare looks which of the listed tables are gone, and at those without an end that were not listed. A process that has the store open
// lists a table when it is whole, and deletes it when it is listed no more: so what the list says after the look at the tables decides.
func (e *Examination) compare(fsys vfs.FS, dir string, list map[string]bool, unlisted []string) {
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if _, err := fsys.Stat(fsys.PathJoin(dir, name)); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
		}
	}
	if e.Held && list != nil && len(gone)+len(unlisted) > 0 {
		var err error
		list, err = e.list(fsys, dir)
		e.add(err, "the store does not open")
	}
	for _, name := range gone {
		if list[name] {
			e.add(&damageError{name, errors.New("it is gone")}, "none of its records can be read, and the store does not open")
		}
	}
	for _, name := range unlisted {
		switch {
		case list[name]:
			e.table(fsys, dir, name)
		case e.Held:
			e.Young++
		}
	}
}

// unnumbered takes away what a reader says of a table's number: without a store it knows none.
var unnumbered = strings.NewReplacer("pebble: file 000000: ", "", "pebble/table: ", "", "invalid table 000000: ", "", "invalid table 000000 ", "")

// add notes what was found of a file, nil where it is well.
func (e *Examination) add(err error, cost string) {
	if err == nil {
		return
	}
	d := Damage{What: firstLine(err), Cost: cost}
	var damaged *damageError
	if errors.As(err, &damaged) {
		d.File, d.What = damaged.file, unnumbered.Replace(firstLine(damaged.cause))
	}
	e.Damaged = append(e.Damaged, d)
}

// tableEnd is what each whole table ends with. Pebble writes it last.
const tableEnd = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"

// table reads all of a table.
func (e *Examination) table(fsys vfs.FS, dir, name string) {
	file, err := fsys.Open(fsys.PathJoin(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return // a process that has the store open has merged it into another
	}
	const noneOf = "none of its records can be read"
	if err != nil {
		e.add(&damageError{name, err}, noneOf)
		return
	}
	e.Tables++
	r, err := readerOf(&tableFile{File: file, name: name})
	if err != nil {
		e.add(&damageError{name, err}, noneOf)
		_ = file.Close()
		return
	}
	defer r.Close()
	if err := r.ValidateBlockChecksums(); err != nil {
		e.add(&damageError{name, err}, costOf(r))
	}
}

// ended tells whether a table has been written to its end.
func ended(fsys vfs.FS, path string) bool {
	file, err := fsys.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // whoever reads it meets the error
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() < int64(len(tableEnd)) {
		return false
	}
	end := make([]byte, len(tableEnd))
	_, err = file.ReadAt(end, info.Size()-int64(len(end)))
	return (err == nil || errors.Is(err, io.EOF)) && string(end) == tableEnd
}

func readerOf(file vfs.File) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, err
	}
	var all pebble.Options
	all.EnsureDefaults()
	o := all.MakeReaderOptions()
	o.Filters = map[string]sstable.FilterPolicy{bloom.FilterPolicy(10).Name(): bloom.FilterPolicy(10)}
	return sstable.NewReader(context.Background(), readable, o)
}

// costOf tells which records of a damaged table cannot be read. They are read from both ends until damage is met: where one block is
// damaged, what lies between is just what it held.
func costOf(r *sstable.Reader) string {
	all := int64(-1)
	if about, err := r.ReadPropertiesBlock(context.Background(), nil); err == nil {
		all = int64(about.NumEntries)
	}
	before, low, whole := readable(r, false)
	if whole {
		return "its records can be listed, and a look-up of one may be refused"
	}
	after, high, _ := readable(r, true)
	if before+after == 0 || all < 0 {
		return "none of its records can be read"
	}
	between := ""
	if low != "" {
		between += " behind " + low
	}
	if high != "" {
		between += " before " + high
	}
	return fmt.Sprintf("up to %d of its %d records cannot be read, those%s", max(1, all-before-after), all, between)
}

// readable counts the records that can be read from one end on, and names the last of them; whole where that are all.
func readable(r *sstable.Reader, backward bool) (count int64, last string, whole bool) {
	iter, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return 0, "", false
	}
	var key []byte
	first, next := iter.First, iter.Next
	if backward {
		first, next = iter.Last, iter.Prev
	}
	for kv := first(); kv != nil; kv = next() {
		count++
		key = append(key[:0], kv.K.UserKey...)
	}
	whole = iter.Error() == nil
	_ = iter.Close()
	if count == 0 {
		return 0, "", whole
	}
	return count, shownKey(key), whole
}

// shownKey is a key for people.
func shownKey(key []byte) string {
	if k, err := decodeKey(key); err == nil {
		return fmt.Sprintf("%q", k.String())
	}
	if item, err := decodeEntry(key); err == nil {
		return "the expiry of " + shownKey(item)
	}
	return fmt.Sprintf("%q", bytes.TrimSpace(key))
}
