package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// currentList is what stands in a message for the file marker.manifest.NUMBER.NAME, which is empty: its name says which manifest counts.
const currentList = "marker.manifest.*"

const optionsPrefix = "OPTIONS-"

// firstManifest is what Pebble calls the manifest of a store that it makes.
const firstManifest = manifestPrefix + "000001"

// checkList finds the manifest that counts, and refuses it where it is damaged.
func checkList(fsys vfs.FS, dir string) (*pebble.DBDesc, error) {
	about, err := pebble.Peek(dir, fsys)
	switch {
	case err != nil:
		return nil, refusedBy(err)
	case !about.Exists:
		return about, checkNew(fsys, dir)
	}
	return about, checkManifest(fsys, dir, fsys.PathBase(about.ManifestFilename))
}

// checkNew refuses a folder in which a store was made, and whose marker is gone. Pebble takes a folder for new by the marker alone, and
// deletes what it then finds there; and an empty file is lost easily, where files are copied or cleaned away.
func checkNew(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !ofStore(name) {
			continue
		}
		if name == firstManifest {
			begun, err := onlyBegun(fsys, fsys.PathJoin(dir, name))
			if err != nil {
				return err
			}
			if begun {
				continue
			}
		}
		return &damageError{currentList, fmt.Errorf("the empty file of this name is gone, which says which list of tables counts, and %s is there: "+
			"bring it back from where the folder was copied, or restore a backup", name)}
	}
	return nil
}

// onlyBegun tells whether a first manifest is what a crash leaves that comes before the marker: it was synced once at most.
func onlyBegun(fsys vfs.FS, manifest string) (bool, error) {
	records, err := readFile(fsys, vouchPath(fsys, manifest))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(records) <= vouchRecord, err
}

// ofStore tells a file that Pebble makes with a store, or later.
func ofStore(name string) bool {
	for _, prefix := range []string{manifestPrefix, optionsPrefix, "marker."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return isTable(name) || strings.HasSuffix(name, ".log")
}

// listed gives the names of the tables that the manifest lists. It reads what is whole of it, also while a process appends to it, and looks
// at no other file.
func listed(fsys vfs.FS, dir string) (map[string]bool, error) {
	s := onlyRead()
	db, err := pebble.Open(dir, &pebble.Options{FS: listView{view{fsys}}, ReadOnly: true, DisableConsistencyCheck: true, Logger: pebbleLog{s}})
	if err != nil {
		return nil, refusedBy(err)
	}
	names := map[string]bool{}
	levels := &db.DebugCurrentVersion().Levels // SSTables gives an error where a table is gone
	for i := range levels {
		for table := range levels[i].All() {
			names[table.TableBacking.DiskFileNum.String()+tableSuffix] = true
		}
	}
	return names, db.Close()
}

// listView is a folder of which only the list of tables is seen.
type listView struct{ view }

func (v listView) List(dir string) ([]string, error) {
	names, err := v.FS.List(dir)
	return slices.DeleteFunc(names, func(name string) bool {
		return isLog(v.FS, name) || strings.HasPrefix(name, optionsPrefix)
	}), err
}
