package gate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Place is where a run stands in the line of a gate: by rank, then by nominal time, then by the rest of its ID.
type Place struct {
	Rank int64 // of run.Wait
	Run  run.ID
	Of   string // the key of the gate, "" where that is the gate of all
	Line string // the name of the gate where that is a named one, "" for an own gate of its job
}

// PlaceOf is the place that a waiting run names. One that it does not name any more is of nobody.
func PlaceOf(r run.Run) Place {
	at := Of(r)
	p := Place{Rank: r.Wait.Rank - r.Wait.Ahead, Run: r.ID, Of: at.Key}
	if at.IsNamed() {
		p.Line = at.Name
	}
	return p
}

// at is the gate in whose line the place is.
func (p Place) at(tenant string) ID {
	if p.Line != "" {
		return ID{tenant, p.Line, p.Of}
	}
	return ID{tenant, Name(p.Run.Job), p.Of}
}

// Named tells whether a run, as it stands, waits at this place.
func (p Place) Named(by run.Run) bool {
	return by.Version != 0 && by.Waits() && PlaceOf(by) == p
}

// forward is above all ranks of those that stand at the front of a line, and below all that are times: Unix ms of 1987.
const forward = 1 << 39

// Forward is the rank of a run that ignores the pause of its job: before all that the pause holds. Runs of one rank stand by their nominal times.
func Forward(rank int64) int64 { return rank >> 12 }

// Forwarded tells whether somebody may stand at the front of the line whom no pause of the job holds.
func (r *Round) Forwarded() bool { return r.gate.Waiting > 0 && r.gate.Front < forward }

// Forwarded tells whether it is a place at the front of the line.
func (p Place) Forwarded() bool { return p.Rank < forward }

// Key is where the place stands.
func (p Place) Key(tenant string) store.Key {
	at := p.at(tenant)
	sort := at.before() + run.SortFrom(p.Rank) + run.SortFrom(p.Run.Nominal) + p.Run.Random
	if p.Line != "" { // of which job the run is, is not known from where the line is
		sort += "#" + p.Run.Job
	}
	return store.Key{Partition: at.lines(), Sort: sort}
}

// standing is the record of a place.
type standing struct {
	Since int64 `cbor:"1,keyasint,omitempty"` // since when its run waits, Unix ms
}

// put gives the write of the place of a waiting run. One that stands there already is of the same run.
func put(r run.Run, now time.Time, attempt uint64) (store.Op, error) {
	value, err := record.Encode(standing{Since: r.Wait.Since})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: PlaceOf(r).Key(r.Tenant), If: store.Any, Value: value, Expires: now.Add(Keep), Attempt: attempt}, nil
}

// PlaceFromItem reads a place in the line of a gate of that name.
func PlaceFromItem(name string, item store.Item) (Place, error) {
	sort, key, line := item.Sort, "", ""
	job, own := OwnOf(name)
	if !own {
		line = name
		at := strings.LastIndexByte(sort, '#')
		if at < 0 {
			return Place{}, fmt.Errorf("place %q in the line of %s: want rank#nominal#random#job: %w", item.Sort, name, record.ErrBroken)
		}
		sort, job = sort[:at], sort[at+1:]
	}
	if before, rest, ok := strings.Cut(sort, "#"); ok && InKeyedLine(sort) {
		sort, key = rest, KeyAt(before)
	}
	parts := strings.SplitN(sort, "#", 2)
	rank, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || len(parts) != 2 || rank < 0 || !strings.HasPrefix(sort, run.SortFrom(rank)) {
		return Place{}, fmt.Errorf("place %q in the line of %s: want rank#nominal#random: %w", item.Sort, name, record.ErrBroken)
	}
	id, err := run.IDFromSort(job, parts[1])
	if err != nil {
		return Place{}, fmt.Errorf("place in the line of %s: %w", name, err)
	}
	return Place{Rank: rank, Run: id, Of: key, Line: line}, nil
}

// Line is the part of the line that lies behind what was let in, from the front on.
func (g Gate) Line(limit int) store.Range {
	of := g.ID()
	r := store.Range{Partition: of.lines(), From: of.before() + run.SortFrom(g.Front), Limit: limit}
	if g.Key != "" {
		r.To = past(of.before())
	}
	return r
}

// Before is the part of the line that is before a place.
func (g Gate) Before(p Place, limit int) store.Range {
	r := g.Line(limit)
	r.To = p.Key(g.Tenant).Sort
	return r
}

// Compare orders places as the line does.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Rank, o.Rank), cmp.Compare(p.Run.Nominal, o.Run.Nominal), strings.Compare(p.Run.Random, o.Run.Random), strings.Compare(p.Run.Job, o.Run.Job))
}

// Join has a run that was told to be Full, or Behind, wait in line, where it may. What stands in the gate of an earlier opening or claim of it goes.
// counted tells that its place stands in the line already.
func (r *Round) Join(of run.Run, counted bool) {
	r.forget(of.ID)
	rank := PlaceOf(of).Rank
	if r.gate.Waiting == 0 || rank < r.gate.Front {
		r.gate.Front = rank
	}
	if !counted {
		r.gate.Waiting++
	}
	r.joined = append(r.joined, of)
	r.gate.Asks = r.gate.Asks || of.Wait.Asks != ""
}

// Leave leaves out the entry of a run that holds no place any more, in the opening and the claim in which it is given. It tells whether there
// was any. doubtful says that the entry stays: how the run has ended may have it hold up the line, and only its record says so.
func (r *Round) Leave(gone run.Run) (left, doubtful bool) {
	at := r.find(gone.ID)
	if at < 0 || r.gate.Entries[at].since(gone) < 0 {
		return false, false
	}
	if e := r.gate.Entries[at]; e.Strict != 0 && e.since(gone) == 0 && (!gone.State.Ended() || e.blocks(gone)) {
		return false, true
	}
	r.remove(at)
	return true, false
}

// Call is what becomes of a place that is looked at from the front of the line.
type Call uint8

// The calls.
const (
	LetIn  Call = iota + 1 // its run enters
	Stale                  // no run waits there: the place goes
	NoRoom                 // it stays, and so do all behind it
)

// Call looks at a place, the places before it having been looked at, and its run as it stands. limit is how many may be in progress, 0 for any
// number. It is to be written with the gate, and so is what it says.
func (r *Round) Call(p Place, by run.Run, limit int) Call {
	switch {
	case !p.Named(by):
		r.gate.Waiting--
		return Stale
	case r.gate.shut() || !r.Fits(by.Wait.Units, limit):
		return NoRoom
	}
	r.forget(by.ID)
	r.gate.Waiting--
	if !r.gate.Free() { // where there is no definition, nobody is counted
		r.entered = append(r.entered, r.entryOf(by, capped(by.Wait.Units, limit)))
	}
	return LetIn
}

// Strike takes a place out of the line whose run is not to be let in.
func (r *Round) Strike() { r.gate.Waiting = max(0, r.gate.Waiting-1) }

// Room tells whether another one may be in progress.
func (r *Round) Room(limit int) bool { return r.Fits(1, limit) }

// Fits tells whether another one may be in progress that takes so many units; who wants more than there are takes all of them.
func (r *Round) Fits(units, limit int) bool {
	return limit == 0 || r.Units()+capped(units, limit) <= limit
}

// Begins says where the line begins now: at the first place that stays, or nowhere, where it was seen to its end and none does.
func (r *Round) Begins(first Place, more bool) {
	if more {
		r.gate.Front, r.gate.Waiting = first.Rank, max(1, r.gate.Waiting)
	} else {
		r.gate.Front, r.gate.Waiting, r.gate.Asks = 0, 0, false
		r.gate.Shift, r.gate.ByDeadline = 0, false
	}
}

// Puts gives the places of those that joined, and the runs, to be written with the gate.
func (r *Round) Puts(now time.Time, id func() uint64) ([]store.Op, error) {
	var ops []store.Op
	for _, of := range r.joined {
		place, err := put(of, now, id())
		if err != nil {
			return nil, err
		}
		item, err := of.Item(id())
		if err != nil {
			return nil, err
		}
		ops = append(ops, item, place)
	}
	return ops, nil
}
