package main

import (
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) secret() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep tokens, passwords and signing keys that jobs name",
		Long: `Keep secrets in Belfry's own store, encrypted. A job names one as {"secret": "SECRET"} where a header or a variable
has its value, and in http.sign; it is looked up at each attempt. No command shows a value again.`,
		Example: `  printf 'Bearer %s' "$TOKEN" | belfry secret set hook-token
  belfry secret list`,
	}
	cmd.AddCommand(c.secretSet(), c.secretList(), c.secretDelete(), c.secretNewKey(), c.secretRotate())
	return cmd
}

func (c *cli) secretSet() *cobra.Command {
	var file string
	var generate bool
	cmd := &cobra.Command{
		Use:   "set SECRET",
		Short: "Set a secret, from standard input or a file",
		Long: `Set a secret, in place of the one of that name; attempts that begin from now on use it. Its value is read from standard
input, on a terminal without showing it, or from a file, and never from the command line, which others on this host can see.
One line's end at its end is not part of it. --generate makes a key to sign calls with, and prints it this once, for the
receivers.`,
		Example: `  printf 'Bearer %s' "$TOKEN" | belfry secret set hook-token
  belfry secret set database-password --from-file password.txt
  belfry secret set billing-hook --generate`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if generate && file != "" {
				return misused("--generate and --from-file exclude each other")
			}
			if err := secret.ValidName(args[0]); err != nil {
				return usageError{err}
			}
			value, err := c.secretValue(args[0], file, generate)
			if err != nil {
				return err
			}
			s, created, err := server.PutSecret(ctx, args[0], value)
			if err != nil {
				return err
			}
			if generate {
				fmt.Fprintln(c.stdout, value)
				return nil
			}
			return show(c, s, func(s wire.Secret) [][2]string {
				return [][2]string{{"secret", s.Name}, {"result", map[bool]string{true: "created", false: "changed"}[created]}}
			})
		}),
	}
	cmd.Flags().StringVar(&file, "from-file", "", "`FILE` with the value; - is standard input")
	cmd.Flags().BoolVar(&generate, "generate", false, "make a signing key of Standard Webhooks, and print it")
	return cmd
}

// signingKeyBytes is the length of a new signing key, within the bounds of the standard.
const signingKeyBytes = 32

func (c *cli) secretValue(name, file string, generate bool) (string, error) {
	if generate {
		key := make([]byte, signingKeyBytes)
		_, err := io.ReadFull(crand.Reader, key)
		return "whsec_" + base64.StdEncoding.EncodeToString(key), err
	}
	var text []byte
	var err error
	switch {
	case file != "" && file != "-":
		text, err = readUpTo(file, secret.MaxValue+2)
		c.warnExposed("the value of a secret", file)
	case c.asks():
		text, err = c.unseen("Value of " + name + ": ")
	default:
		text, err = io.ReadAll(io.LimitReader(c.stdin, secret.MaxValue+3))
	}
	if err != nil {
		return "", fmt.Errorf("read the value of %s: %w", name, err)
	}
	value := secret.WithoutLineEnd(string(text))
	switch {
	case value == "":
		return "", misused("the value of %s is empty: want it on standard input, or from --from-file", name)
	case !utf8.ValidString(value):
		return "", misused("the value of %s is not text in UTF-8: encode bytes, as in base64", name)
	case len(value) > secret.MaxValue:
		return "", misused("the value of %s is larger than %d KB", name, secret.MaxValue>>10)
	}
	return value, nil
}

func (c *cli) secretList() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the secrets that the server keeps, without their values",
		Long:    "List the secrets that the server keeps, without their values. Those of its workers' environments and folders are not here.",
		Example: "  belfry secret list",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			return list(c, server.Secrets(ctx), most, []string{"NAME", "CHANGED", "KEY"}, func(s wire.Secret) []string {
				key := s.Key
				if !s.Rotated {
					key += " (old)"
				}
				return []string{s.Name, clock(s.UpdatedAt), key}
			})
		}),
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 0, "`NUMBER` of them at most; 0 for all")
	return cmd
}

func (c *cli) secretDelete() *cobra.Command {
	return &cobra.Command{
		Use:     "delete SECRET...",
		Short:   "Delete secrets: attempts that need them fail from now on",
		Example: "  belfry secret delete hook-token",
		Args:    cobra.MinimumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			var errs []error
			for _, name := range args {
				if err := server.DeleteSecret(ctx, name); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
			}
			return errors.Join(errs...)
		}),
	}
}

func (c *cli) secretNewKey() *cobra.Command {
	return &cobra.Command{
		Use:   "new-key KEYS",
		Short: "Make a key for secrets, before the older ones of a file",
		Long: `Make a key that secrets are encrypted under, for "belfry serve --secrets-key-file KEYS". In a file with keys the new one
comes first, and the older ones still decrypt; "belfry secret rotate-key" then changes over, without a restart. Keep a copy
of the file, apart from the backups of the data: without its key, a secret is lost.`,
		Example: `  belfry secret new-key secrets.key
  belfry serve --data /var/lib/belfry --secrets-key-file secrets.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			rotates, err := addKey(args[0])
			if err != nil {
				return fmt.Errorf("new key: %w", err)
			}
			result, next := "created", `start the server with --secrets-key-file `+args[0]
			if rotates {
				result, next = "changed", `belfry secret rotate-key, on the server that reads this file`
			}
			shown := map[string]string{"file": args[0], "result": result}
			return show(c, shown, func(map[string]string) [][2]string {
				return [][2]string{{"file", args[0]}, {"result", result}, {"next", next}}
			})
		},
	}
}

func (c *cli) secretRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Encrypt all secrets of a tenant under the newest key",
		Long: `Make the server read its keys anew and encrypt all secrets of the token's tenant under the newest, which stands first in its
file. Attempts go on meanwhile. When it has ended well for each tenant that keeps secrets, the older keys can be taken out of
the file: no secret needs them any more, though older backups do.`,
		Example: `  belfry secret new-key secrets.key
  belfry secret rotate-key`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			done, err := server.RotateSecretKeys(ctx)
			if err != nil {
				return err
			}
			return show(c, done, func(r wire.KeyRotation) [][2]string {
				return [][2]string{{"encrypted", fmt.Sprint(r.Encrypted)}}
			})
		}),
	}
}
