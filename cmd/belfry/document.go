package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// document is a job or a gate of a file.
type document = jobfile.Document

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

// readDocuments reads the jobs, or the gates, of files and folders, in order. Nothing of them is applied before all could be read.
func (c *cli) readDocuments(kind jobfile.Kind, names []string, recursive bool) ([]document, error) {
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
			found, count, err := jobfile.Read(kind, file, text)
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
		return nil, fmt.Errorf("there is no %s in %s", kind, strings.Join(named, ", "))
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
