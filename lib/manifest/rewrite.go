package manifest

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Rewrite writes a value over the one document of a YAML text that somebody has written: what stays the same keeps its comments, its order and
// how it is written. A text that is no YAML, or in which that cannot be, such as one with an alias of what goes, is written anew.
func Rewrite(text []byte, v *Value) []byte {
	anew := YAML(v)
	var document yaml.Node
	if json.Valid(text) || yaml.Unmarshal(text, &document) != nil || len(document.Content) != 1 {
		return anew
	}
	document.Content[0] = over(document.Content[0], v)
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

// over gives the node of a value, with what can stay of the node that stood there.
func over(node *yaml.Node, v *Value) *yaml.Node {
	reader := yamlReader{}
	if stands, err := reader.value(node, 0); err == nil && bytes.Equal(stands.JSON(), v.JSON()) {
		return node
	}
	next := *node
	switch {
	case node.Kind == yaml.MappingNode && v.Kind == Object && len(v.Members) > 0:
		next.Content = nil
		for _, m := range v.Members {
			if at := keyAt(node, m.Name); at >= 0 {
				next.Content = append(next.Content, node.Content[at], over(node.Content[at+1], m.Value))
				continue
			}
			next.Content = append(next.Content, (&Value{Kind: Object, Members: []Member{m}}).node().Content...)
		}
	case node.Kind == yaml.SequenceNode && v.Kind == Array && len(v.Items) > 0:
		next.Content = nil
		for i, item := range v.Items {
			if i < len(node.Content) {
				next.Content = append(next.Content, over(node.Content[i], item))
			} else {
				next.Content = append(next.Content, item.node())
			}
		}
	default:
		next = *v.node()
		next.HeadComment, next.LineComment, next.FootComment = node.HeadComment, node.LineComment, node.FootComment
	}
	return &next
}

// keyAt is where a mapping has a name, -1 where it has not.
func keyAt(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if key := mapping.Content[i]; key.Kind == yaml.ScalarNode && key.Value == name {
			return i
		}
	}
	return -1
}
