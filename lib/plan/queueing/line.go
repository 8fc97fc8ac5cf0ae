package queueing

// line is who waits, by when they came; the first in it is the first out.
type line struct {
	came []float64
	head int
}

func (l *line) empty() bool { return l.head == len(l.came) }

func (l *line) push(at float64) { l.came = append(l.came, at) }

func (l *line) pop() float64 {
	came := l.came[l.head]
	if l.head++; l.head > 1024 && 2*l.head > len(l.came) { // what has gone is not to be kept
		n := copy(l.came, l.came[l.head:])
		l.came, l.head = l.came[:n], 0
	}
	return came
}

// departures is a heap of when workers become free.
type departures []float64

func (d *departures) push(at float64) {
	h := append(*d, at)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent] <= h[i] {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
	*d = h
}

func (d *departures) pop() {
	h := *d
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*d = h
}
