package record

import "fmt"

// AppendTime writes Unix ms as keys hold them: as digits that sort as the numbers do.
func AppendTime(out []byte, ms int64) []byte { return AppendPadded(out, ms, 15) }

// AppendPadded writes a number as so many digits, with zeros in front.
func AppendPadded(out []byte, n int64, digits int) []byte {
	begin := len(out)
	for range digits {
		out = append(out, '0')
	}
	rest := max(n, 0)
	for at := len(out) - 1; rest > 0 && at >= begin; at-- {
		out[at] += byte(rest % 10)
		rest /= 10
	}
	if n < 0 || rest > 0 { // no time or place that Belfry gives
		return fmt.Appendf(out[:begin], "%0*d", digits, n)
	}
	return out
}
