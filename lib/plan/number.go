package plan

import (
	"math"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// The suffixes of counts, thousands each.
var suffixes = []struct {
	letter string
	times  float64
}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}}

// ParseCount reads a number with an optional k, M or G: 10M, 100k, 1.5k.
func ParseCount(text string) (float64, error) {
	number, times := strings.TrimSpace(text), 1.0
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(number, s.letter); ok {
			number, times = rest, s.times
			break
		}
		if rest, ok := strings.CutSuffix(number, strings.ToUpper(s.letter)); ok {
			number, times = rest, s.times
			break
		}
	}
	v, ok := plain(strings.ReplaceAll(number, ",", ""))
	if !ok {
		return 0, invalid.Field("", text, "a number such as 10M, 100k, 1.5k or 250")
	}
	return v * times, nil
}

// ParseWhole reads a number of things, which have no fractions: 10M, 1.5k, 250.
func ParseWhole(text string) (int, error) {
	v, err := ParseCount(text)
	if err == nil && (v != math.Trunc(v) || v > 1e15) {
		err = invalid.Field("", text, "a whole number such as 10M, 1.5k or 250")
	}
	if err != nil {
		return 0, err
	}
	return int(v), nil
}

// plain reads digits with an optional fraction, and neither signs nor what else strconv takes for a number.
func plain(text string) (float64, bool) {
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// ParseShare reads 20% or 0.2.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, ok := plain(number)
	if !ok {
		return 0, invalid.Field("", text, "a share such as 20% or 0.2")
	}
	if percent {
		v /= 100
	}
	return v, nil
}

// ParseBytes reads a size: 300, 2KB, 1.5MB, in units of 1,024.
func ParseBytes(text string) (int, error) {
	number := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B")
	times := 1.0
	for letter, by := range map[string]float64{"K": 1 << 10, "M": 1 << 20} {
		if rest, ok := strings.CutSuffix(number, letter); ok {
			number, times = rest, by
		}
	}
	v, ok := plain(number)
	if !ok || v*times > 1<<40 {
		return 0, invalid.Field("", text, "a size such as 300, 2KB or 1.5MB")
	}
	return int(v * times), nil
}

// Count writes a number for people: 250, 1.5k, 97.8k, 10M.
func Count(v float64) string {
	for _, s := range suffixes {
		if v >= s.times*0.9995 {
			return trim(v/s.times) + s.letter
		}
	}
	return trim(v)
}

// trim writes three digits that count, and no zeros behind them.
func trim(v float64) string {
	places := 0
	switch {
	case v == 0:
	case v < 1:
		places = 3
	case v < 9.995:
		places = 2
	case v < 99.95:
		places = 1
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Bytes writes a size: 300 B, 2 KB, 1.5 TB, in units of 1,024.
func Bytes(v float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	at := 0
	for v >= 1023.5 && at < len(units)-1 {
		v /= 1024
		at++
	}
	return trim(v) + " " + units[at]
}

// Money writes dollars with commas: cents below a hundred.
func Money(v float64) string {
	places := 2
	if v >= 99.995 {
		places = 0
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	whole, cents, found := strings.Cut(text, ".")
	for cut := len(whole) - 3; cut > 0; cut -= 3 {
		whole = whole[:cut] + "," + whole[cut:]
	}
	if found {
		return whole + "." + cents
	}
	return whole
}
