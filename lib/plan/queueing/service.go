package queueing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Kind is how durations are distributed.
type Kind string

// The kinds.
const (
	Constant    Kind = "constant"
	Exponential Kind = "exponential"
	Lognormal   Kind = "lognormal" // most are quick, few are very slow: what targets over a network look like
)

var kinds = []string{string(Constant), string(Exponential), string(Lognormal)}

// Service is how long runs take.
type Service struct {
	Kind Kind          `json:"kind"`
	Mean time.Duration `json:"mean"`
	P99  time.Duration `json:"p99"` // of Lognormal: one run in a hundred takes longer
}

// q99 is the 99th percentile of the standard normal distribution.
const q99 = 2.3263478740408408

// widest is how many times the mean the 99th percentile of a lognormal distribution can be.
var widest = math.Exp(q99 * q99 / 2)

func (s Service) check() error {
	switch {
	case s.Kind != Constant && s.Kind != Exponential && s.Kind != Lognormal:
		return invalid.Field("--distribution", string(s.Kind), "one of "+strings.Join(kinds, ", "))
	case s.Mean <= 0 || s.Mean > 24*time.Hour:
		return invalid.Field("--duration", s.Mean.String(), "more than 0s and at most 24h")
	case s.Kind != Lognormal && s.P99 != 0:
		return invalid.Field("--p99", s.P99.String(), "none, which only --distribution lognormal has")
	case s.Kind == Lognormal && (s.P99 <= s.Mean || float64(s.P99) > widest*float64(s.Mean)):
		return invalid.Field("--p99", s.P99.String(), fmt.Sprintf("longer than --duration, and at most %.1f times as long: no lognormal distribution is wider", math.Floor(widest*10)/10))
	}
	return nil
}

// shape gives the parameters of a lognormal distribution: ln(p99/mean) = q99*sigma - sigma²/2.
func (s Service) shape() (mu, sigma float64) {
	sigma = q99 - math.Sqrt(q99*q99-2*math.Log(float64(s.P99)/float64(s.Mean)))
	return math.Log(s.Mean.Seconds()) - sigma*sigma/2, sigma
}

// variation is the squared coefficient of variation.
func (s Service) variation() float64 {
	switch s.Kind {
	case Exponential:
		return 1
	case Lognormal:
		_, sigma := s.shape()
		return math.Exp(sigma*sigma) - 1
	default:
		return 0
	}
}

// draw gives a source of durations, in seconds.
func (s Service) draw(from *rand.Rand) func() float64 {
	mean := s.Mean.Seconds()
	switch s.Kind {
	case Exponential:
		return func() float64 { return mean * from.ExpFloat64() }
	case Lognormal:
		mu, sigma := s.shape()
		return func() float64 { return math.Exp(mu + sigma*from.NormFloat64()) }
	default:
		return func() float64 { return mean }
	}
}
