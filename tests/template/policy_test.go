package template

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// stars are the only statements whose resources may have one, with the reason.
var stars = map[string]string{
	"policies.yaml Traces":            "X-Ray's actions know no resource",
	"policies.yaml NetworkInterfaces": "EC2 knows most of these actions without a resource only, and Lambda checks that the role has them",
	"policies.yaml Objects":           "objects of the stack's own bucket have no names before they are made",
	"policies.yaml Expired":           "an object's name is made of its tenant, day and content: nobody knows it before",
	"api.yaml Call":                   "every path and verb of the stack's own API is a resource of its own",
}

// statement is one of a policy.
type statement struct {
	file   string
	reason string
	fields map[string]any
}

func (s statement) text(field string) string {
	text, _ := s.fields[field].(string)
	return text
}

// statements are all of a template. The reason of one that stands under a condition is above the condition.
func statements(p part) (all []statement) {
	var find func(node *yaml.Node, line int)
	find = func(node *yaml.Node, line int) {
		if node.Kind == yaml.MappingNode && child(node, "Effect") != nil {
			fields, _ := plain(node).(map[string]any)
			all = append(all, statement{filepath.Base(p.file), p.above(line), fields})
			return
		}
		for _, inner := range node.Content {
			if node.Tag == "!If" {
				find(inner, node.Line)
			} else {
				find(inner, inner.Line)
			}
		}
	}
	find(p.node, p.node.Line)
	return all
}

func listOf(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}

// A function has only the rights that stand beside a reason, on what is the stack's own.
func TestRightsAreTheLeast(t *testing.T) {
	used := map[string]bool{}
	count := 0
	for _, p := range parts(t) {
		for _, s := range statements(p) {
			where := s.file + " " + s.text("Sid")
			if s.text("Effect") == "Deny" {
				continue
			}
			count++
			if slices.Contains(texts(s.fields["Principal"]), "*") {
				t.Errorf("%s: is for everybody", where)
			}
			if _, ok := s.fields["NotAction"]; ok {
				t.Errorf("%s: NotAction allows what nobody has thought of", where)
			}
			if _, ok := s.fields["NotResource"]; ok {
				t.Errorf("%s: NotResource allows what nobody has thought of", where)
			}
			for _, action := range texts(s.fields["Action"]) {
				if strings.Contains(action, "*") {
					t.Errorf("%s: allows %s; name each action", where, action)
				}
			}
			if s.fields["Principal"] != nil {
				continue // who may take a role; its resource is the role
			}
			if s.text("Sid") == "" || s.reason == "" {
				t.Errorf("%s: %v has no Sid, or no comment above it that says what it is for", where, s.fields["Action"])
			}
			for _, resource := range texts(s.fields["Resource"]) {
				if !strings.Contains(resource, "*") {
					continue
				}
				if stars[where] == "" {
					t.Errorf("%s: the resource %s has a star; name what is meant, or add it to the list with its reason", where, resource)
				}
				used[where] = true
			}
		}
	}
	if count < 20 {
		t.Errorf("%d statements were found; some are gone, or were overlooked", count)
	}
	for where := range stars {
		if !used[where] {
			t.Errorf("%s has no star any more; take it off the list", where)
		}
	}
}

// A policy that SAM adds by itself would be one that nobody has read. SAM adds some to each function without a role.
func TestEveryFunctionHasARoleOfItsOwn(t *testing.T) {
	roles := map[string]string{}
	each(t, "AWS::Serverless::Function", func(where string, _ part, _ string, r *resource) {
		role := strings.Join(texts(r.property("Role")), "")
		if role == "" || r.property("Policies") != nil {
			t.Errorf("%s: wants a Role, and no Policies", where)
		}
		if other := roles[role]; other != "" {
			t.Errorf("%s: shares its role with %s", where, other)
		}
		roles[role] = where
	})
	each(t, "AWS::IAM::Role", func(where string, _ part, _ string, r *resource) {
		if r.property("PermissionsBoundary") == nil {
			t.Errorf("%s: is not bounded by the parameter PermissionsBoundary", where)
		}
	})
}
