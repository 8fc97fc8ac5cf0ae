package takeover_test

import (
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

func object(t *testing.T, text string) *takeover.Object {
	t.Helper()
	values, err := manifest.Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return takeover.Read(values[0])
}

func TestMembersThatNobodyAskedForAreLeft(t *testing.T) {
	o := object(t, "a: text\nb: {c: 5, d: true}\ne: null\nf: [x]\ng: 1\n")
	if got := o.Text("a"); got != "text" {
		t.Errorf("a is %q", got)
	}
	if n, ok := o.Object("b").Whole("c"); n != 5 || !ok {
		t.Errorf("b.c is %d, %v", n, ok)
	}
	if o.Has("e") || o.Has("nothing") || o.Object("nothing").Text("x") != "" {
		t.Error("what is null or not there was found")
	}
	o.Skip("g")
	if got := o.Left(); !slices.Equal(got, []string{"f"}) {
		t.Errorf("left are %v", got)
	}
	if wrong := o.Wrong(); wrong != "" {
		t.Errorf("wrong: %s", wrong)
	}
}

func TestWhatIsOfAnotherKindIsNamedByItsPath(t *testing.T) {
	o := object(t, "a: 5\nb: {c: [{d: x}, 7], e: 1.5, f: [x, 2]}\n")
	o.Text("a")
	b := o.Object("b")
	for _, inner := range b.Objects("c") {
		inner.Bool("d")
	}
	b.Whole("e")
	b.Texts("f")
	want := "a: got a number, want text; b.c[1]: got a number, want an object; b.c[0].d: got text, want true or false; " +
		"b.e: got 1.5, want a whole number; b.f[1]: got a number, want text"
	if got := o.Wrong(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := object(t, "[]").Wrong(); got != "got an array, want an object" {
		t.Errorf("got %s", got)
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "1234567890": "1234567890", "12345678901": "1234567…", "123456ü8901": "123456…"} {
		if got := takeover.Shorten(text, 10); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
