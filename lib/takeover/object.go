package takeover

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// Object reads the members of an object, and remembers which it was asked for and what was of another kind than asked for.
// A member that is null or not there gives the zero value, and one that is not there gives an Object without members.
type Object struct {
	value *manifest.Value
	path  string // from where reading began; "" there
	asked map[string]bool
	wrong *[]string // of all the objects inside one another
}

// Read begins with a value that should be an object.
func Read(v *manifest.Value) *Object {
	o := &Object{value: v, asked: map[string]bool{}, wrong: &[]string{}}
	if v.Kind != manifest.Object {
		o.refuse("", v, "an object")
	}
	return o
}

// Line is where it begins.
func (o *Object) Line() int { return o.value.Line }

// Wrong says what was of another kind than asked for, in one line; "" for nothing.
func (o *Object) Wrong() string { return strings.Join(*o.wrong, "; ") }

// Left names the members that were not asked for and are not null.
func (o *Object) Left() []string {
	var names []string
	for _, m := range o.value.Members {
		if !o.asked[m.Name] && m.Value.Kind != manifest.Null {
			names = append(names, m.Name)
		}
	}
	return names
}

// Skip makes as if the members had been asked for.
func (o *Object) Skip(names ...string) {
	for _, name := range names {
		o.asked[name] = true
	}
}

// Has tells whether there is such a member that is not null.
func (o *Object) Has(name string) bool { return o.get(name) != nil }

func (o *Object) get(name string) *manifest.Value {
	o.asked[name] = true
	v := o.value.Member(name)
	if v != nil && v.Kind == manifest.Null {
		return nil
	}
	return v
}

func (o *Object) at(name string) string { return strings.TrimPrefix(o.path+"."+name, ".") }

func (o *Object) refuse(path string, v *manifest.Value, want string) {
	*o.wrong = append(*o.wrong, strings.TrimPrefix(fmt.Sprintf("%s: got %s, want %s", path, v.Kind, want), ": "))
}

func (o *Object) scalar(name string, kind manifest.Kind) (text string, ok bool) {
	v := o.get(name)
	if v == nil {
		return "", false
	}
	if v.Kind != kind {
		o.refuse(o.at(name), v, kind.String())
		return "", false
	}
	return v.Scalar, true
}

// Text is a member's text.
func (o *Object) Text(name string) string {
	text, _ := o.scalar(name, manifest.Text)
	return text
}

// Bool is whether a member is true.
func (o *Object) Bool(name string) bool {
	text, _ := o.scalar(name, manifest.Bool)
	return text == "true"
}

// Whole is a member's whole number; ok tells whether there is one.
func (o *Object) Whole(name string) (n int64, ok bool) {
	text, ok := o.scalar(name, manifest.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		*o.wrong = append(*o.wrong, fmt.Sprintf("%s: got %s, want a whole number", o.at(name), text))
		return 0, false
	}
	return n, true
}

// Texts are the texts of a member that is an array of them.
func (o *Object) Texts(name string) []string {
	var texts []string
	for i, v := range o.items(name) {
		if v.Kind != manifest.Text {
			o.refuse(fmt.Sprintf("%s[%d]", o.at(name), i), v, "text")
			continue
		}
		texts = append(texts, v.Scalar)
	}
	return texts
}

func (o *Object) items(name string) []*manifest.Value {
	v := o.get(name)
	if v == nil {
		return nil
	}
	if v.Kind != manifest.Array {
		o.refuse(o.at(name), v, "an array")
	}
	return v.Items
}

// Object is a member that is an object.
func (o *Object) Object(name string) *Object {
	v := o.get(name)
	if v == nil {
		v = &manifest.Value{Kind: manifest.Object, Line: o.value.Line}
	}
	return o.inner(v, o.at(name))
}

func (o *Object) inner(v *manifest.Value, path string) *Object {
	if v.Kind != manifest.Object {
		o.refuse(path, v, "an object")
	}
	return &Object{value: v, path: path, asked: map[string]bool{}, wrong: o.wrong}
}

// Objects are the items of a member that is an array of objects.
func (o *Object) Objects(name string) []*Object {
	var all []*Object
	for i, v := range o.items(name) {
		all = append(all, o.inner(v, fmt.Sprintf("%s[%d]", o.at(name), i)))
	}
	return all
}

// Members are the members as they stand, for an object whose names are its owner's.
func (o *Object) Members() []manifest.Member { return o.value.Members }

// Number is a member's number or text as it stands, for what some write as a number and some as a text.
func (o *Object) Number(name string) (text string, number bool) {
	v := o.get(name)
	switch {
	case v == nil:
		return "", false
	case v.Kind != manifest.Number && v.Kind != manifest.Text:
		o.refuse(o.at(name), v, "text or a number")
		return "", false
	}
	return v.Scalar, v.Kind == manifest.Number
}
