package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkLogs looks for damage in the logs before Pebble replays them. A log that a crash left ends somewhere in a torn write,
// so an unreadable chunk looks like an end; but each chunk says up to where the log was synced when it was written, and a
// later one that counts the unreadable place as synced proves that it is damage. Pebble looks for such a chunk only from
// the next block of 32 KiB on: in a small log, one flipped bit would quietly take all that follows.
//
// What nothing vouches for is the end of the log: the last writes before the crash, and the chunks that they share a sync
// with.
func checkLogs(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 32)
		if err != nil || !strings.HasSuffix(name, ".log") {
			continue
		}
		data, err := readFile(fsys, fsys.PathJoin(dir, name))
		if err != nil {
			return err
		}
		if at, damaged := findDamage(data, uint32(number)); damaged {
			return &damageError{name, fmt.Errorf("unreadable at byte %d, before its end: restore a backup, or the disk", at)}
		}
	}
	return nil
}

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// A log is blocks of 32 KiB, a block chunks, and a chunk a header (checksum of what follows it, length, kind, number of the
// log, offset up to which the log was synced; little endian) and its part of a batch. Kinds 9 to 12 have the offset.
const (
	logBlock    = 32 << 10
	chunkHeader = 4 + 2 + 1 + 4 + 8
)

// chunk reads the header at the start of data, which ends with its block, and gives the length of the whole chunk.
func chunk(data []byte, log uint32) (length int, synced uint64, ok bool) {
	if len(data) < chunkHeader || data[6] < 9 || data[6] > 12 || binary.LittleEndian.Uint32(data[7:]) != log {
		return 0, 0, false
	}
	length = chunkHeader + int(binary.LittleEndian.Uint16(data[4:]))
	if length > len(data) {
		return 0, 0, false
	}
	if binary.LittleEndian.Uint32(data) != checksum(data[6:length]) {
		return 0, 0, false
	}
	return length, binary.LittleEndian.Uint64(data[11:]), true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a chunk, from its kind on.
func checksum(data []byte) uint32 {
	sum := crc32.Checksum(data, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// findDamage gives the first place that cannot be read although a later chunk counts it as synced.
func findDamage(data []byte, log uint32) (at int, damaged bool) {
	end := func(at int) int { return min(at-at%logBlock+logBlock, len(data)) }
	for at < len(data) {
		if end(at)-at < chunkHeader { // too little for a header: the rest of a block
			at = end(at)
			continue
		}
		length, _, ok := chunk(data[at:end(at)], log)
		if !ok {
			break
		}
		at += length
	}
	// Chunks of this log have its number in their headers, which is looked for at any place: the length of an unreadable
	// chunk cannot be trusted.
	number := binary.LittleEndian.AppendUint32(nil, log)
	for from := at + 1; from+chunkHeader <= len(data); {
		next := bytes.Index(data[from+7:], number)
		if next < 0 {
			break
		}
		from += next
		if _, synced, ok := chunk(data[from:end(from)], log); ok && synced > uint64(at) {
			return at, true
		}
		from++
	}
	return 0, false
}
