package expression_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

// shapes are JSON that is small for the values which it makes.
var shapes = map[string]string{"numbers": "0", "texts": `""`, "escapes": `"\n"`, "arrays": "[]", "arrays of one": "[0]", "arrays of nine": "[0,0,0,0,0,0,0,0,0]", "objects": "{}", "objects of one": `{"a":0}`, "objects of a text": `{"":""}`,
	"objects of nine": `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`, "literals": "null", "long names": `{"` + strings.Repeat("n", 40) + `":false}`}

func repeated(one string, bytes int) []byte {
	return []byte("[" + one + strings.Repeat(","+one, bytes/(len(one)+1)) + "]")
}

func measured(f func()) (allocated, kept uint64) {
	var before, after, collected runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.ReadMemStats(&collected)
	return after.TotalAlloc - before.TotalAlloc, max(collected.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
}

// What the values of JSON take is paid for before they are made: what is read is either refused at once, or it takes no more than there is.
func TestValuesOfJSONTakeNoMoreThanIsPaidFor(t *testing.T) {
	for name, one := range shapes {
		for bytes := 8 << 20; ; bytes = bytes / 4 * 3 {
			text := repeated(one, bytes)
			var read any
			var err error
			allocated, held := measured(func() { read, err = expression.Decode(text) })
			if err == nil {
				if bytes == 8<<20 || held > expression.MaxHeld || allocated > 3*expression.MaxHeld {
					t.Errorf("%s: %d KiB of JSON are taken; %d MiB are held, and %d were allocated", name, bytes>>10, held>>20, allocated>>20)
				}
				runtime.KeepAlive(read)
				break
			}
			var failure *expression.Failure
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), "too large to compute with") || allocated > 1<<20 {
				t.Fatalf("%s: of %d KiB got %v, and %d MiB were allocated", name, bytes>>10, err, allocated>>20)
			}
		}
	}
}

func taken(text []byte) bool {
	_, err := expression.Decode(text)
	return err == nil
}

func TestWhatIsReadIsWholeJSON(t *testing.T) {
	for _, text := range []string{`[1]]`, `1 2`, `{}x`, `{} }`, `"a""b"`, `[1],`, ``, ` `, `[1`, `nul`, strings.Repeat("[", 1001) + strings.Repeat("]", 1001), strings.Repeat("[", 8<<20), strings.Repeat("9", 401), `{"a":` + strings.Repeat("9", 401) + `}`} {
		_, err := expression.Decode([]byte(text))
		var failure *expression.Failure
		if !errors.As(err, &failure) {
			t.Errorf("%.20s: got %v, want a Failure", text, err)
		}
		e, err := expression.Parse(`.input | fromjson`)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := e.Eval(expression.NewBudget(t.Context()), map[string]any{"input": text}); err == nil {
			t.Errorf("%.20s: fromjson gives %v", text, v)
		}
	}
	for _, text := range []string{` [1] `, "1\n", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat("9", 400), `"\"\\"`, `{"\\":"["}`, `[-1.5e+10,true,false,null]`} {
		if !taken([]byte(text)) {
			t.Errorf("%.20s is not taken", text)
		}
	}
}

// What is decoded in one evaluation is held together, until that is over.
func TestWhatIsDecodedIsHeldTogether(t *testing.T) {
	text := repeated("0", expression.MaxHeld/50)
	b := expression.NewBudget(t.Context())
	if _, err := b.Decode(text); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if _, err := b.Decode(text); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Decode(text); err == nil {
		t.Error("twice as much is taken")
	}
}
