package linear

import "context"

// Way is a request on its way, for whoever carries it to tell what the client cannot know. Without a word of it a request whose answer
// was lost may be carried out at any time up to the end of the history. Each that may makes the search for an order longer by a factor,
// and excuses what later answers show.
//
// The nil Way is that of a request that is not recorded.
type Way struct {
	recorder *Recorder
	over     int64 // the moment from which on it does nothing; 0: not told
	never    bool
}

type wayKey struct{}

// WayOf gives the way of the request that has this context, as the next transport below a Recorder's sees it.
func WayOf(ctx context.Context) *Way {
	way, _ := ctx.Value(wayKey{}).(*Way)
	return way
}

// Over tells that from here on the request does nothing more: whoever served it has come to an end, and so has every write that it had
// sent. Told too early it makes a right history wrong; told late it costs time. It may be told before the client has its answer, and long
// after it has given up.
func (w *Way) Over() {
	if w == nil {
		return
	}
	r := w.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.over == 0 {
		r.moment++
		w.over = r.moment
	}
}

// Never tells that the request has reached nobody, and will not: nothing comes of it. It is to be told before the client hears of it.
func (w *Way) Never() {
	if w == nil {
		return
	}
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	w.never = true
}

// ends is the moment by which an operation has happened, if it has; end is that of the history.
func (o operation) ends(end int64) int64 {
	switch {
	case o.back != 0:
		return o.back
	case o.way.over != 0:
		return o.way.over
	}
	return end
}
