package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// configFile is config.toml as it stands: what it sets, and where. The zero value is a file that is not there.
type configFile struct {
	path    string // "": no file, since neither BELFRY_CONFIG nor the home folder says where
	text    []byte
	mode    fs.FileMode
	tables  map[string]int // line of each [table], by its dotted name
	entries []entry
}

// entry is a line of the file that sets something.
type entry struct {
	table, key string // the table's dotted name, "" for the top
	values     []string
	list       bool
	line       int
}

func (e entry) name() string {
	if e.table == "" {
		return e.key
	}
	return e.table + "." + e.key
}

// Parts of the file beside the tables of commands.
const (
	profileKey   = "profile" // at the top: the profile in force
	profilesPart = "profiles."
)

// profileName is what a profile may be called: what TOML needs no quotes for.
var profileName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// configPath is where config.toml is, "" where nothing says it.
func configPath() string {
	if path := os.Getenv("BELFRY_CONFIG"); path != "" {
		return path
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "" // a service without a home
	}
	return filepath.Join(folder, "belfry", "config.toml")
}

// readConfig reads config.toml. A file that is not there sets nothing.
func readConfig(path string) (configFile, error) {
	f := configFile{path: path}
	if path == "" {
		return f, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, exiting(exitUsage, fmt.Errorf("configuration: %w", err))
	}
	if info, err := os.Stat(path); err == nil {
		f.mode = info.Mode()
	}
	if err := f.parse(text); err != nil {
		return f, exiting(exitUsage, err)
	}
	return f, nil
}

// parse takes the text apart, with the line of everything that it sets.
func (f *configFile) parse(text []byte) error {
	f.text, f.tables, f.entries = text, map[string]int{}, nil
	var all map[string]any
	var wrong *toml.DecodeError
	whole := toml.Unmarshal(text, &all)
	if errors.As(whole, &wrong) {
		line, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %s", f.path, line, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	var p unstable.Parser
	p.Reset(text)
	table := ""
	for p.NextExpression() {
		node := p.Expression()
		switch node.Kind {
		case unstable.Table:
			name, line := dotted(&p, node)
			if _, twice := f.tables[name]; twice {
				return fmt.Errorf("%s:%d: [%s]: given twice", f.path, line, name)
			}
			table = name
			f.tables[table] = line
		case unstable.KeyValue:
			if err := f.walk(&p, table, node); err != nil {
				return err
			}
		default:
			name, line := dotted(&p, node)
			return fmt.Errorf("%s:%d: [[%s]]: want a table in single brackets", f.path, line, name)
		}
	}
	if whole != nil {
		return fmt.Errorf("%s: %w", f.path, whole)
	}
	return p.Error()
}

func (f *configFile) walk(p *unstable.Parser, table string, node *unstable.Node) error {
	name, line := dotted(p, node)
	full := strings.Trim(table+"."+name, ".")
	value := node.Value()
	if value.Kind == unstable.InlineTable {
		f.tables[full] = line
		for it := value.Children(); it.Next(); {
			if err := f.walk(p, full, it.Node()); err != nil {
				return err
			}
		}
		return nil
	}
	cut := strings.LastIndex(full, ".")
	e := entry{table: full[:max(cut, 0)], key: full[cut+1:], line: line, list: value.Kind == unstable.Array}
	if !e.list {
		e.values = []string{string(value.Data)}
	} else {
		for it := value.Children(); it.Next(); {
			if it.Node().Kind != unstable.String {
				return fmt.Errorf("%s:%d: %s: want texts in the list", f.path, line, full)
			}
			e.values = append(e.values, string(it.Node().Data))
		}
	}
	if f.find(e.table, e.key) != nil {
		return fmt.Errorf("%s:%d: %s: given twice", f.path, line, full)
	}
	f.entries = append(f.entries, e)
	return nil
}

func dotted(p *unstable.Parser, node *unstable.Node) (name string, line int) {
	var parts []string
	for it := node.Key(); it.Next(); {
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}

// find gives the entry that sets something, nil where none does.
func (f *configFile) find(table, key string) *entry {
	for i, e := range f.entries {
		if e.table == table && e.key == key {
			return &f.entries[i]
		}
	}
	return nil
}

// profiles are the names of those there are, in order.
func (f *configFile) profiles() []string {
	names := map[string]bool{}
	for table := range f.tables {
		if name, ok := strings.CutPrefix(table, profilesPart); ok {
			names[name] = true
		}
	}
	for _, e := range f.entries {
		if name, ok := strings.CutPrefix(e.table, profilesPart); ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// tableNames are those of tables, in order.
func (f *configFile) tableNames() []string { return slices.Sorted(maps.Keys(f.tables)) }

// with gives the file with one line changed, added, or, where values is nil, taken out. All else stays as it was written.
func (f *configFile) with(table, key string, values []string, as form) (configFile, error) {
	before, written := f.find(table, key), fmt.Sprintf("%s = %s\n", key, literal(values, as))
	if values == nil {
		written = ""
	}
	if before == nil && values == nil {
		return *f, nil
	}
	// The line below the table's last one is not where it seems to be when that one goes on over many lines; the one below its
	// heading always is.
	for _, at := range f.places(table, before) {
		lines := strings.SplitAfter(strings.TrimSuffix(string(f.text), "\n")+"\n", "\n")
		switch _, there := f.tables[table]; {
		case before != nil:
			lines[at] = written
		case table != "" && !there:
			lines = append(lines, "\n["+table+"]\n", written)
		default:
			lines = slices.Insert(lines, at, written)
		}
		after := configFile{path: f.path, mode: f.mode}
		text := strings.TrimLeft(strings.Join(lines, ""), "\n")
		if err := after.parse([]byte(text)); err == nil && f.differsIn(after, table, key, values) {
			return after, nil
		}
	}
	return *f, fmt.Errorf("%s is written in a way that %s cannot be changed in by a command; edit the file", f.path, entry{table: table, key: key}.name())
}

// places are the lines, counted from 0, that an entry may be written at.
func (f *configFile) places(table string, before *entry) []int {
	if before != nil {
		return []int{before.line - 1}
	}
	heading := f.tables[table] // counted from 1: the line below it
	last := heading
	for _, e := range f.entries {
		if e.table == table {
			last = max(last, e.line)
		}
	}
	return []int{last, heading}
}

// differsIn tells whether after sets what f sets, apart from the one thing that was to change.
func (f *configFile) differsIn(after configFile, table, key string, values []string) bool {
	flat := func(f *configFile) map[string][]string {
		all := map[string][]string{}
		for _, e := range f.entries {
			all[e.name()] = e.values
		}
		return all
	}
	want := flat(f)
	name := entry{table: table, key: key}.name()
	if delete(want, name); values != nil {
		want[name] = values
	}
	return reflect.DeepEqual(want, flat(&after))
}

// form is how a value is written in TOML.
type form int

const (
	asText form = iota
	asBare      // a number, true or false
	asList      // of texts
)

func literal(values []string, as form) string {
	if as == asBare {
		return strings.Join(values, "")
	}
	quoted := make([]string, len(values))
	for i, value := range values {
		text, _ := encodeJSON(value, "", "") // a text; TOML's basic strings have the escapes of JSON's
		quoted[i] = strings.ReplaceAll(string(bytes.TrimSpace(text)), "\x7f", `\u007f`)
	}
	if as == asList {
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return strings.Join(quoted, "")
}

// write puts the file in place of the one that stands: all of it, or nothing. It is for its owner alone when it holds a secret.
func (f *configFile) write() error {
	if f.path == "" {
		return errors.New("there is no place for config.toml: set BELFRY_CONFIG to its path, or HOME")
	}
	path := f.path
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a link to where the file really is stays one
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	mode := f.mode.Perm()
	if mode == 0 || f.holdsSecret() {
		mode = 0o600
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".config-*.toml") // 0600
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(f.text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// holdsSecret tells whether a token or an API key stands in the file; what else is in it is nobody's secret.
func (f *configFile) holdsSecret() bool {
	return slices.ContainsFunc(f.entries, func(e entry) bool {
		return strings.HasPrefix(e.table, profilesPart) && isSecret(e.key)
	})
}

func isSecret(name string) bool {
	return slices.ContainsFunc(profileSettings, func(s setting) bool { return s.secret && s.name == name })
}
