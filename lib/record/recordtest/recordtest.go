// Package recordtest holds what is written and read by hand against record.Encode and record.Decode, which go by the tags of the
// struct.
package recordtest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/record"
)

// Run writes and reads a struct in many forms: empty, with each field alone in each of some values, with all fields, and with some
// by chance. A field that is forgotten by hand, or written otherwise than its tag says, is found.
func Run[T any](t *testing.T, write func(*T, *record.Writer), read func(*T, *record.Scanner)) {
	t.Helper()
	one := func(v T) {
		t.Helper()
		want, err := record.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 64, 4 << 10} {
			w := record.Write(size)
			write(&v, &w)
			if got := w.Stored(); !bytes.Equal(got, want) {
				t.Fatalf("%+v\nis written as %x\nwant          %x", v, got, want)
			}
		}
		if !Same(t, want, read) {
			t.Fatalf("%+v\nis written as %x, which is not read by hand", v, want)
		}
		for n := range min(len(want), 400) {
			Same(t, want[:n], read) // torn
		}
	}
	var empty T
	one(empty)
	kind := reflect.TypeFor[T]()
	for i := range kind.NumField() {
		if !stored(kind.Field(i)) {
			continue
		}
		for _, value := range values(kind.Field(i).Type) {
			var v T
			settable(&v, i).Set(value)
			one(v)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		var v T
		for i := range kind.NumField() {
			if stored(kind.Field(i)) && (round == 0 || random.IntN(3) > 0) {
				some := values(kind.Field(i).Type)
				settable(&v, i).Set(some[random.IntN(len(some))])
			}
		}
		one(v)
	}
}

// Same reads a record by hand, and tells whether it can be. What is read then must be what record.Decode reads.
func Same[T any](t *testing.T, stored []byte, read func(*T, *record.Scanner)) bool {
	t.Helper()
	var got, want T
	s := record.Scan(stored)
	if read(&got, &s); !s.Whole() {
		return false
	}
	if err := record.Decode(stored, &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%x is read by hand as\n%+v\nwant\n%+v, %v", stored, got, want, err)
	}
	return true
}

func stored(field reflect.StructField) bool {
	tag := field.Tag.Get("cbor")
	return tag != "" && tag != "-"
}

func settable[T any](v *T, field int) reflect.Value { return reflect.ValueOf(v).Elem().Field(field) }

// values are some that a field may have.
func values(kind reflect.Type) []reflect.Value {
	var out []reflect.Value
	add := func(set func(reflect.Value)) {
		v := reflect.New(kind).Elem()
		set(v)
		out = append(out, v)
	}
	switch kind.Kind() {
	case reflect.Int, reflect.Int64:
		for _, n := range []int64{1, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, -1, -24, -25, -256, -257, math.MinInt64} {
			add(func(v reflect.Value) { v.SetInt(n) })
		}
	case reflect.Uint8, reflect.Uint64:
		for _, n := range []uint64{1, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
			if !reflect.Zero(kind).OverflowUint(n) {
				add(func(v reflect.Value) { v.SetUint(n) })
			}
		}
	case reflect.String:
		for _, text := range []string{"a", "normal", "high", "low", "grün", strings.Repeat("b", 23), strings.Repeat("c", 24), strings.Repeat("d", 300)} {
			add(func(v reflect.Value) { v.SetString(text) })
		}
	case reflect.Bool:
		add(func(v reflect.Value) { v.SetBool(true) })
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			for _, size := range []int{1, 24, 70000} {
				add(func(v reflect.Value) { v.SetBytes(bytes.Repeat([]byte{0xff}, size)) })
			}
			break
		}
		elements := values(kind.Elem())
		for _, size := range []int{1, 5, 40} {
			add(func(v reflect.Value) {
				for i := range size {
					v.Set(reflect.Append(v, elements[i%len(elements)]))
				}
			})
		}
	case reflect.Array: // of bytes
		add(func(v reflect.Value) { v.Index(v.Len() - 1).SetUint(7) })
	case reflect.Pointer:
		for _, value := range append(values(kind.Elem()), reflect.Zero(kind.Elem())) {
			add(func(v reflect.Value) {
				v.Set(reflect.New(kind.Elem()))
				v.Elem().Set(value)
			})
		}
	case reflect.Struct:
		full := reflect.New(kind).Elem()
		for i := range kind.NumField() {
			if kind.Field(i).Tag.Get("cbor") == "-" {
				continue
			}
			for _, value := range values(kind.Field(i).Type) {
				add(func(v reflect.Value) { v.Field(i).Set(value) })
				full.Field(i).Set(value)
			}
		}
		out = append(out, full)
	default:
		panic("no values for " + kind.String())
	}
	return out
}
