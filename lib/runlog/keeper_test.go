package runlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/target"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// whole keeps everything, and the time of each byte: what a Keeper is held against.
type whole struct {
	text  []byte
	times []time.Time
}

func (w *whole) write(p []byte, now time.Time) {
	w.text = append(w.text, p...)
	for range p {
		w.times = append(w.times, now)
	}
}

// want is the log with the given bounds, and with the time in front of each line.
func (w *whole) want(most int) (plain, timed string) {
	stamp := func(out *strings.Builder, begin, end int) {
		for at := begin; at < end; {
			line := end
			if n := bytes.IndexByte(w.text[at:end], '\n') + 1; n > 0 {
				line = at + n
			}
			first := bytes.LastIndexByte(w.text[:at], '\n') + 1
			out.WriteString(w.times[first].Format("2006-01-02T15:04:05.000Z "))
			out.Write(w.text[at:line])
			at = line
		}
	}
	var out strings.Builder
	if len(w.text) <= most {
		stamp(&out, 0, len(w.text))
		return string(w.text), out.String()
	}
	head := len(target.WholeText(w.text[:most/4]))
	tail := len(w.text) - (most - head)
	for torn := tail; torn < min(len(w.text), tail+utf8.UTFMax); torn++ {
		if utf8.RuneStart(w.text[torn]) {
			tail = torn
			break
		}
	}
	if tail == head {
		stamp(&out, 0, len(w.text))
		return string(w.text), out.String()
	}
	line := gapLine(int64(bytes.Count(w.text[head:tail], []byte("\n"))), int64(tail-head))
	if head > 0 && w.text[head-1] != '\n' {
		line = "\n" + line
	}
	stamp(&out, 0, head)
	out.WriteString(line)
	stamp(&out, tail, len(w.text))
	return string(w.text[:head]) + line + string(w.text[tail:]), out.String()
}

var pieces = []string{"\n", "a\n", "a line of a log\n", "no end", "日本語", "a😀b", "\xff\xfe\n", "é\né\n", strings.Repeat("long ", 40), "\r\n", "e\u0301\n", strings.Repeat("\x80", 9)}

// Whatever is written in whatever pieces, beginning and end are kept to the byte, what is between is counted, and each line has its time.
func TestAKeeperIsAsGoodAsOneThatKeepsAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 4000 {
		most := []int{0, 1, 3, 4, 40, 100, 257, 1000}[random.IntN(8)]
		now := noon
		k, all := NewKeeper(func() time.Time { return now }, most), &whole{}
		follows := random.IntN(2) == 0
		var shown []byte
		var next, marked int64
		for range random.IntN(40) {
			text := pieces[random.IntN(len(pieces))]
			for range random.IntN(3) {
				text += pieces[random.IntN(len(pieces))]
			}
			if n, err := k.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatal(n, err)
			}
			all.write([]byte(text), now)
			if written := int64(len(all.text)); written-marked >= bytesPerMark && random.IntN(3) > 0 { // else the times would be a bound
				now, marked = now.Add(time.Duration(random.IntN(3000))*time.Millisecond), written
			}
			if log := k.Log(false); follows {
				part := log.Show(View{From: next, Follow: true})
				if next < log.tailBegins() && log.gap > 0 { // it fell behind
					shown = bytes.Clone(all.text[:part.Next])
				} else {
					shown = append(shown, part.Text...)
				}
				next = part.Next
			}
		}
		if string(shown) != string(all.text[:next]) {
			t.Fatalf("round %d: followed %q, want %q", round, shown, all.text[:next])
		}
		log := k.Log(true)
		plain, timed := all.want(most)
		if got := string(log.Text()); got != plain {
			t.Fatalf("round %d, at most %d of %d bytes: got %q, want %q", round, most, len(all.text), got, plain)
		}
		if got := string(log.Show(View{Times: true}).Text); got != timed {
			t.Fatalf("round %d, at most %d of %d bytes: got %q, want %q", round, most, len(all.text), got, timed)
		}
		stored, err := log.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back := Decode(stored); string(back.Show(View{Times: true}).Text) != timed || back.Written() != int64(len(all.text)) {
			t.Fatalf("round %d: read back %q, want %q", round, back.Show(View{Times: true}).Text, timed)
		}
	}
}

// Each line has the time at which it began, also where every line has one of its own; of lines too short for that, fewer are kept.
func TestEachLineHasItsTime(t *testing.T) {
	for size := 1; size < 20; size++ {
		now := noon
		k := NewKeeper(func() time.Time { return now }, 8<<10)
		for i := range 4000 {
			_, _ = fmt.Fprintf(k, "%0*d\n", size, i%10)
			now = now.Add(time.Duration(1+i%3) * time.Millisecond)
		}
		log := k.Log(true)
		text := string(log.Show(View{Times: true}).Text)
		head, tail, cut := strings.Cut(text, "… ")
		if !cut || len(log.head)+len(log.tail) > 8<<10 || len(log.marks) > 8<<10/bytesPerMark*5/4+5 {
			t.Fatalf("%d: %d bytes are kept with %d marks, cut %t", size, len(log.head)+len(log.tail), len(log.marks), cut)
		}
		if size >= bytesPerMark && len(log.head)+len(log.tail) < 8<<10-size {
			t.Errorf("lines of %d: %d bytes are kept", size, len(log.head)+len(log.tail))
		}
		at := func(i int) string {
			ms := i/3*6 + []int{0, 1, 3}[i%3]
			return noon.Add(time.Duration(ms) * time.Millisecond).Format(timeForm)
		}
		if !strings.HasPrefix(head, at(0)) || !strings.Contains(head, "\n"+at(100)) || !strings.Contains(tail, "\n"+at(3999)) || !strings.Contains(tail, "\n"+at(3900)) {
			t.Errorf("lines of %d: %.200s", size, text)
		}
	}
}

// A clock that is set back does not have lines come before those in front of them.
func TestTimesOfLinesNeverGoBack(t *testing.T) {
	now := noon
	k := NewKeeper(func() time.Time { return now }, 1000)
	for _, step := range []time.Duration{0, time.Second, -time.Hour, time.Millisecond, 2 * time.Hour} {
		now = now.Add(step)
		_, _ = k.Write([]byte("x\n"))
	}
	want := "2026-11-21T12:00:00.000Z x\n" + strings.Repeat("2026-11-21T12:00:01.000Z x\n", 3) + "2026-11-21T13:00:01.001Z x\n"
	if got := string(k.Log(true).Show(View{Times: true}).Text); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a script says last is there, whatever it has said before.
func TestTheEndOfALongLogIsKept(t *testing.T) {
	k := NewKeeper(func() time.Time { return noon }, MaxBytes)
	line := strings.Repeat("x", 99) + "\n"
	for range 3 << 10 {
		_, _ = k.Write([]byte(line))
	}
	_, _ = k.Write([]byte("FATAL no disk\n"))
	text := string(k.Log(true).Text())
	gap := 300<<10 + 14 - 256<<10
	marker := gapLine(int64((64<<10+gap)/100-(64<<10)/100), int64(gap))
	if !strings.HasSuffix(text, line+"FATAL no disk\n") || strings.Count(text, marker) != 1 || len(text) != 256<<10+len(marker)+1 {
		t.Errorf("%d bytes, ending in %q; want %q in it", len(text), text[len(text)-40:], marker)
	}
	if head, _, _ := strings.Cut(text, "\n…"); len(head) != 64<<10 {
		t.Errorf("the beginning has %d bytes", len(head))
	}
}

// One line that is longer than everything is kept at both ends, and memory stays bounded.
func TestALineWithoutEnd(t *testing.T) {
	k := NewKeeper(func() time.Time { return noon }, MaxBytes)
	part := bytes.Repeat([]byte("é"), 1<<19)
	for range 40 {
		_, _ = k.Write(part)
	}
	if len(k.tail.text) > MaxBytes*5/4+pieceBytes || cap(k.tail.text) > 4*MaxBytes {
		t.Errorf("it holds %d bytes in %d", len(k.tail.text), cap(k.tail.text))
	}
	text := k.Log(true).Text()
	if !utf8.Valid(text) || !bytes.Contains(text, []byte("é\n… 40,704 KB are not kept …\né")) {
		i := bytes.Index(text, []byte("…"))
		t.Errorf("%q", text[max(0, i-5):i+50])
	}
}

func TestWhatIsNotKeptIsSaid(t *testing.T) {
	for want, c := range map[string][2]int64{
		"… 1 line, 2 bytes are not kept …\n":        {1, 2},
		"… 1 byte is not kept …\n":                  {0, 1},
		"… 1,234 lines, 56 KB are not kept …\n":     {1234, 56<<10 + 400},
		"… 1,023 bytes are not kept …\n":            {0, 1023},
		"… 12 lines, 1,048,576 KB are not kept …\n": {12, 1 << 30},
	} {
		if got := gapLine(c[0], c[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
