package runlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// gapped writes 1,000 numbered lines, one a second, of which the first ten and the last 31 are kept.
func gapped(t *testing.T) Log {
	t.Helper()
	now := noon
	k := NewKeeper(func() time.Time { return now }, 412)
	for i := range 1000 {
		_, _ = fmt.Fprintf(k, "line %04d\n", i)
		now = now.Add(time.Second)
	}
	if l := k.Log(true); string(l.tail[:8]) != "ine 0969" || !strings.HasSuffix(string(l.head), "line 0009\nlin") {
		t.Fatalf("a log of %q … %q", l.head, l.tail)
	}
	return k.Log(true)
}

func TestAPartOfALogIsChosen(t *testing.T) {
	l := gapped(t)
	const marker = "… 959 lines, 9 KB are not kept …\n"
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	if got := string(l.Show(View{From: 9000, Follow: true}).Text); !strings.HasPrefix(got, "\n… 691 bytes are not kept …\nine 0969\n") {
		t.Errorf("who follows and falls behind is shown %.80q", got)
	}
	for name, c := range map[string]struct {
		from           int64
		begins, second string
	}{
		"all":                      {0, "line 0000", "line 0001"},
		"the last line":            {l.LastLines(1), "line 0999", ""},
		"three lines":              {l.LastLines(3), "line 0997", "line 0998"},
		"all lines of the end":     {l.LastLines(31), "ine 0969", "line 0970"},
		"one line more":            {l.LastLines(32), marker, "ine 0969"},
		"up to the beginning":      {l.LastLines(989), marker, "ine 0969"},
		"a torn line":              {l.LastLines(990), "lin", marker},
		"some of the beginning":    {l.LastLines(992), "line 0008", "line 0009"},
		"as many lines as written": {l.LastLines(1000), "line 0000", "line 0001"},
		"more lines":               {l.LastLines(5000), "line 0000", "line 0001"},
		"25 bytes":                 {l.LastBytes(25), "line 0998", "line 0999"},
		"400 bytes":                {l.LastBytes(400), marker, "ine 0969"},
		"all but a line":           {l.LastBytes(9995), "line 0001", "line 0002"},
		"since the beginning":      {l.Since(noon), "line 0000", "line 0001"},
		"since before":             {l.Since(noon.Add(-time.Hour)), "line 0000", "line 0001"},
		"since a line":             {l.Since(at(5)), "line 0005", "line 0006"},
		"since between two":        {l.Since(at(5).Add(1)), "line 0006", "line 0007"},
		"since what is not kept":   {l.Since(at(500)), marker, "ine 0969"},
		"since the end's first":    {l.Since(at(971)), "line 0971", "line 0972"},
		"since the last":           {l.Since(at(999)), "line 0999", ""},
		"since later":              {l.Since(at(1000)), "", ""},
		"from what is not kept":    {9000, "… 691 bytes are not kept …\n", "ine 0969"},
		"beyond":                   {1 << 40, "", ""},
	} {
		shown := l.Show(View{From: c.from})
		lines := strings.SplitAfter(string(shown.Text), "\n")
		if !strings.HasPrefix(lines[0], c.begins) || (c.begins == "") != (len(shown.Text) == 0) || c.second != "" && !strings.HasPrefix(lines[1], c.second) {
			t.Errorf("%s: from %d it is %.80q, want lines that begin with %q and %q", name, c.from, shown.Text, c.begins, c.second)
		}
		if shown.Next != 10000 {
			t.Errorf("%s: it ends at %d", name, shown.Next)
		}
		timed := string(l.Show(View{From: c.from, Times: true}).Text)
		for line := range strings.Lines(timed) {
			if i := strings.Index(line, "ne 0"); i >= 0 {
				var n int
				_, _ = fmt.Sscanf(line[i:], "ne %d", &n)
				if !strings.HasPrefix(line, at(n).Format(timeForm)) {
					t.Fatalf("%s: %q, want %s", name, line, at(n))
				}
			}
		}
	}
}

// What is too much for one answer is shown in several, which are together what one would have been.
func TestALogIsShownInParts(t *testing.T) {
	l := gapped(t)
	for _, times := range []bool{false, true} {
		want := string(l.Show(View{Times: times}).Text)
		var got strings.Builder
		next, parts := int64(0), 0
		for ; next < l.Written(); parts++ {
			part := l.Show(View{From: next, Follow: true, Times: times, Most: 100})
			if part.Next <= next || part.From != next {
				t.Fatalf("from %d to %d", next, part.Next)
			}
			got.Write(part.Text)
			next = part.Next
		}
		if got.String() != want || times && parts < 5 {
			t.Errorf("times %t: %d parts: %q, want %q", times, parts, got.String(), want)
		}
	}
}

// The log of a version that knew no times is its text.
func TestALogOfAVersionBefore(t *testing.T) {
	l := Decode([]byte("one\ntwo\n[cut here: 3 more bytes were logged]\n"))
	if got := l.Show(View{From: l.LastLines(2), Times: true}); string(got.Text) != "two\n[cut here: 3 more bytes were logged]\n" {
		t.Errorf("its last lines: %q", got.Text)
	}
	if l.Since(noon) != 0 || l.Attempt != 0 || Decode(nil).Written() != 0 {
		t.Errorf("%+v", l)
	}
}

func TestTheTailOfALogBeginsWithALine(t *testing.T) {
	long := strings.Repeat("é", 50)
	for name, c := range map[string]struct {
		text  string
		bytes int
		want  string
	}{
		"Empty":              {"", 10, ""},
		"Whole":              {"one\ntwo\n", 8, "one\ntwo\n"},
		"MoreThanThereIs":    {"one\ntwo\n", 100, "one\ntwo\n"},
		"InALine":            {"one\ntwo\nthree\n", 8, "three\n"},
		"AtALine":            {"one\ntwo\nthree\n", 10, "two\nthree\n"},
		"LineBreakFirst":     {"one\ntwo\n", 5, "two\n"},
		"LineThatHasNoEnd":   {"one\ntwo", 5, "two"},
		"WithinALongLine":    {"a long line\n", 5, "line\n"},
		"WithinTheOnlyLine":  {"a long line", 4, "line"},
		"WithACharacter":     {long, 5, "éé"},
		"CharacterAndBreak":  {long + "\n", 4, "é\n"},
		"BytesThatAreNoText": {strings.Repeat("\x80", 20), 10, strings.Repeat("\x80", 7)},
		"LessThanACharacter": {"日", 1, ""},
		"EmptyLines":         {"a\n\n\n", 2, "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.text[Plain([]byte(c.text)).LastBytes(c.bytes):]; got != c.want {
				t.Errorf("the last %d of %q: got %q, want %q", c.bytes, c.text, got, c.want)
			}
		})
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree"), 7)
	f.Add([]byte("日本\n\xff"), 3)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		if n < 1 {
			return
		}
		l := Plain(text)
		at := int(l.LastBytes(n))
		switch {
		case at < 0 || at > len(text) || len(text)-at > n:
			t.Errorf("the last %d of %q begin at %d", n, text, at)
		case utf8.Valid(text) && !utf8.Valid(text[at:]):
			t.Errorf("the last %d of %q begin within a character, at %d", n, text, at)
		case n > utf8.UTFMax && at == len(text) && len(text) > 0:
			t.Errorf("the last %d of %q are nothing", n, text)
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		if last := len(lines) - 1; len(lines[last]) == 0 {
			lines = lines[:last]
		}
		want := bytes.Join(lines[max(0, len(lines)-n):], nil)
		if got := text[l.LastLines(n):]; !bytes.Equal(got, want) {
			t.Errorf("the last %d lines of %q: got %q, want %q", n, text, got, want)
		}
	})
}

// FuzzDecode reads whatever somebody else may store: as a log that can be shown, or as text.
func FuzzDecode(f *testing.F) {
	now := noon
	k := NewKeeper(func() time.Time { return now }, 50)
	for i := range 40 {
		_, _ = fmt.Fprintf(k, "line %d\n", i)
		now = now.Add(time.Duration(i) * time.Minute)
	}
	data, err := k.Log(true).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("plain"))
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		broken := bytes.Clone(data)
		broken[len(begins)+random.IntN(len(broken)-len(begins))] = byte(random.IntN(256))
		f.Add(broken)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Decode(data)
		for _, v := range []View{{}, {Times: true}, {From: l.LastLines(3), Times: true}, {From: l.LastBytes(9)}, {From: l.Since(noon)}, {From: l.Written() / 2, Times: true, Most: 10}} {
			if shown := l.Show(v); shown.Next < shown.From || shown.Next > l.Written() || v.Most == 0 && shown.Next != l.Written() {
				t.Errorf("%+v of %q: from %d to %d of %d", v, data, shown.From, shown.Next, l.Written())
			}
		}
	})
}
