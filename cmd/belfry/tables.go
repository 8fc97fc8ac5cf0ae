package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

func (c *cli) tables() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Make and check the DynamoDB table of a shared store",
		Long: `Make and check the DynamoDB table of a store that processes share, for those who do not deploy the SAM template, which makes
its own. AWS's own settings (AWS_REGION, AWS_PROFILE, a role) say who asks.`,
	}
	cmd.AddCommand(c.tableCreate(), c.tableCheck())
	return cmd
}

func (c *cli) tableCreate() *cobra.Command {
	var where string
	recovery, protection := true, true
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the table, if it is not there",
		Long: `Make the table, if it is not there: paid for by request, so that it costs what is used and no more, items that have expired
deleted, encrypted by AWS's own key. Any second of the last 35 days can be recovered, and nobody can delete the table before
that is allowed again; --recovery=false and --deletion-protection=false leave these out, for a table to play with.

A table that stands is left as it is, and checked as "belfry table check" does.`,
		Example: `  belfry table create --store dynamodb://belfry-table
  belfry table create --store "dynamodb://belfry-table?region=eu-central-1" --recovery=false --deletion-protection=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := tableConfig(cmd.Context(), where)
			if err != nil {
				return err
			}
			switch table, err := dynamo.Describe(cmd.Context(), cfg); {
			case err == nil:
				fmt.Fprintf(c.messages(), "%s stands already, and was left as it is.\n", table.Place)
				return c.tellFindings(tableFindings(table))
			case !errors.Is(err, dynamo.ErrNoTable):
				return err
			}
			fmt.Fprintln(c.messages(), "Making it takes some ten seconds.")
			if err := dynamo.CreateTable(cmd.Context(), cfg); err != nil {
				return err
			}
			if err := dynamo.Protect(cmd.Context(), cfg, recovery, protection); err != nil {
				return fmt.Errorf("the table was made, and is not protected as it should be: %w", err)
			}
			table, err := dynamo.Describe(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.messages(), "%s was made.\n", table.Place)
			return c.tellFindings(tableFindings(table))
		},
	}
	cmd.Flags().StringVar(&where, "store", "", tableURL)
	alwaysWanted(cmd.Flags(), "store")
	cmd.Flags().BoolVar(&recovery, "recovery", true, "let any second of the last 35 days be recovered")
	cmd.Flags().BoolVar(&protection, "deletion-protection", true, "let nobody delete the table before this is undone")
	return cmd
}

const tableURL = "`URL` of the table: dynamodb://TABLE, with ?region=REGION where it is not the usual one"

func (c *cli) tableCheck() *cobra.Command {
	var where string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the table is as it should be, and what would help",
		Long: `Say whether the table is as it should be: that it is there and may be used, its keys, that expired items go, how it is paid for
and protected, and that no other Region has a copy that is worked on. It ends with exit code 1 where there is a problem.`,
		Example: `  belfry table check --store dynamodb://belfry-table
  BELFRY_STORE=dynamodb://belfry-table belfry table check -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := tableConfig(cmd.Context(), where)
			if err != nil {
				return err
			}
			table, err := dynamo.Describe(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return c.tellFindings(tableFindings(table))
		},
	}
	cmd.Flags().StringVar(&where, "store", "", tableURL)
	alwaysWanted(cmd.Flags(), "store")
	return cmd
}

func tableConfig(ctx context.Context, where string) (dynamo.Config, error) {
	if where == "" {
		return dynamo.Config{}, misused("want --store dynamodb://TABLE, or BELFRY_STORE")
	}
	cfg, err := cloud.Table(ctx, where, newID, time.Now)
	return cfg, badAddress(err)
}

// tableFindings say what is as it should be of a table, and what is not.
func tableFindings(t dynamo.Table) []finding {
	found := []finding{fine("table", "%s is there, with some %d items", t.Place, t.Items)}
	add := func(ok bool, check, good, bad, why, help string) {
		f := fine(check, "%s", good)
		if !ok {
			f = finding{Check: check, Status: findProblem, Found: bad, Why: why, Help: help}
		}
		found = append(found, f)
	}
	attention := func(ok bool, check, good, bad, why, help string) {
		add(ok, check, good, bad, why, help)
		if !ok {
			found[len(found)-1].Status = findAttention
		}
	}
	if t.Status != "ACTIVE" {
		found[0] = finding{Check: "table", Status: findAttention, Found: t.Place + " is " + strings.ToLower(t.Status), Why: "It can be used when it is active.",
			Help: "Wait a minute, and check again."}
	}
	add(t.KeysRight, "keys", t.Keys, "they are "+t.Keys, "Belfry's tables have the keys p (HASH, B) and s (RANGE, B), both binary. Keys cannot be changed.",
		"Name another table, or make one: belfry table create.")
	switch t.Expiry {
	case dynamo.Untold:
		found = append(found, fine("expiry", "not told"))
	default:
		add(t.Expiry == dynamo.On, "expiry", "items that have expired are deleted, by ttl", "nothing that has expired is deleted",
			"The table grows for ever, and so does its bill.", "Turn on TTL, attribute ttl: aws dynamodb update-time-to-live.")
	}
	if t.Recovery == dynamo.Untold {
		found = append(found, fine("recovery", "not told"))
	} else {
		attention(t.Recovery == dynamo.On, "recovery", "any second of the last weeks can be recovered", "there is no point-in-time recovery",
			"It is the backup of a shared store: without it, what somebody deletes is gone.", "Turn it on: aws dynamodb update-continuous-backups.")
	}
	attention(t.Protection == dynamo.On, "deletion", "nobody can delete the table by accident", "the table may be deleted", "All jobs and runs would go with it.",
		"Turn on deletion protection: aws dynamodb update-table --deletion-protection-enabled.")
	attention(t.OnDemand, "capacity", "paid for by request", "provisioned", "What exceeds it is throttled, and runs are late; an idle table costs as well.",
		"Change it to on demand: aws dynamodb update-table --billing-mode PAY_PER_REQUEST.")
	attention(len(t.Regions) == 0, "regions", "in one Region", "it has replicas in "+strings.Join(t.Regions, ", "),
		"Two Regions that work on it at once would run a job twice: the last writer wins between Regions.", "Let the processes of one Region work, and those of the others stand by.")
	return found
}
