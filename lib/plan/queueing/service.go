package queueing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// How durations are distributed.
const (
	Constant    = "constant"
	Exponential = "exponential"
	Lognormal   = "lognormal" // most are quick, few are very slow: what targets over a network look like
)

var kinds = []string{Constant, Exponential, Lognormal}

// q99 is the 99th percentile of the standard normal distribution.
const q99 = 2.3263478740408408

// widest is how many times the mean the 99th percentile of a lognormal distribution can be.
var widest = math.Exp(q99 * q99 / 2)

// CheckService tells what is wrong with durations, by the names that the API has.
func CheckService(s wire.QueueService) error {
	switch mean, p99 := s.Mean.Std(), s.P99.Std(); {
	case s.Kind != Constant && s.Kind != Exponential && s.Kind != Lognormal:
		return invalid.Field("distribution", s.Kind, "one of "+strings.Join(kinds, ", "))
	case mean <= 0 || mean > 24*time.Hour:
		return invalid.Field("duration", s.Mean.String(), "more than 0s and at most 24h")
	case s.Kind != Lognormal && p99 != 0:
		return invalid.Field("p99", s.P99.String(), "none: only the lognormal distribution has it")
	case s.Kind == Lognormal && (p99 <= mean || float64(p99) > widest*float64(mean)):
		return invalid.Field("p99", s.P99.String(), fmt.Sprintf("longer than the duration, and at most %.1f times as long: no lognormal distribution is wider", math.Floor(widest*10)/10))
	}
	return nil
}

// shape gives the parameters of a lognormal distribution: ln(p99/mean) = q99*sigma - sigma²/2.
func shape(s wire.QueueService) (mu, sigma float64) {
	// Of the widest, rounding may leave less than nothing, and a duration that is no number would never end.
	sigma = q99 - math.Sqrt(max(0, q99*q99-2*math.Log(float64(s.P99)/float64(s.Mean))))
	return math.Log(s.Mean.Std().Seconds()) - sigma*sigma/2, sigma
}

// variation is the squared coefficient of variation.
func variation(s wire.QueueService) float64 {
	switch s.Kind {
	case Exponential:
		return 1
	case Lognormal:
		_, sigma := shape(s)
		return math.Exp(sigma*sigma) - 1
	default:
		return 0
	}
}

// Draw gives a source of durations, in seconds.
func Draw(s wire.QueueService, from *rand.Rand) func() float64 {
	mean := s.Mean.Std().Seconds()
	switch s.Kind {
	case Exponential:
		return func() float64 { return mean * from.ExpFloat64() }
	case Lognormal:
		mu, sigma := shape(s)
		return func() float64 { return math.Exp(mu + sigma*from.NormFloat64()) }
	default:
		return func() float64 { return mean }
	}
}
