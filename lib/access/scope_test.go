package access_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
)

func TestScopesGrantWhatTheySayAndNoMore(t *testing.T) {
	want := map[access.Scope]string{ // held: granted of read, run, write, work, admin
		access.Read:  "y----",
		access.Run:   "-y---",
		access.Write: "yyy--",
		access.Work:  "---y-",
		access.Admin: "yyyyy",
	}
	for held, row := range want {
		for i, asked := range access.Scopes {
			if got := access.Grants([]access.Scope{held}, asked); got != (row[i] == 'y') {
				t.Errorf("%s grants %s: %t", held, asked, got)
			}
		}
	}
	all := access.Scopes
	if access.Grants(all, "") || access.Grants(all, "everything") {
		t.Error("an operation that names no scope is granted to somebody")
	}
	if access.Grants(nil, access.Read) || !access.Grants(nil, access.Open) {
		t.Error("without scopes: want what is open, and nothing else")
	}
	if !access.Grants([]access.Scope{access.Work, access.Run}, access.Run) {
		t.Error("the second of two scopes does not count")
	}
}
