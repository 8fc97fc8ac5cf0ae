package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (c *cli) man() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write the manual pages, one for each command",
		Long:  `Write the manual pages for man(1), one for each command: the text that --help shows.`,
		Example: `  belfry man --dir man1 && man man1/belfry-job-apply.1
  sudo belfry man --dir /usr/local/share/man/man1`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{anyConfig: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return misused("want --dir DIR, the folder for the pages")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Path: dir, CommandSeparator: "-", Header: &doc.GenManHeader{
				Section: "1", Source: "Belfry " + thisBuild().Version, Manual: "Belfry", Date: built(),
			}})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder `DIR` for the pages, made when it is not there")
	return cmd
}

// built is the time of the commit that this binary was made of, so that the same commit gives the same pages; nil where Go noted
// none.
func built() *time.Time {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				return &at
			}
		}
	}
	return nil
}
