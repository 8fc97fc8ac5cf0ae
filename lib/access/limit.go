package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds how many callers a limiter tells apart.
const maxBuckets = 10_000

// limiter holds a token bucket for each of many callers, in bounded memory: a caller whose bucket is full again is as good as
// one who never called, and is forgotten when there is no room. Where all are busy at once, those who come later share one.
type limiter struct {
	rate  rate.Limit // 0: no limit
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	shared  *rate.Limiter
	swept   time.Time
}

func newLimiter(perSecond float64, burst int) *limiter {
	return &limiter{rate: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{},
		shared: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// bucket is called with mu held.
func (l *limiter) bucket(caller string, now time.Time) *rate.Limiter {
	if b := l.buckets[caller]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets && now.Sub(l.swept) >= time.Second {
		l.swept = now
		for name, b := range l.buckets {
			if b.TokensAt(now) >= float64(l.burst) {
				delete(l.buckets, name)
			}
		}
	}
	if len(l.buckets) >= maxBuckets {
		return l.shared
	}
	b := rate.NewLimiter(l.rate, l.burst)
	l.buckets[caller] = b
	return b
}

// take takes one out of the caller's bucket. Where it is empty, it gives how long until it is not, and takes nothing.
func (l *limiter) take(caller string, now time.Time) (wait time.Duration) {
	return l.look(caller, now, true)
}

// empty tells whether take would find nothing.
func (l *limiter) empty(caller string, now time.Time) (wait time.Duration) {
	return l.look(caller, now, false)
}

func (l *limiter) look(caller string, now time.Time, take bool) time.Duration {
	if l.rate == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets[caller] == nil && !take {
		return 0
	}
	r := l.bucket(caller, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 || !take {
		r.CancelAt(now)
	}
	return wait
}
