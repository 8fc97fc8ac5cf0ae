package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// document is a job of a file: its name, and what stands there of it, so that the server sees and names every field.
type document struct {
	name  string // "" where none is given
	file  string
	count int             // which document of the file it is, from 1; 0 where the file has one
	job   *manifest.Value // without its name
}

// place says where it stands.
func (d document) place() string { return place(d.file, d.count, d.job.Line) }

func place(file string, count, line int) string {
	if file == "-" {
		file = "standard input"
	}
	if count > 0 {
		file += fmt.Sprintf(", document %d", count)
	}
	return fmt.Sprintf("%s, line %d", file, line)
}

// text is the job as the batch takes it.
func (d document) text() json.RawMessage {
	return d.job.With("name", &manifest.Value{Kind: manifest.Text, Scalar: d.name}).JSON()
}

// explain says of a refusal in which line of the file each field stands.
func (d document) explain(p wire.Problem) string {
	text := fmt.Sprintf("%s (%s): %s", d.name, d.place(), p.Summary())
	for _, e := range p.Errors {
		text += fmt.Sprintf("\n  line %d: %s", d.job.LineOf(e.Field), e.Message)
		if e.Field != "" {
			text = strings.TrimSuffix(text, e.Message) + e.Field + ": " + e.Message
		}
	}
	if p.MoreErrors > 0 {
		text += fmt.Sprintf("\n  and %d more", p.MoreErrors)
	}
	return text
}

// maxFile bounds what is read of a file of jobs.
const maxFile = 64 << 20

func (c *cli) readFile(name string) ([]byte, error) {
	in := c.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MB", name, maxFile>>20)
	}
	return text, nil
}

// readDocuments reads the jobs of files and folders, in order. Nothing of them is applied before all could be read.
func (c *cli) readDocuments(names []string, recursive bool) ([]document, error) {
	var all []document
	held := 0
	for _, name := range names {
		files, err := filesOf(name, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := c.readFile(file)
			if err != nil {
				return nil, err
			}
			found, count, err := documents(file, text)
			if err != nil {
				return nil, err
			}
			all, held = append(all, found...), held+count
		}
	}
	if held == 0 { // as where the command in front of a pipe failed
		named := slices.Clone(names)
		if at := slices.Index(named, "-"); at >= 0 {
			named[at] = "standard input"
		}
		return nil, fmt.Errorf("there is no job in %s", strings.Join(named, ", "))
	}
	return all, nil
}

// filesOf is the file itself, or those of a folder in the order of their names. What begins with a dot is an editor's or a
// version control's, and left out.
func filesOf(name string, recursive bool) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != name && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && (hidden || !recursive):
			return fs.SkipDir
		case !entry.IsDir() && !hidden && manifest.Is(path):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there is no file that ends with %s in it", name, strings.Join(manifest.Endings, ", "))
		if !recursive {
			err = fmt.Errorf("%w; -R looks into its folders too", err)
		}
	}
	return files, err
}

// documents takes a file apart: jobs, arrays of them, or objects with such an array, one after the other. count is how many
// documents it has.
func documents(file string, text []byte) (all []document, count int, err error) {
	values, err := manifest.Read(file, text)
	var wrong *manifest.Error
	if errors.As(err, &wrong) {
		return nil, 0, fmt.Errorf("%s: %s", place(file, 0, wrong.Line), wrong.What)
	}
	for i, value := range values {
		d := document{file: file, job: value}
		if len(values) > 1 {
			d.count = i + 1
		}
		many, err := jobsIn(value)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", d.place(), err)
		}
		for _, d.job = range many {
			if err := d.readName(); err != nil {
				return nil, 0, fmt.Errorf("%s: %w", d.place(), err)
			}
			all = append(all, d)
		}
	}
	return all, len(values), nil
}

// jobsIn gives the jobs of one document.
func jobsIn(value *manifest.Value) ([]*manifest.Value, error) {
	jobs := value.Member("jobs")
	switch {
	case value.Kind == manifest.Array:
		return value.Items, nil
	case value.Kind != manifest.Object:
		return nil, fmt.Errorf("got %s, want a job as an object, an array of jobs, or {\"jobs\": [...]}", value.Kind)
	case jobs == nil:
		return []*manifest.Value{value}, nil
	case jobs.Kind != manifest.Array:
		return nil, fmt.Errorf("jobs: got %s, want an array of jobs", jobs.Kind)
	case len(value.Members) > 1:
		return nil, errors.New(`want nothing beside "jobs" in an object that holds many`)
	}
	return jobs.Items, nil
}

// readName finds a job's name, in "name" or else in "status", and takes it out: the rest is for the server to judge.
func (d *document) readName() error {
	d.name = ""
	if d.job.Kind != manifest.Object {
		return fmt.Errorf("got %s, want an object", d.job.Kind)
	}
	if name := d.job.Member("name"); name != nil {
		if name.Kind != manifest.Text {
			return fmt.Errorf("name: got %s, want text", name.Kind)
		}
		d.name, d.job = name.Scalar, d.job.Without("name")
	} else if status := d.job.Member("status"); status != nil {
		if name := status.Member("name"); name != nil && name.Kind == manifest.Text {
			d.name = name.Scalar
		}
	}
	return nil
}
