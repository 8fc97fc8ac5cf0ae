package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The manifest is Pebble's list of tables, a file that it appends to and syncs with each flush and compaction. When Pebble reads it, the
// first record that it cannot read is the end, and tables that only later records name are deleted as leftovers; their logs are gone
// since they were flushed. So one flipped bit would quietly take whole tables. Hence beside each manifest lies a file that says up to
// where it was synced: each time, before Pebble hears of the sync and may drop a log, the length is appended and synced there. What
// lies below it must be readable, or Open refuses (checkManifest). Should the last of these records itself be torn or damaged, the one
// before counts.
//
// What a crash between the two syncs leaves is not vouched for; its logs still stand, and are replayed.
const (
	manifestPrefix = "MANIFEST-"
	vouchPrefix    = "synced." // and the manifest's name
	vouchRecord    = 8 + 4     // length, checksum of it; little endian
)

func isManifest(fsys vfs.FS, path string) bool {
	return strings.HasPrefix(fsys.PathBase(path), manifestPrefix)
}

func vouchPath(fsys vfs.FS, manifest string) string {
	return fsys.PathJoin(fsys.PathDir(manifest), vouchPrefix+fsys.PathBase(manifest))
}

// manifestFile is a manifest that is being written.
type manifestFile struct {
	guardedFile
	path    string
	length  uint64
	vouched vfs.File // nil before the first sync
}

func (f *manifestFile) Write(p []byte) (int, error) {
	n, err := f.guardedFile.Write(p)
	f.length += uint64(n)
	return n, err
}

func (f *manifestFile) Sync() error {
	if err := f.guardedFile.Sync(); err != nil {
		return err
	}
	f.g.change(f.vouch)
	return nil
}

func (f *manifestFile) SyncData() error { return f.Sync() }

// vouch says how much of the manifest is synced. The entry of a new file is made durable with the manifest's own, before the marker
// that names it: see Create.
func (f *manifestFile) vouch() error {
	if f.vouched == nil {
		var err error
		if f.vouched, err = f.g.FS.Create(vouchPath(f.g.FS, f.path), vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	record := binary.LittleEndian.AppendUint64(make([]byte, 0, vouchRecord), f.length)
	record = binary.LittleEndian.AppendUint32(record, crc32.Checksum(record, castagnoli))
	if _, err := f.vouched.Write(record); err != nil {
		return err
	}
	return f.vouched.Sync()
}

func (f *manifestFile) Close() error {
	err := f.guardedFile.Close()
	if f.vouched != nil {
		err = errors.Join(err, f.vouched.Close())
	}
	return err
}

// checkManifest refuses a manifest that is shorter than what was synced of it, or unreadable below that. Stores that were last written
// by a Belfry before this check have nothing that vouches.
func checkManifest(fsys vfs.FS, dir, name string) error {
	path := fsys.PathJoin(dir, name)
	records, err := readFile(fsys, vouchPath(fsys, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var synced uint64
	for ; len(records) >= vouchRecord; records = records[vouchRecord:] {
		if binary.LittleEndian.Uint32(records[8:]) == crc32.Checksum(records[:8], castagnoli) {
			synced = max(synced, binary.LittleEndian.Uint64(records))
		}
	}
	data, err := readFile(fsys, path)
	if err != nil {
		return err
	}
	if at := readableTo(data); at < synced {
		return &damageError{name, fmt.Errorf("unreadable at byte %d, of %d that were synced: restore a backup, or the disk", at, synced)}
	}
	return nil
}

// readableTo gives up to where the chunks of a manifest can be read. It is made as a log is, see checkLogs, of chunks with a shorter
// header: checksum, length, kind from 1 to 4.
func readableTo(data []byte) uint64 {
	const header = 4 + 2 + 1
	at := 0
	for at < len(data) {
		end := min(at-at%logBlock+logBlock, len(data))
		if end-at < header {
			at = end
			continue
		}
		length := header + int(binary.LittleEndian.Uint16(data[at+4:]))
		if kind := data[at+6]; kind < 1 || kind > 4 || at+length > end || binary.LittleEndian.Uint32(data[at:]) != checksum(data[at+6:at+length]) {
			break
		}
		at += length
	}
	return uint64(at)
}
