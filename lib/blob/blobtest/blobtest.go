// Package blobtest is the conformance suite of blob buckets. Every engine passes it unmodified.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Run runs the suite. Open gives a bucket in which this subtest finds no blobs; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) *blob.Bucket) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, b *blob.Bucket)
	}{
		{"what_is_put_is_got", putGet},
		{"sizes_up_to_the_limit", sizes},
		{"a_part_is_got", parts},
		{"putting_again_gives_the_same_key", again},
		{"another_content_is_refused", refused},
		{"one_of_many_concurrent_puts_wins", race},
		{"P12_a_tenant_sees_only_its_own", apart},
		{"names_that_differ_in_case_are_two", letterCase},
		{"bad_names_are_refused", badRefs},
		{"bad_keys_are_refused", badKeys},
		{"deleting_is_idempotent", deleting},
		{"expired_blobs_go_and_no_others", expiry},
		{"expired_blobs_go_in_portions", portions},
		{"what_each_gives_can_be_restored", moving},
		{"what_is_live_is_written_over", livePut},
		{"an_ended_context_is_obeyed", ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, b)
		})
	}
}

func ref(id string) blob.Ref {
	return blob.Ref{Tenant: "acme", Kind: blob.Payload, ID: id, Expires: today.AddDate(0, 0, 30)}
}

func put(t *testing.T, b *blob.Bucket, r blob.Ref, data string) string {
	t.Helper()
	key, err := b.Put(t.Context(), r, []byte(data))
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return key
}

// holds tells that a key gives a content.
func holds(t *testing.T, b *blob.Bucket, tenant, key, want string) {
	t.Helper()
	got, err := b.Get(t.Context(), tenant, key)
	if err != nil || string(got) != want {
		t.Errorf("get %s gave %.40q, %v, want %.40q", key, got, err, want)
	}
}

func gone(t *testing.T, b *blob.Bucket, tenant, key string) {
	t.Helper()
	if got, err := b.Get(t.Context(), tenant, key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("get %s gave %.40q, %v, want ErrNotFound", key, got, err)
	}
}

func putGet(t *testing.T, b *blob.Bucket) {
	want := map[string]string{}
	for _, kind := range []blob.Kind{blob.Payload, blob.Result, blob.Log} {
		for _, id := range []string{"a", "daily-report~0mi8xk2p0~0123456789abc", "_.~-", "a.attrs", "a..b"} {
			r := ref(id)
			r.Kind = kind
			data := fmt.Sprintf("%s of %s \x00\xff\r\n", kind, id)
			want[put(t, b, r, data)] = data
		}
	}
	if len(want) != 15 {
		t.Errorf("15 blobs have %d keys", len(want))
	}
	for key, data := range want {
		holds(t, b, "acme", key, data)
	}
}

func sizes(t *testing.T, b *blob.Bucket) {
	holds(t, b, "acme", put(t, b, ref("empty"), ""), "")
	large := strings.Repeat("belfry! ", blob.MaxBytes/8)
	key := put(t, b, ref("large"), large)
	holds(t, b, "acme", key, large)
	for most, whole := range map[int]bool{1: false, len(large) - 1: false, len(large): true} {
		if data, size, err := b.GetWithin(t.Context(), "acme", key, most); err != nil || size != int64(len(large)) || whole != (string(data) == large) || !whole && data != nil {
			t.Errorf("of at most %d bytes: %d of %d, %v", most, len(data), size, err)
		}
	}
	if _, err := b.Put(t.Context(), ref("larger"), []byte(large+"!")); len(invalid.All(err)) != 1 {
		t.Errorf("a blob over the limit gave %v, want an invalid field", err)
	}
}

// parts reads some of what was put. What begins behind the end is nothing, and no error: how large the whole is comes with it.
func parts(t *testing.T, b *blob.Bucket) {
	const content = "0123456789"
	key := put(t, b, ref("x"), content)
	for _, c := range []struct {
		from, most int64
		want       string
	}{{0, 1, "0"}, {0, 10, content}, {0, 99, content}, {3, 4, "3456"}, {9, 1, "9"}, {8, 99, "89"}, {10, 1, ""}, {11, 99, ""}, {1 << 40, 5, ""}} {
		if got, size, err := b.GetRange(t.Context(), "acme", key, c.from, c.most); string(got) != c.want || size != int64(len(content)) || err != nil {
			t.Errorf("up to %d bytes from %d on are %q of %d, %v, want %q of %d", c.most, c.from, got, size, err, c.want, len(content))
		}
	}
	large := strings.Repeat("belfry! ", blob.MaxBytes/8)
	if got, size, err := b.GetRange(t.Context(), "acme", put(t, b, ref("large"), large), 5<<20, 5<<20); string(got) != large[5<<20:10<<20] || size != int64(len(large)) || err != nil {
		t.Errorf("5 MiB from 5 MiB on are %d bytes of %d, %v", len(got), size, err)
	}
	if got, size, err := b.GetRange(t.Context(), "acme", put(t, b, ref("empty"), ""), 0, 5); len(got) != 0 || size != 0 || err != nil {
		t.Errorf("of an empty blob there are %q of %d, %v", got, size, err)
	}
	if _, _, err := b.GetRange(t.Context(), "other", key, 0, 5); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("another tenant is told %v", err)
	}
	if err := b.Delete(t.Context(), "acme", key); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 5, 10} {
		if got, _, err := b.GetRange(t.Context(), "acme", key, from, 5); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("from %d on of what is gone there are %q, %v", from, got, err)
		}
	}
	if sum := blob.Sum(key); sum == "" || sum != blob.SumOf([]byte(content)) || sum == blob.SumOf(nil) {
		t.Errorf("the sum of the key is %q, of the content %q", sum, blob.SumOf([]byte(content)))
	}
}

func again(t *testing.T, b *blob.Bucket) {
	key := put(t, b, ref("x"), "content")
	if repeated := put(t, b, ref("x"), "content"); repeated != key {
		t.Errorf("the second put gave key %s, the first %s", repeated, key)
	}
	holds(t, b, "acme", key, "content")
}

func refused(t *testing.T, b *blob.Bucket) {
	key := put(t, b, ref("x"), "content")
	for _, other := range []string{"another", "", "content and more"} {
		if _, err := b.Put(t.Context(), ref("x"), []byte(other)); !errors.Is(err, blob.ErrExists) {
			t.Errorf("putting %q gave %v, want ErrExists", other, err)
		}
	}
	holds(t, b, "acme", key, "content")
}

// livePut writes over what is live. It is apart from the blob and from other tenants', is in no backup, and goes with its day.
func livePut(t *testing.T, b *blob.Bucket) {
	r := ref("x")
	other := r
	other.Tenant = "other"
	reads := func(want string) {
		t.Helper()
		if got, err := b.GetLive(t.Context(), r); err != nil || string(got) != want {
			t.Errorf("it reads %q, %v, want %q", got, err, want)
		}
		if got, err := b.GetLive(t.Context(), other); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("another tenant reads %q, %v", got, err)
		}
	}
	if got, err := b.GetLive(t.Context(), r); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("nothing was put, and it reads %q, %v", got, err)
	}
	write := func(text string) {
		t.Helper()
		if err := b.PutLive(t.Context(), r, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("some")
	reads("some")
	key := put(t, b, r, "all of it")
	for _, text := range []string{"some more", "less", ""} {
		write(text)
		reads(text)
	}
	holds(t, b, "acme", key, "all of it")
	each := 0
	if err := b.Each(t.Context(), today, func(string, []byte) error { each++; return nil }); err != nil || each != 1 {
		t.Errorf("a backup has %d blobs, %v, want the one that was put", each, err)
	}
	if err := b.PutLive(t.Context(), r, make([]byte, blob.MaxBytes+1)); len(invalid.All(err)) != 1 {
		t.Errorf("one over the limit gave %v, want an invalid field", err)
	}
	if _, err := b.GetLive(t.Context(), blob.Ref{Tenant: "acme", Kind: blob.Log, ID: "a/b"}); len(invalid.All(err)) != 1 {
		t.Errorf("a bad name gave %v", err)
	}
	if n, err := b.DeleteExpired(t.Context(), today.AddDate(0, 0, 31), 10); n != 2 || err != nil {
		t.Errorf("%d went with their day, %v, want both", n, err)
	}
	if _, err := b.GetLive(t.Context(), r); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what has expired is read: %v", err)
	}
}

func race(t *testing.T, b *blob.Bucket) {
	for round := range 10 {
		r := ref(fmt.Sprint("x", round))
		var mu sync.Mutex
		won := map[string]string{}
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range 8 {
			all.Go(func() {
				data := strings.Repeat(fmt.Sprint(i), 1000)
				<-start
				key, err := b.Put(context.WithoutCancel(t.Context()), r, []byte(data))
				if errors.Is(err, blob.ErrExists) {
					return
				}
				if err != nil {
					t.Errorf("put: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				won[key] = data
			})
		}
		close(start)
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("%d of 8 concurrent puts won, want 1", len(won))
		}
		for key, data := range won {
			holds(t, b, "acme", key, data)
		}
	}
}

func apart(t *testing.T, b *blob.Bucket) {
	mine, theirs := ref("x"), ref("x")
	theirs.Tenant = "acme2"
	myKey, theirKey := put(t, b, mine, "mine"), put(t, b, theirs, "theirs")
	holds(t, b, "acme", myKey, "mine")
	holds(t, b, "acme2", theirKey, "theirs")
	gone(t, b, "acme2", myKey)
	gone(t, b, "", myKey)
	if err := b.Delete(t.Context(), "acme2", myKey); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("deleting the blob of another gave %v, want ErrNotFound", err)
	}
	holds(t, b, "acme", myKey, "mine")
}

func letterCase(t *testing.T, b *blob.Bucket) {
	keys := map[string]string{}
	for _, tenant := range []string{"acme", "Acme", "ACME"} {
		for _, id := range []string{"run", "Run", strings.Repeat("R", 192)} {
			r := ref(id)
			r.Tenant = tenant
			keys[put(t, b, r, tenant+id)] = tenant
		}
	}
	for key, tenant := range keys {
		if _, err := b.Get(t.Context(), tenant, key); err != nil {
			t.Errorf("get: %v", err)
		}
	}
	if len(keys) != 9 {
		t.Errorf("9 blobs have %d keys", len(keys))
	}
}

func badRefs(t *testing.T, b *blob.Bucket) {
	for field, change := range map[string][]func(*blob.Ref){
		"tenant": {
			func(r *blob.Ref) { r.Tenant = "" },
			func(r *blob.Ref) { r.Tenant = ".." },
			func(r *blob.Ref) { r.Tenant = "a/b" },
			func(r *blob.Ref) { r.Tenant = "a\n" },
			func(r *blob.Ref) { r.Tenant = strings.Repeat("a", 129) },
		},
		"kind": {
			func(r *blob.Ref) { r.Kind = "" },
			func(r *blob.Ref) { r.Kind = "other" },
		},
		"id": {
			func(r *blob.Ref) { r.ID = "" },
			func(r *blob.Ref) { r.ID = "." },
			func(r *blob.Ref) { r.ID = "../acme2" },
			func(r *blob.Ref) { r.ID = "a#b" },
			func(r *blob.Ref) { r.ID = "a\x00" },
			func(r *blob.Ref) { r.ID = strings.Repeat("a", 193) },
			func(r *blob.Ref) { r.ID = "x~live" },
		},
		"expires": {
			func(r *blob.Ref) { r.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		},
	} {
		for i, c := range change {
			r := ref("x")
			c(&r)
			_, err := b.Put(t.Context(), r, []byte("x"))
			if fields := invalid.All(err); len(fields) != 1 || fields[0].Field != field {
				t.Errorf("%s %d: put gave %v, want that field named", field, i, err)
			}
		}
	}
}

func badKeys(t *testing.T, b *blob.Bucket) {
	key := put(t, b, ref("x"), "content")
	name, sum, _ := strings.Cut(key, "#")
	for _, bad := range []string{
		"", name, name + "#", name + "#" + sum[1:], "c" + key, "/" + key, "b/../" + key[2:],
		strings.Replace(key, "acme", "acme/../acme", 1), strings.Replace(key, "payload", "other", 1), key + "#" + sum,
	} {
		if _, err := b.Get(t.Context(), "acme", bad); len(invalid.All(err)) != 1 {
			t.Errorf("get %q gave %v, want an invalid field", bad, err)
		}
		if err := b.Delete(t.Context(), "acme", bad); len(invalid.All(err)) != 1 {
			t.Errorf("delete %q gave %v, want an invalid field", bad, err)
		}
	}
	flipped := []byte(sum)
	flipped[0] ^= 1
	if got, err := b.Get(t.Context(), "acme", name+"#"+string(flipped)); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("get with another hash gave %q, %v, want ErrCorrupt", got, err)
	}
}

func deleting(t *testing.T, b *blob.Bucket) {
	key, other := put(t, b, ref("x"), "content"), put(t, b, ref("y"), "other")
	for range 2 {
		if err := b.Delete(t.Context(), "acme", key); err != nil {
			t.Fatalf("delete: %v", err)
		}
		gone(t, b, "acme", key)
	}
	holds(t, b, "acme", other, "other")
	holds(t, b, "acme", put(t, b, ref("x"), "new content"), "new content")
}

func expiry(t *testing.T, b *blob.Bucket) {
	keys := map[string]string{}
	for name, expires := range map[string]time.Time{
		"never":           {},
		"last year":       today.AddDate(-1, 0, 0),
		"yesterday":       today.AddDate(0, 0, -1),
		"earlier today":   today.Add(-time.Hour),
		"tomorrow":        today.AddDate(0, 0, 1),
		"in ten years":    today.AddDate(10, 0, 0),
		"yesterday there": time.Date(2026, 11, 21, 1, 0, 0, 0, time.FixedZone("", 2*3600)), // the 20th in UTC
	} {
		for _, tenant := range []string{"acme", "zebra"} {
			r := blob.Ref{Tenant: tenant, Kind: blob.Log, ID: strings.ReplaceAll(name, " ", "_"), Expires: expires}
			keys[tenant+" "+name] = put(t, b, r, name)
		}
	}
	n, err := b.DeleteExpired(t.Context(), today, 100)
	if err != nil || n != 6 {
		t.Errorf("deleted %d, %v, want 6", n, err)
	}
	for name, key := range keys {
		tenant, when, _ := strings.Cut(name, " ")
		switch when {
		case "last year", "yesterday", "yesterday there":
			gone(t, b, tenant, key)
		default:
			holds(t, b, tenant, key, when)
		}
	}
}

func portions(t *testing.T, b *blob.Bucket) {
	for i := range 25 {
		r := ref(fmt.Sprint(i))
		r.Expires = today.AddDate(0, 0, -1-i%3)
		put(t, b, r, "old")
	}
	for _, want := range []int{10, 10, 5, 0} {
		if n, err := b.DeleteExpired(t.Context(), today, 10); err != nil || n != want {
			t.Fatalf("deleted %d, %v, want %d", n, err, want)
		}
	}
}

func ended(t *testing.T, b *blob.Bucket) {
	key := put(t, b, ref("x"), "content")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Put(ctx, ref("y"), bytes.Repeat([]byte("y"), 100)); err == nil {
		t.Error("put under an ended context succeeded")
	}
	if n, err := b.DeleteExpired(ctx, today.AddDate(1, 0, 0), 10); err == nil {
		t.Errorf("deleting %d expired under an ended context succeeded", n)
	}
	if _, err := b.Get(ctx, "acme", key); err == nil {
		t.Error("get under an ended context succeeded")
	}
	if err := b.Delete(ctx, "acme", key); err == nil {
		t.Error("delete under an ended context succeeded")
	}
	holds(t, b, "acme", key, "content")
}

func moving(t *testing.T, b *blob.Bucket) {
	kept, old := ref("kept"), ref("old")
	old.Expires = today.AddDate(0, 0, -2)
	key := put(t, b, kept, "content")
	put(t, b, old, "expired")
	found := map[string]string{}
	if err := b.Each(t.Context(), today, func(name string, data []byte) error { found[name] = string(data); return nil }); err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(key, "#")
	if len(found) != 1 || found[name] != "content" {
		t.Fatalf("each gave %q, want the one that has not expired", found)
	}
	if err := b.Delete(t.Context(), "acme", key); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is as good as once
		if err := b.Restore(t.Context(), name, []byte("content")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Get(t.Context(), "acme", key); err != nil || string(got) != "content" {
		t.Errorf("what was restored reads %q, %v", got, err)
	}
	if err := b.Restore(t.Context(), name, []byte("another")); !errors.Is(err, blob.ErrExists) {
		t.Errorf("another content under the name gave %v", err)
	}
	for _, bad := range []string{"", "x", "b/never/../payload/3f/x", "../" + name} {
		var refused *invalid.Error
		if err := b.Restore(t.Context(), bad, nil); !errors.As(err, &refused) {
			t.Errorf("the name %q gave %v", bad, err)
		}
	}
	cause := errors.New("no more")
	if err := b.Each(t.Context(), today, func(string, []byte) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("a failing callee gave %v", err)
	}
}
