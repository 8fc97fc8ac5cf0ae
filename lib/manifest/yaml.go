package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// versions are lines of which the library refuses those that name the version that Belfry reads.
var versions = regexp.MustCompile(`(?m)^%(YAML 1\.[0-9]+[ \t]*\r?)$`)

// readYAML gives the documents of a YAML stream.
func readYAML(text []byte) ([]*Value, error) {
	in := yaml.NewDecoder(bytes.NewReader(versions.ReplaceAll(text, []byte("#$1"))))
	var all []*Value
	for {
		var document yaml.Node
		err := in.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, yamlError(err, text)
		}
		for _, root := range document.Content {
			if root.Kind == yaml.ScalarNode && root.Style == 0 && root.Value == "" {
				continue // an empty document, or one of comments alone
			}
			reader := yamlReader{}
			value, err := reader.value(root, 0)
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
	}
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?(?s:(.*))$`)

// signs finds a value whose first character means something else in YAML, as that of most cron expressions does.
var signs = regexp.MustCompile("(?:^|[:,{\\[-][ \\t]+|^[ \\t]*)((?:[*][/, \\t]|[@%`])[^\\r\\n}\\]#]*)")

// yamlError takes the line out of an error's text, which is the only place where the library has it.
func yamlError(err error, text []byte) error {
	parts := yamlLine.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(parts[1])
	line = max(line, 1)
	if lines := bytes.Split(text, []byte("\n")); line <= len(lines) {
		if at := signs.FindSubmatchIndex(lines[line-1]); at != nil {
			value := lines[line-1][at[2]:at[3]]
			return wrongAt(line, column(lines[line-1], at[2]), "want YAML: what begins with %c stands in quotes: %q", value[0], bytes.TrimSpace(value))
		}
	}
	return wrong(line, "want YAML: %s", parts[2])
}

// column counts the characters of a line up to a byte, from 1.
func column(line []byte, at int) int { return 1 + utf8.RuneCount(line[:min(at, len(line))]) }

// maxAliased bounds the values that aliases repeat: a few lines can ask for billions.
const maxAliased = 100_000

type yamlReader struct {
	open    []*yaml.Node // the anchors that are being resolved
	aliased int          // values made under an alias
}

func (r *yamlReader) value(node *yaml.Node, depth int) (*Value, error) {
	v := &Value{Line: node.Line}
	if depth > maxDepth {
		return nil, wrongAt(node.Line, node.Column, "more than %d values inside one another", maxDepth)
	}
	if len(r.open) > 0 {
		if r.aliased++; r.aliased > maxAliased {
			return nil, wrong(r.open[0].Line, "its aliases stand for more than %d values", maxAliased)
		}
	}
	switch node.Kind {
	case yaml.AliasNode:
		for _, open := range r.open {
			if open.Alias == node.Alias {
				return nil, wrongAt(node.Line, node.Column, "*%s is an alias of what it stands in", node.Value)
			}
		}
		r.open = append(r.open, node)
		defer func() { r.open = r.open[:len(r.open)-1] }()
		return r.value(node.Alias, depth+1)
	case yaml.ScalarNode:
		return v, r.scalar(v, node)
	case yaml.SequenceNode:
		if err := plainTag(node, "!!seq"); err != nil {
			return nil, err
		}
		v.Kind = Array
		for _, item := range node.Content {
			value, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, value)
		}
		return v, nil
	case yaml.MappingNode:
		if err := plainTag(node, "!!map"); err != nil {
			return nil, err
		}
		v.Kind = Object
		return v, r.mapping(v, node, depth)
	}
	return nil, wrongAt(node.Line, node.Column, "want YAML that JSON can say")
}

func plainTag(node *yaml.Node, tag string) error {
	if got := node.ShortTag(); got != tag && got != "!" {
		return wrongAt(node.Line, node.Column, "tag %s: want none", got)
	}
	return nil
}

func (r *yamlReader) mapping(v *Value, node *yaml.Node, depth int) error {
	var merged []*Value
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, under := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.Value == "" && key.Style == 0 {
			return wrongAt(node.Content[i].Line, node.Content[i].Column, "want a name before the colon")
		}
		value, err := r.value(under, depth+1)
		if err != nil {
			return err
		}
		if key.ShortTag() != "!!merge" {
			v.Members = append(v.Members, Member{Name: key.Value, Line: node.Content[i].Line, Value: value})
			continue
		}
		switch value.Kind {
		case Object:
			merged = append(merged, value)
		case Array:
			merged = append(merged, value.Items...)
		default:
			merged = append(merged, value)
		}
	}
	if err := v.object(); err != nil {
		return err
	}
	// What stands in the mapping itself counts, and of merged ones the earlier.
	has := map[string]bool{}
	for _, m := range v.Members {
		has[m.Name] = true
	}
	for _, from := range merged {
		if from.Kind != Object {
			return wrongAt(node.Line, node.Column, "<<: got %s, want an alias of a mapping, or a list of them", from.Kind)
		}
		for _, m := range from.Members {
			if !has[m.Name] {
				has[m.Name] = true
				v.Members = append(v.Members, m)
			}
		}
	}
	return nil
}

// scalar reads a scalar by its style and tag.
func (r *yamlReader) scalar(v *Value, node *yaml.Node) error {
	const quotedStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tag := ""
	if node.Style&yaml.TaggedStyle != 0 {
		tag = node.ShortTag()
	}
	if tag == "" && node.Style&quotedStyles != 0 || tag == "!!str" || tag == "!" {
		v.Kind, v.Scalar = Text, node.Value
		return nil
	}
	kind, text, refused := plain(node.Value)
	if refused != "" {
		return wrongAt(node.Line, node.Column, "%s: %s", node.Value, refused)
	}
	v.Kind, v.Scalar = kind, text
	want := map[string]Kind{"": kind, "!!null": Null, "!!bool": Bool, "!!int": Number, "!!float": Number, "!!timestamp": Text}
	if asked, known := want[tag]; !known || asked != kind {
		return wrongAt(node.Line, node.Column, "%s %s: want the value without a tag", tag, node.Value)
	}
	return nil
}

var (
	decimal = regexp.MustCompile(`^[-+]?[0-9]+$`)
	float   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based   = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	endless = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	zeros   = regexp.MustCompile(`^-?0[0-9]`)
)

// plain reads a scalar that stands without quotes, after the core schema of YAML 1.2.
func plain(text string) (kind Kind, scalar, refused string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, "", ""
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool, strings.ToLower(text), ""
	}
	switch {
	case based.MatchString(text):
		value, _ := new(big.Int).SetString(text, 0) // of the form that it reads
		return Number, value.String(), ""
	case endless.MatchString(text):
		return Null, "", "JSON has no such number; want quotes where it is text"
	case !decimal.MatchString(text) && !float.MatchString(text):
		return Text, text, ""
	}
	number := strings.TrimPrefix(text, "+")
	if zeros.MatchString(number) {
		return Null, "", fmt.Sprintf("a number to some and text to others; want %q in quotes, or the number without leading zeros", text)
	}
	// .5 and 5. and 5.e3 are not JSON's; nothing but the missing zero is added.
	whole, rest, dotted := strings.Cut(number, ".")
	if !dotted {
		return Number, number, ""
	}
	if whole == "" || whole == "-" {
		whole += "0"
	}
	if rest == "" || rest[0] == 'e' || rest[0] == 'E' {
		rest = "0" + rest
	}
	return Number, whole + "." + rest, ""
}

// YAML writes documents as YAML, with lines of --- between them. Read gives the same values back. What would do something to a terminal is
// escaped.
func YAML(documents ...*Value) []byte {
	var to bytes.Buffer
	for i, v := range documents {
		if i > 0 {
			to.WriteString("---\n")
		}
		out := yaml.NewEncoder(&to)
		out.SetIndent(2)
		out.CompactSeqIndent()
		_ = out.Encode(v.node()) // a buffer takes everything, and the node is made of what YAML can say
		_ = out.Close()
	}
	return terminal.Escape(to.Bytes()) // the library writes marks of direction as they are
}

// versed is what readers of other versions of YAML may take for something else than text.
var versed = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|<<|=|[-+.]*[0-9][-+0-9_:,.e]*|0[xob][0-9a-f_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ t].*)?)$`)

// blocky is a text of several lines that can stand as it is, and be read by people.
var blocky = regexp.MustCompile(`^[^\s\x00-\x1f][^\x00-\x09\x0b-\x1f]*\n[^\x00-\x09\x0b-\x1f]*$`)

func (v *Value) node() *yaml.Node {
	switch v.Kind {
	case Array:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v.Items {
			node.Content = append(node.Content, item.node())
		}
		if len(v.Items) == 0 {
			node.Style = yaml.FlowStyle
		}
		return node
	case Object:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v.Members {
			name := textNode(m.Name)
			if name.Style == yaml.LiteralStyle {
				name.Style = yaml.DoubleQuotedStyle
			}
			node.Content = append(node.Content, name, m.Value.node())
		}
		if len(v.Members) == 0 {
			node.Style = yaml.FlowStyle
		}
		return node
	case Text:
		return textNode(v.Scalar)
	case Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Scalar}
	}
}

func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	kind, _, refused := plain(text)
	switch {
	case kind != Text || refused != "" || versed.MatchString(text) || strings.ContainsRune(text, '\ufeff') ||
		strings.ContainsFunc(text, func(r rune) bool { return terminal.Acts(r) && r != '\n' && r != '\t' }):
		node.Style = yaml.DoubleQuotedStyle
	case blocky.MatchString(text):
		node.Style = yaml.LiteralStyle
	case strings.ContainsAny(text, "\n\t"):
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
