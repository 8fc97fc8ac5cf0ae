package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/record"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func (c *cli) store() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look into the data of a stopped server, or of a shared store"}
	cmd.AddCommand(c.storeShow())
	return cmd
}

func (c *cli) storeShow() *cobra.Command {
	var data, table, tenant, jobName, runID string
	cmd := &cobra.Command{
		Use:   "show [KEY]",
		Short: "Show a stored item decoded, or all items of a partition",
		Long: `Show a stored item decoded. KEY is PARTITION/SORT, as logs have it; with PARTITION/ all items of the partition
are shown. Times in Unix ms are shown as TIME (MS). A field that this version does not know has its number for a name, and
a record in the format of a newer version is said to be one. docs/protocol.md lists what is stored.

With --store it looks into a table that processes share, while they work.`,
		Example: `  belfry store show --data .belfry --job report
  belfry store show --data .belfry --run report~0mi4lf3k0
  belfry store show --data .belfry shard#00/
  belfry store show --store dynamodb://belfry-table shard#00/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var key store.Key
			switch {
			case len(args) == 1 && jobName == "" && runID == "":
				cut := strings.LastIndex(args[0], "/")
				if cut <= 0 {
					return misused("KEY %q: want PARTITION/SORT, or PARTITION/ for all of it", args[0])
				}
				key = store.Key{Partition: args[0][:cut], Sort: args[0][cut+1:]}
			case len(args) == 0 && jobName != "" && runID == "":
				key = job.Key(tenant, jobName)
			case len(args) == 0 && runID != "" && jobName == "":
				id, err := runs.ParseID(runID)
				if err != nil {
					return usageError{err}
				}
				key = id.Key(tenant)
			default:
				return misused("want one of KEY, --job and --run")
			}
			if table != "" && cmd.Flags().Changed("data") {
				return misused("want one of --data and --store")
			}
			return c.showItems(cmd.Context(), data, table, key)
		},
	}
	cmd.Flags().StringVar(&data, "data", devData, "data folder `DIR`")
	cmd.Flags().StringVar(&table, "store", "", "`URL` of a table that processes share, instead of a folder: dynamodb://TABLE")
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "`TENANT` of --job and --run")
	cmd.Flags().StringVar(&jobName, "job", "", "show this `JOB`")
	cmd.Flags().StringVar(&runID, "run", "", "show this `RUN`")
	return cmd
}

// shownItem is an item for people.
type shownItem struct {
	Partition string     `json:"partition"`
	Sort      string     `json:"sort"`
	Version   uint64     `json:"version"`
	Expires   *time.Time `json:"expires,omitempty"`
	Bytes     int        `json:"bytes"`
	Value     any        `json:"value"`
}

// openTable opens a table that processes share.
func openTable(ctx context.Context, where string) (*dynamo.Store, error) {
	cfg, err := tableConfig(ctx, where)
	if err != nil {
		return nil, err
	}
	return dynamo.Open(ctx, cfg)
}

// openKept opens a table where one is named, else the store of a folder.
func openKept(ctx context.Context, data, table string) (opened store.Store, shut func() error, err error) {
	if table != "" {
		t, err := openTable(ctx, table)
		if err != nil {
			return nil, nil, err
		}
		return t, t.Close, nil
	}
	if _, err := os.Stat(embed.StoreFolder(data)); err != nil {
		return nil, nil, fmt.Errorf("there is no store in %s: %w", data, err)
	}
	folder, err := openStore(data, discardLog(), func() time.Time { return time.Unix(0, 0) }) // a look cleans nothing up
	if err != nil {
		return nil, nil, err
	}
	return folder, folder.Close, nil
}

func (c *cli) showItems(ctx context.Context, data, table string, key store.Key) (err error) {
	opened, shut, err := openKept(ctx, data, table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shut()) }()
	if key.Sort != "" {
		items, err := opened.Get(ctx, key)
		if err != nil {
			return err
		}
		if !items[0].Exists() {
			return fmt.Errorf("there is no item %s", key)
		}
		return c.print(shownOf(items[0]))
	}
	found := 0
	for r := (store.Range{Partition: key.Partition}); ; {
		page, err := opened.Query(ctx, r)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			found++
			if err := c.print(shownOf(item)); err != nil {
				return err
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			break
		}
	}
	if found == 0 {
		return fmt.Errorf("there is nothing in partition %s", key.Partition)
	}
	return nil
}

// records are the structs of all that is stored, by what partitions begin with up to a "#".
func records() map[string]any {
	all := map[string]any{}
	for _, of := range []map[string]any{job.Records(), runs.Records(), gate.Records(), timer.Records(), tick.Records(), stats.Records(), control.Records(), access.Records(), secret.Records(), lease.Records()} {
		maps.Copy(all, of)
	}
	return all
}

func shownOf(item store.Item) shownItem {
	shown := shownItem{Partition: item.Partition, Sort: item.Sort, Version: item.Version, Bytes: len(item.Value)}
	if !item.Expires.IsZero() {
		shown.Expires = &item.Expires
	}
	prefix, _, _ := strings.Cut(item.Partition, "#")
	value, err := record.Explain(item.Value, records()[prefix])
	if err != nil {
		shown.Value = err.Error()
		return shown
	}
	shown.Value = value
	return shown
}
