package api

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/internal/opaque"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// MaxPage is how many bytes an answer to a listing has at most. One item is always in it: the largest that there can be, a job,
// has some 500 KB.
const MaxPage = 8_000_000

// pageFrame is room for what stands around the items of a page, its cursor included.
const pageFrame = 1 << 10

// page is what all listings take.
type page struct {
	Cursor string `query:"cursor" minLength:"1" maxLength:"4096" doc:"next of the page before, with the same filters"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"how many at most, 50 by default; fewer where the answer would have more than 8 MB (8,000,000 bytes)"`
}

func (p page) limit() int {
	if p.Limit == 0 {
		return control.DefaultLimit
	}
	return p.Limit
}

// widePage is page for what nobody has very many of.
type widePage struct {
	Cursor string `query:"cursor" minLength:"1" maxLength:"4096" doc:"next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"how many at most, 1000 by default; fewer where the answer would have more than 8 MB (8,000,000 bytes)"`
}

func (p widePage) limit() int {
	if p.Limit == 0 {
		return control.MaxLimit
	}
	return p.Limit
}

// fill shows the first of a page's items, as many as the bound of an answer has room for and at least one. next is the cursor behind
// all of them, after gives the one behind an item.
func fill[D, W any](a *api, all []D, next string, show func(D) W, after func(D) string) (shown []W, cursor string) {
	shown = make([]W, 0, len(all))
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // as answers are written
	left := a.PageBytes - pageFrame
	for i, one := range all {
		item := show(one)
		text.Reset()
		_ = encoder.Encode(item) // what has no JSON form fails again where the answer is written
		if left -= a.Measure(text.Bytes()); left < 0 && i > 0 {
			return shown, after(all[i-1])
		}
		shown = append(shown, item)
	}
	return shown, next
}

// part is a page of a list that is there as a whole. A cursor holds the key behind which it goes on; no two have the same key.
func part[T any](a *api, p widePage, all []T, key func(T) []string) (page []T, next string, err error) {
	all = slices.SortedFunc(slices.Values(all), func(x, y T) int { return slices.Compare(key(x), key(y)) })
	if p.Cursor != "" {
		var behind []string
		text, ok := opaque.Bytes(p.Cursor)
		if !ok || json.Unmarshal(text, &behind) != nil || len(behind) == 0 {
			return nil, "", store.ErrBadCursor
		}
		from, found := slices.BinarySearchFunc(all, behind, func(x T, behind []string) int { return slices.Compare(key(x), behind) })
		if found {
			from++
		}
		all = all[from:]
	}
	after := func(last T) string {
		text, _ := json.Marshal(key(last)) // texts always have a JSON form
		return opaque.Text(text)
	}
	if n := p.limit(); n < len(all) {
		all, next = all[:n], after(all[n-1])
	}
	page, next = fill(a, all, next, func(one T) T { return one }, after)
	return page, next, nil
}
