package schedule

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// zoneinfo.gz is the IANA time zone database, compiled. It is embedded because Go's own loader prefers the host's
// copy: two hosts with different ones would disagree on what fires when. docs/schedule.md says how to renew it.
// It is packed as a whole, to a quarter of what its files take when each is packed alone; testdata/zones.py says how.
//
//go:embed zoneinfo.gz
var zoneinfo []byte

// tzdataVersion names the release in zoneinfo.gz; a test ties it to the file's hash.
const tzdataVersion = "2025c"

// TZDataVersion gives the release of the IANA time zone database by which every zone is read, such as "2025c".
func TZDataVersion() string { return tzdataVersion }

const (
	wantZone        = `an IANA time zone name such as "Europe/Berlin" or "UTC"`
	longestZoneName = 64 // bytes; the longest name there is has 32
)

// LoadZone gives the zone of an IANA name from the embedded database, never from the host. The error is an
// *invalid.Error of the field "timezone".
func LoadZone(name string) (*time.Location, error) {
	data, err := zoneData(name)
	if err != nil {
		return nil, err
	}
	loc, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("read the embedded zone %s: %w", name, err)
	}
	return loc, nil
}

// zoneFiles gives the compiled file of each zone by its name.
var zoneFiles = sync.OnceValues(func() (map[string][]byte, error) {
	files, err := unpackZones(zoneinfo)
	if err != nil {
		return nil, fmt.Errorf("open the embedded zones: %w", err)
	}
	return files, nil
})

func unpackZones(packed []byte) (map[string][]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	index, data, _ := bytes.Cut(all, []byte("\n\n"))
	files := make(map[string][]byte, bytes.Count(index, []byte("\n"))+1)
	for line := range strings.Lines(string(index)) {
		name, place, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		first, length, _ := strings.Cut(place, " ")
		from, err1 := strconv.Atoi(first)
		size, err2 := strconv.Atoi(length)
		if errors.Join(err1, err2) != nil || min(from, size) < 0 || from > len(data)-size {
			return nil, fmt.Errorf("no place for a zone: %q", line)
		}
		files[name] = data[from : from+size : from+size]
	}
	return files, nil
}

// ZoneNames gives the names that LoadZone knows, sorted.
func ZoneNames() ([]string, error) {
	files, err := zoneFiles()
	return slices.Sorted(maps.Keys(files)), err
}

func zoneData(name string) ([]byte, error) {
	if name == "" || len(name) > longestZoneName {
		return nil, invalid.Field("timezone", name, wantZone)
	}
	files, err := zoneFiles()
	if err != nil {
		return nil, err
	}
	data, ok := files[name]
	if !ok {
		for known := range files {
			if strings.EqualFold(known, name) {
				return nil, invalid.Field("timezone", name, fmt.Sprintf("%q, in these capitals", known))
			}
		}
		return nil, invalid.Field("timezone", name, wantZone)
	}
	return data, nil
}

// zones holds a zone for each name that was asked for; it is bounded by the names in the database.
var zones sync.Map

func zoneOf(name string) (*zone, error) {
	if name == "" {
		name = "UTC"
	}
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	data, err := zoneData(name)
	if err != nil {
		return nil, err
	}
	z, err := newZone(data)
	if err != nil {
		return nil, fmt.Errorf("read the embedded zone %s: %w", name, err)
	}
	known, _ := zones.LoadOrStore(name, z)
	return known.(*zone), nil
}

// zone is the history of a place's offset from UTC as spans of constant offset, from before 1970 on: a table up to
// until, and after that the yearly rule.
type zone struct {
	starts []int64 // of spans, for the search
	spans  []span
	until  int64 // Unix seconds; math.MaxInt64 without a yearly rule
	rule   *yearlyRule
}

// span is a stretch of time in which the wall clock runs evenly: wall = u + offset for start <= u < end. Wall times are
// seconds too, counted as if the wall showed UTC.
type span struct {
	start, end int64 // Unix seconds
	fresh      int64 // wall time from which on the wall shows what it has not shown before
	offset     int32
	before     int32 // offset of the span before
}

// The table reaches to 2100: a schedule in anyone's lifetime never has to evaluate the rule.
const endOfTable = 2100

func newZone(data []byte) (*zone, error) {
	changes, rule, err := parseTZif(data)
	if err != nil {
		return nil, err
	}
	z := &zone{until: math.MaxInt64, rule: rule}
	if rule != nil {
		written := changes[len(changes)-1].at
		for y := 1970; y < endOfTable; y++ {
			for _, c := range rule.changes(y) {
				if c.at > written {
					changes = append(changes, c)
				}
			}
		}
	}
	fresh, offset := int64(math.MinInt64), changes[0].offset
	for i, c := range changes {
		if i > 0 && c.offset == offset {
			continue // a new name or a new law, but the same clock
		}
		if n := len(z.spans); n > 0 {
			z.spans[n-1].end = c.at
			fresh = max(fresh, c.at+int64(offset))
		}
		z.spans = append(z.spans, span{start: c.at, end: math.MaxInt64, fresh: fresh, offset: c.offset, before: offset})
		offset = c.offset
	}
	if rule != nil {
		z.until = z.spans[len(z.spans)-1].start
	}
	for z.spans[0].end <= 0 {
		z.spans = z.spans[1:] // no fire lies before 1970
	}
	z.spans = slices.Clone(z.spans)
	for _, s := range z.spans {
		z.starts = append(z.starts, s.start)
	}
	return z, nil
}

// at gives the span that holds the instant u >= 0.
func (z *zone) at(u int64) span {
	if u >= z.until {
		return z.rule.at(u)
	}
	lo, hi := 0, len(z.starts) // starts[lo] <= u < starts[hi]
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); z.starts[mid] <= u {
			lo = mid
		} else {
			hi = mid
		}
	}
	return z.spans[lo]
}
