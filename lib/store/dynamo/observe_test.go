package dynamo_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

func TestWhatRequestsConsumeIsTold(t *testing.T) {
	w := &wire{answer: func(operation string, n int, body map[string]any) (*reply, error) {
		if body["ReturnConsumedCapacity"] != "TOTAL" {
			t.Errorf("%s does not ask what it consumes", operation)
		}
		one, many := `"ConsumedCapacity":{"CapacityUnits":1.5}`, `"ConsumedCapacity":[{"CapacityUnits":2},{"CapacityUnits":0.5}]`
		switch operation {
		case "PutItem":
			if n == 2 {
				return refuses(400, "ConditionalCheckFailedException", `,"Item":`+record(3, 9, strings.Repeat("x", 3000))), nil
			}
			if n == 3 {
				return refuses(400, "ConditionalCheckFailedException"), nil
			}
			return says(200, "{"+one+"}"), nil
		case "UpdateItem":
			return says(200, `{"Attributes":{"n":{"N":"2"}},`+one+"}"), nil
		case "BatchGetItem":
			return says(200, `{"Responses":{"belfry":[]},`+many+"}"), nil
		case "TransactWriteItems":
			return says(200, "{"+many+"}"), nil
		}
		return says(200, "{"+one+"}"), nil
	}}
	var mu sync.Mutex
	got := map[string]string{}
	cfg := config(w)
	cfg.Observe = func(u dynamo.Use) {
		mu.Lock()
		defer mu.Unlock()
		got[u.Operation] += fmt.Sprintf("%v/%v ", u.Read, u.Write)
	}
	s, err := dynamo.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := putAt(store.Absent)
	other.Key.Sort = "other"
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Get(t.Context(), at))
	must(s.Get(t.Context(), at, other.Key))
	must(s.Query(t.Context(), store.Range{Partition: "p"}))
	must(s.Write(t.Context(), putAt(store.Absent)))
	for range 2 {
		if _, err := s.Write(t.Context(), putAt(store.Version(1))); store.AsConflict(err) == nil {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	must(s.Write(t.Context(), putAt(store.Any)))
	must(s.Write(t.Context(), store.Op{Kind: store.Delete, Key: at}))
	must(s.Write(t.Context(), putAt(store.Absent), other))
	want := map[string]string{
		"GetItem": "1.5/0 ", "BatchGetItem": "2.5/0 ", "Query": "1.5/0 ", "PutItem": "0/1.5 0/3 0/1 ", "UpdateItem": "0/1.5 ",
		"DeleteItem": "0/1.5 ", "TransactWriteItems": "0/2.5 ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
