package dynamo

import (
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// clock learns how far the store's clock is ahead of this host's, from the Date header of every answer, errors included.
//
// The header tells whole seconds, cut off. The store's clock stood between Date and a second later at some moment between the
// question and the answer, so the skew lies in an interval of a second and a round trip. All answers are true at once: the
// intersection of their intervals shrinks with each, to a tenth of a second after ten of them, and to little more than a round trip
// in the end. Skew is its lower bound. With that, this host's idea of the store's time is never ahead of it, and so nothing
// starts early (P3); the price is that a process that has just begun starts things late, by up to a second, half of one at the mean.
type clock struct {
	now func() time.Time

	mu        sync.Mutex
	at        time.Time // of the last answer; zero before the first
	low, high time.Duration
	asking    bool      // a question is under way
	last      time.Time // of the last question's begin
}

const (
	// drift is how far two clocks may move apart: 100 parts in a million, several times what quartz does.
	drift = 10_000
	// apart is how far the clocks of two of AWS's machines may be from each other. Intervals that miss each other by more than
	// that tell that a clock was stepped.
	apart = 100 * time.Millisecond
	// fresh is how long an answer counts as new, and sharp how wide an interval may be that is not worth a question.
	fresh = 30 * time.Second
	sharp = 200 * time.Millisecond
	// again is the least time between two questions.
	again = time.Second
)

// learn takes an answer that came at answered to what was asked at asked.
func (c *clock) learn(asked, answered, date time.Time) {
	low, high := date.Sub(answered), date.Add(time.Second).Sub(asked)
	if low > high {
		return // this host's clock was stepped in between
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() {
		moved := max(answered.Sub(c.at), 0) / drift
		lowest, highest := max(low, c.low-moved), min(high, c.high+moved)
		switch {
		case lowest <= highest:
			low, high = lowest, highest
		case lowest-highest <= apart:
			low, high = highest, lowest
		}
	}
	c.at, c.low, c.high = answered, low, high
}

// skew is what was learned, 0 before the first answer; vague asks the caller to fetch a new answer, and to say asked after it.
func (c *clock) skew() (skew time.Duration, vague bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	age := max(now.Sub(c.at), 0)
	old := c.at.IsZero() || age > fresh || c.high-c.low > sharp
	if old && !c.asking && age > again && now.Sub(c.last) > again {
		vague, c.asking, c.last = true, true, now
	}
	if c.at.IsZero() {
		return 0, vague
	}
	return c.low - age/drift, vague
}

func (c *clock) asked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
}

// timed is an HTTP client that lets the clock learn.
type timed struct {
	client aws.HTTPClient
	clock  *clock
}

func (t timed) Do(r *http.Request) (*http.Response, error) {
	asked := t.clock.now()
	answer, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		t.clock.learn(asked, t.clock.now(), date)
	}
	return answer, nil
}
