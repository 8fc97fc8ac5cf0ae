package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

func (c *cli) jobEdit() *cobra.Command {
	return &cobra.Command{
		Use:   "edit NAME",
		Short: "Edit a job in an editor",
		Long: `Edit a job in the editor that VISUAL or EDITOR names, else vi. When you leave it, the job is stored as the file has it. What the
server refuses is shown in the file, which is opened again; a file without a change, or an empty one, leaves the job as it is.
If the job was changed by somebody else meanwhile, nothing is stored, and your file is kept.`,
		Example: `  belfry job edit report`,
		Args:    cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			stored, err := server.Job(ctx, args[0])
			if err != nil {
				return err
			}
			value, err := jobfile.Of(stored.Definition)
			if err != nil {
				return err
			}
			file, err := os.CreateTemp("", "belfry-"+args[0]+"-*.yaml")
			if err != nil {
				return err
			}
			e := editing{cli: c, server: server, name: args[0], etag: stored.ETag, file: file.Name()}
			if err := file.Close(); err != nil {
				return err
			}
			edited, err := e.edit(ctx, manifest.YAML(value))
			if err != nil && edited {
				return fmt.Errorf("%w\nWhat you wrote is in %s", err, e.file)
			}
			return errors.Join(err, os.Remove(e.file))
		}),
	}
}

// editing is one job on its way through an editor.
type editing struct {
	*cli
	server     *client.Client
	name, etag string
	file       string
}

// edit opens the editor until the server takes what it left, and tells whether there is something in the file to be kept.
func (e *editing) edit(ctx context.Context, text []byte) (edited bool, err error) {
	wrong := ""
	for {
		head := fmt.Sprintf("# The job %s. Save and leave to store it; without a change it stays as it is.\n", e.name)
		for _, line := range strings.Split(wrong, "\n") {
			if line != "" {
				head += "# " + line + "\n"
			}
		}
		if err := os.WriteFile(e.file, append([]byte(head), text...), 0o600); err != nil {
			return edited, err
		}
		if err := e.open(ctx); err != nil {
			return edited, err
		}
		left, err := os.ReadFile(e.file)
		if err != nil {
			return edited, err
		}
		left = bytes.TrimPrefix(left, []byte(head))
		switch {
		case bytes.Equal(left, text) && wrong != "":
			return edited, fmt.Errorf("%s was left as it is: %s", e.name, wrong)
		case bytes.Equal(left, text) || len(bytes.TrimSpace(left)) == 0:
			fmt.Fprintf(e.messages(), "%s was left as it is.\n", e.name)
			return false, nil
		}
		text, edited = left, true
		var mistake mistaken
		if err = e.store(ctx, text); !errors.As(err, &mistake) {
			return err != nil, err
		}
		wrong = mistake.Error()
	}
}

// mistaken is what the editor is opened again for.
type mistaken struct{ error }

// store gives the job to the server.
func (e *editing) store(ctx context.Context, text []byte) error {
	values, err := manifest.Read(e.file, text)
	if err != nil {
		return mistaken{err}
	}
	if len(values) != 1 {
		return mistaken{fmt.Errorf("want one job, got %d documents", len(values))}
	}
	stored, err := e.server.PutDocument(ctx, e.name, values[0].JSON(), client.Condition{ETag: e.etag})
	var refused *client.Error
	if errors.As(err, &refused) && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusUnprocessableEntity) {
		return mistaken{err}
	}
	if err != nil {
		return err
	}
	return e.showJob(stored)
}

// open runs the editor, which a shell finds: its name may bring flags.
func (e *editing) open(ctx context.Context) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if text := os.Getenv(name); text != "" {
			editor = text
		}
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", e.file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, editorOut(e.stdout, e.stderr), e.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	return nil
}

// editorOut keeps what an editor draws out of a result that goes into a pipe.
func editorOut(out, otherwise io.Writer) io.Writer {
	if isTerminal(out) {
		return out
	}
	return otherwise
}
