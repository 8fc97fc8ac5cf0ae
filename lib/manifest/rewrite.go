package manifest

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Rewrite writes a value over the one document of a YAML text that somebody has written: what stays the same keeps its comments, its order and
// how it is written. A text that is no YAML, or in which that cannot be, such as one with an alias of what changes, is written anew.
func Rewrite(text []byte, v *Value) []byte {
	anew := YAML(v)
	if json.Valid(text) {
		return anew
	}
	// Aliases may repeat much. What Read takes is bounded, and so is what each of them stands for.
	if stands, err := Read("x.yaml", text); err != nil || len(stands) != 1 {
		return anew
	}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) != 1 {
		return anew
	}
	document.Content[0], _ = over(document.Content[0], v)
	var to bytes.Buffer
	out := yaml.NewEncoder(&to)
	out.SetIndent(2)
	out.CompactSeqIndent()
	if out.Encode(&document) != nil || out.Close() != nil {
		return anew
	}
	written := terminal.Escape(to.Bytes())
	if values, err := Read("x.yaml", written); err != nil || len(values) != 1 || !bytes.Equal(values[0].JSON(), v.JSON()) {
		return anew
	}
	return written
}

// over gives the node of a value, with what can stay of the node that stood there, and whether all of it does.
func over(node *yaml.Node, v *Value) (next *yaml.Node, same bool) {
	switch {
	case node.Kind == yaml.MappingNode && v.Kind == Object && len(v.Members) > 0 && plainKeys(node):
		return overMapping(node, v)
	case node.Kind == yaml.SequenceNode && v.Kind == Array && len(v.Items) > 0:
		changed := *node
		changed.Content = nil
		same = len(v.Items) == len(node.Content)
		for i, item := range v.Items {
			if i >= len(node.Content) {
				changed.Content = append(changed.Content, item.node())
				continue
			}
			child, stays := over(node.Content[i], item)
			changed.Content, same = append(changed.Content, child), same && stays
		}
		next = &changed
	default:
		reader := yamlReader{}
		stands, err := reader.value(node, 0)
		same = err == nil && bytes.Equal(stands.JSON(), v.JSON())
		next = v.node()
		next.HeadComment, next.LineComment, next.FootComment = node.HeadComment, node.LineComment, node.FootComment
	}
	if same {
		return node, true
	}
	return next, false
}

func overMapping(node *yaml.Node, v *Value) (next *yaml.Node, same bool) {
	stands := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		stands[node.Content[i].Value] = i
	}
	changed := *node
	changed.Content = nil
	same = 2*len(v.Members) == len(node.Content)
	for i, m := range v.Members {
		at, is := stands[m.Name]
		if !is {
			same = false
			changed.Content = append(changed.Content, (&Value{Kind: Object, Members: []Member{m}}).node().Content...)
			continue
		}
		child, stays := over(node.Content[at+1], m.Value)
		changed.Content, same = append(changed.Content, node.Content[at], child), same && stays && at == 2*i
	}
	if same {
		return node, true
	}
	return &changed, false
}

// plainKeys tells whether a mapping has names alone, and takes in no other one.
func plainKeys(mapping *yaml.Node) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if key := mapping.Content[i]; key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return false
		}
	}
	return true
}
