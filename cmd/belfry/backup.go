package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/embed"
)

// taken is the result of a backup.
type taken struct {
	File    string    `json:"file"`
	TakenAt time.Time `json:"taken_at"`
	Version string    `json:"version"`
	Items   int       `json:"items"`
	Blobs   int       `json:"blobs"`
	Bytes   int64     `json:"bytes"` // of the file
}

func (c *cli) backup() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that Belfry holds into one file, while it runs",
		Long: `Write all that Belfry holds into one file: jobs, runs, results, logs, tokens and secrets as they are stored. FILE may be
a folder, which gets a file named by the time, or - for standard output. The server goes on meanwhile; the file is as of one
instant. It is checked as it is written, and has its name only when it is whole. Keep it as you keep the data folder: payloads
and results are in it.

With --data it is taken from the data folder of a stopped server. docs/backup.md has more. What processes share on AWS has
point-in-time recovery instead.`,
		Example: `  belfry backup belfry.backup
  belfry backup /var/backups
  belfry backup - | age -r age1example > belfry.backup.age
  belfry backup stopped.backup --data /var/lib/belfry`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.takeBackup(cmd.Context(), args[0], data)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder `DIR` of a stopped server, instead of calling a running one")
	return cmd
}

func (c *cli) takeBackup(ctx context.Context, name, data string) error {
	write := func(out io.Writer, told func(backup.Count)) (backup.About, backup.Count, error) {
		if data != "" {
			return c.backupOf(ctx, data, out, told)
		}
		server, err := c.client()
		if err != nil {
			return backup.About{}, backup.Count{}, err
		}
		stream, err := server.Backup(ctx)
		var refused *client.Error
		if errors.As(err, &refused) && pathIsUnknown(refused) {
			err = errors.New("this server works on a table that processes share, and its backup is point-in-time recovery of that table: docs/aws.md says how to restore it")
		}
		if err != nil {
			return backup.About{}, backup.Count{}, err
		}
		defer stream.Close()
		about, count, err := backup.Verify(ctx, io.TeeReader(stream, out), told)
		if errors.Is(err, backup.ErrTorn) {
			err = errors.New("the server's backup broke off before its end: its log says why")
		}
		return about, count, err
	}
	if name == "-" {
		if isTerminal(c.stdout) {
			return misused("a backup is nothing for a terminal: want FILE, or - with standard output going elsewhere")
		}
		_, _, err := c.watched("backing up", func(told func(backup.Count)) (backup.About, backup.Count, error) { return write(c.stdout, told) })
		return err
	}
	path, err := c.backupPath(name)
	if err != nil {
		return err
	}
	var about backup.About
	var count backup.Count
	size, err := newFile(path, func(file io.Writer) error {
		about, count, err = c.watched("backing up", func(told func(backup.Count)) (backup.About, backup.Count, error) { return write(file, told) })
		return err
	})
	if err != nil {
		return err
	}
	done := taken{File: path, TakenAt: about.Taken, Version: about.Version, Items: count.Items, Blobs: count.Blobs, Bytes: size}
	return show(c, done, func(t taken) [][2]string {
		return [][2]string{
			{"file", t.File}, {"as of", c.moment(t.TakenAt)}, {"holds", fmt.Sprintf("%d items, %d blobs", t.Items, t.Blobs)}, {"size", sizeText(t.Bytes)},
			{"restore", "belfry restore " + t.File + " --data DIR"},
		}
	})
}

// watched tells on stderr how far the work is.
func (c *cli) watched(what string, do func(told func(backup.Count)) (backup.About, backup.Count, error)) (backup.About, backup.Count, error) {
	p := c.progress(what, 0)
	defer p.end()
	parts := 0
	return do(func(n backup.Count) {
		p.add(int64(n.Items + n.Blobs - parts))
		parts = n.Items + n.Blobs
	})
}

// backupOf takes a backup of the folder of a stopped server.
func (c *cli) backupOf(ctx context.Context, data string, out io.Writer, told func(backup.Count)) (_ backup.About, _ backup.Count, err error) {
	if _, err := os.Stat(embed.StoreFolder(data)); err != nil {
		return backup.About{}, backup.Count{}, fmt.Errorf("there is no store in %s: %w", data, err)
	}
	opened, err := openStore(data, discardLog(), longAgo)
	if err != nil {
		return backup.About{}, backup.Count{}, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	blobs, err := embed.OpenBlobs(ctx, data)
	if err != nil {
		return backup.About{}, backup.Count{}, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	return backup.Write(ctx, out, backup.Source{Store: opened, Blobs: blobs, Now: c.now, Version: thisBuild().Version}, told)
}

// longAgo is the clock of a store that is only looked at: nothing in it expires.
func longAgo() time.Time { return time.Unix(0, 0) }

// backupPath is where the backup goes; there must be nothing yet.
func (c *cli) backupPath(name string) (string, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "belfry-"+c.now().UTC().Format("2006-01-02T150405Z")+".backup")
	}
	if _, err := os.Lstat(name); err == nil {
		return "", fmt.Errorf("%s is there already, and is left as it is: choose another name", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return name, nil
}

// newFile writes a file that has its name only when it is whole and on the disk. It gives its size.
func newFile(path string, write func(io.Writer) error) (size int64, err error) {
	partial := path + ".partial"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	err = write(file)
	if err == nil {
		size, err = file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial)
		return 0, err
	}
	return size, syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func sizeText(bytes int64) string {
	switch {
	case bytes < 10<<10:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 10<<20:
		return fmt.Sprintf("%d KB", bytes>>10)
	case bytes < 10<<30:
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d GB", bytes>>30)
}
