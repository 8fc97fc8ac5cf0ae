package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// build says what this binary is made of.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	TZData   string `json:"tzdata"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, TZData: schedule.TZDataVersion()}
	if b.Version != "" {
		return b
	}
	b.Version = "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	return b
}

func (c *cli) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell the versions of this binary and of its time zones",
		Example: "  belfry version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return show(c, thisBuild(), func(b build) [][2]string {
				return [][2]string{{"belfry", b.Version}, {"go", b.Go}, {"platform", b.Platform}, {"tzdata", b.TZData}}
			})
		},
	}
}
