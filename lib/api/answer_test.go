package api

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
)

func TestOfAnAnswerWithoutAJSONFormNothingIsSent(t *testing.T) {
	type faulty struct {
		Location string `header:"Location"`
		Body     struct{ F func() }
	}
	w := httptest.NewRecorder()
	err := operation{id: "x", status: http.StatusAccepted}.write(w, httptest.NewRequest("GET", "/", nil), reflect.ValueOf(&faulty{Location: "/v1/runs/a"}))
	if err == nil || len(w.Header()) > 0 || w.Body.Len() > 0 {
		t.Errorf("error %v with headers %v and body %q, want an error and nothing sent, so that the problem can be", err, w.Header(), w.Body)
	}
}

func TestAnAnswerHasItsStatusAndHeaders(t *testing.T) {
	type shown struct {
		Status int
		ETag   string `header:"ETag"`
		Count  int    `header:"Belfry-Attempt"`
		Body   []byte
	}
	for _, c := range []struct {
		answer *shown
		status int
		tag    []string
	}{
		{&shown{Status: 201, ETag: `"a"`, Body: []byte("<&>")}, 201, []string{`"a"`}},
		{&shown{Status: 200}, 200, nil}, // a header without a text is left out
		{nil, 204, nil},
	} {
		w := httptest.NewRecorder()
		if err := (operation{id: "x", status: 204}).write(w, httptest.NewRequest("GET", "/", nil), reflect.ValueOf(c.answer)); err != nil {
			t.Fatal(err)
		}
		if w.Code != c.status || !reflect.DeepEqual(w.Header()["Etag"], c.tag) {
			t.Errorf("%+v: status %d and ETag %q, want %d and %q", c.answer, w.Code, w.Header()["Etag"], c.status, c.tag)
		}
		if c.answer != nil && (w.Body.String() != string(c.answer.Body) || w.Header().Get("Belfry-Attempt") != "0") {
			t.Errorf("%+v: body %q and Belfry-Attempt %q, want the body as it is and 0", c.answer, w.Body, w.Header().Get("Belfry-Attempt"))
		}
	}
}

// A parameter that is described and not read would be taken without a word, and do nothing.
func TestParametersOfAllDepthsHaveAField(t *testing.T) {
	type inner struct {
		Twice string `query:"twice"`
	}
	type Twice struct { // named as a field of its own, which Go's rules of promotion would hide
		inner
		Twice []string `header:"Twice-Over"`
	}
	type params struct {
		Twice
		Job  string `path:"job"`
		Last int    `query:"last" required:"true" minimum:"1" doc:"some"`
	}
	all, fields := declared(newDocument("").Components.Schemas, reflect.TypeFor[params]())
	want := map[string][]int{"twice": {0, 0, 0}, "Twice-Over": {0, 1}, "job": {1}, "last": {2}}
	if !reflect.DeepEqual(fields, want) || len(all) != len(want) {
		t.Errorf("%d parameters with the fields %v, want %v", len(all), fields, want)
	}
	if last := all[3]; last.In != "query" || !last.Required || last.Description != "some" || *last.Schema.Minimum != 1 {
		t.Errorf("the last parameter is %+v, want what its tags say", last)
	}
	if path := all[2]; path.In != "path" || !path.Required || path.Explode != nil {
		t.Errorf("the parameter of the path is %+v, want it required", path)
	}
}
