package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// makesProfiles marks commands that may name a profile which is not there yet; anyConfig, those that go without a configuration
// where the one there is cannot be read.
const (
	makesProfiles = "makes-profiles"
	anyConfig     = "any-config"
)

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "See and change the configuration",
		Long: `See and change the configuration. A setting comes from a flag, else from the environment (BELFRY_ADDRESS for
--address and so on), else from the profile in force in config.toml. A profile that --profile names goes before the
environment. docs/configuration.md lists all settings.

Without a command it shows what is in force, as "belfry config show" does.`,
		Example: `  belfry config
  belfry config set address https://belfry.example.org --profile prod
  belfry config use-profile prod`,
	}
	show := c.configShow()
	cmd.RunE = show.RunE
	cmd.AddCommand(show, c.configPath(), c.configSet(), c.configUnset(), c.configProfiles(), c.configUse())
	return cmd
}

// shownSetting is a row of config show.
type shownSetting struct {
	Setting string     `json:"setting"`
	Value   string     `json:"value"`
	From    sourceKind `json:"from"`
	Source  string     `json:"source,omitempty"`
}

func (c *cli) configShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show [COMMAND]",
		Short: "Show what is in force, and where each value comes from",
		Long: `Show the settings in force for calls to a server, and where each comes from; with COMMAND (` + strings.Join(roles, ", ") + `),
those which that command would start with. Secrets are never shown.`,
		Example: `  belfry config show
  belfry config show serve
  belfry config show --profile default -o yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := newRows(c, []string{"SETTING", "VALUE", "FROM"})
			show := func(name string, v value, secret bool) error {
				if secret && v.text != "" {
					v.text = "********"
				}
				s := shownSetting{name, v.text, v.from.kind, v.from.what}
				return out.add(s, []string{s.Setting, s.Value, v.from.String()})
			}
			if len(args) == 1 {
				role := roleNamed(cmd.Root(), args[0])
				if role == nil {
					return misused("COMMAND %q: want %s", args[0], strings.Join(roles, ", "))
				}
				if err := c.configureCommand(role); err != nil {
					return err
				}
				for _, key := range roleKeys(role) {
					if err := show(key, c.config.role[flagOf(key)], false); err != nil {
						return err
					}
				}
				return out.end()
			}
			if err := show(profileKey, c.config.profile, false); err != nil {
				return err
			}
			for _, s := range profileSettings {
				if err := show(s.name, c.config.settings[s.name], s.secret); err != nil {
					return err
				}
			}
			if c.config.unsent != "" {
				c.warn("%s", c.config.unsent)
			}
			return out.end()
		},
	}
}

func (c *cli) configPath() *cobra.Command {
	return &cobra.Command{
		Use:         "path",
		Short:       "Print where config.toml is, or would be",
		Example:     "  belfry config path",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{anyConfig: "yes", makesProfiles: "yes"},
		RunE: func(*cobra.Command, []string) error {
			path := configPath()
			switch {
			case path == "":
				return errors.New("there is no place for config.toml: set BELFRY_CONFIG to its path, or HOME")
			case c.structured():
				return c.print(map[string]string{"path": path})
			}
			fmt.Fprintln(c.stdout, path)
			return nil
		},
	}
}

func (c *cli) configSet() *cobra.Command {
	return &cobra.Command{
		Use:   "set SETTING VALUE...",
		Short: "Set something in config.toml",
		Long: `Set something in config.toml: SETTING of the profile in force, or of the one that --profile names, which is made when
it is not there; or COMMAND.SETTING of a command that runs for long, as in serve.listen. VALUE - is read from standard input,
and a token or API key from nowhere else: others on this host see command lines. The rest of the file stays as it was written.`,
		Example: `  belfry config set address https://belfry.example.org --profile prod
  echo "$TOKEN" | belfry config set token - --profile prod
  belfry config set auth iam --profile aws
  belfry config set timezone Europe/Berlin
  belfry config set serve.data /var/lib/belfry
  belfry config set serve.host belfry.example.org belfry.internal`,
		Args:        cobra.MinimumNArgs(2),
		Annotations: map[string]string{makesProfiles: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			values := args[1:]
			read := slices.Equal(values, []string{"-"})
			var text []byte
			var err error
			switch {
			case read && isSecret(args[0]) && c.asks():
				text, err = c.unseen(args[0] + ": ")
			case read:
				text, err = c.readFile("-")
			case isSecret(args[0]):
				return misused("want - as the value of %[1]s, and the %[1]s on standard input: others on this host see command lines, and shells keep them", args[0])
			}
			if err != nil {
				return err
			}
			if read {
				values = []string{strings.TrimSpace(string(text))}
			}
			return c.change(cmd, args[0], values)
		},
	}
}

func (c *cli) configUnset() *cobra.Command {
	return &cobra.Command{
		Use:         "unset SETTING",
		Short:       "Take something out of config.toml",
		Example:     "  belfry config unset timezone\n  belfry config unset serve.listen",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{makesProfiles: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.change(cmd, args[0], nil)
		},
	}
}

// change sets or, where values is nil, takes out what a name stands for.
func (c *cli) change(cmd *cobra.Command, name string, values []string) error {
	e, as, err := c.entryOf(cmd, name)
	if err != nil {
		return err
	}
	if e.values = values; values != nil {
		if e.list = as == asList; len(values) > 1 && !e.list {
			return misused("%s takes one VALUE, got %d", name, len(values))
		}
		if err := checkEntry((&cli{}).root(), &e); err != nil {
			return exiting(exitUsage, fmt.Errorf("%s: %w", name, err))
		}
	}
	after, err := c.config.file.with(e.table, e.key, values, as)
	if err != nil {
		return err
	}
	return after.write()
}

// entryOf finds what a name of the command line stands for, and how its values are written.
func (c *cli) entryOf(cmd *cobra.Command, name string) (entry, form, error) {
	table, key, ok := strings.Cut(name, ".")
	if !ok {
		if !slices.Contains(settingNames(), name) {
			return entry{}, 0, misused("SETTING %q: want %s, or COMMAND.SETTING with COMMAND one of %s", name, strings.Join(settingNames(), ", "), strings.Join(roles, ", "))
		}
		profile := c.config.profile.text
		if !profileName.MatchString(profile) {
			return entry{}, 0, misused("profile %q: want a name of letters, digits, - and _", profile)
		}
		return entry{table: profilesPart + profile, key: name}, asText, nil
	}
	role := roleNamed(cmd.Root(), table)
	if role == nil {
		return entry{}, 0, misused("SETTING %q: want COMMAND.SETTING with COMMAND one of %s", name, strings.Join(roles, ", "))
	}
	flag := role.LocalNonPersistentFlags().Lookup(flagOf(key))
	if flag == nil || !slices.Contains(roleKeys(role), key) {
		return entry{}, 0, misused("SETTING %q: %s has %s", name, table, strings.Join(roleKeys(role), ", "))
	}
	return entry{table: table, key: key}, formOf(flag), nil
}

func formOf(flag *pflag.Flag) form {
	if _, many := flag.Value.(pflag.SliceValue); many {
		return asList
	}
	switch flag.Value.Type() {
	case "bool", "int", "int64", "float64":
		return asBare
	}
	return asText
}

func (c *cli) configUse() *cobra.Command {
	return &cobra.Command{
		Use:         "use-profile PROFILE",
		Short:       "Make a profile the one in force",
		Example:     "  belfry config use-profile prod",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{makesProfiles: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			f := &c.config.file
			if all := f.profiles(); !slices.Contains(all, args[0]) {
				there := "it has none; belfry config set makes one"
				if len(all) > 0 {
					there = "it has " + strings.Join(all, ", ")
				}
				return exiting(exitNotFound, fmt.Errorf("profile %q is not in %s: %s", args[0], orNowhere(f.path), there))
			}
			after, err := f.with("", profileKey, args, asText)
			if err != nil {
				return err
			}
			return after.write()
		},
	}
}

func orNowhere(path string) string {
	if path == "" {
		return "any config.toml"
	}
	return path
}

// shownProfile is a row of config profiles.
type shownProfile struct {
	Profile string `json:"profile"`
	InForce bool   `json:"in_force"`
	Address string `json:"address,omitempty"`
	Auth    string `json:"auth,omitempty"` // "" where the profile has nothing to show
}

func (c *cli) configProfiles() *cobra.Command {
	return &cobra.Command{
		Use:     "profiles",
		Short:   "List the profiles of config.toml",
		Example: "  belfry config profiles",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f := &c.config.file
			out := newRows(c, []string{"PROFILE", "IN FORCE", "ADDRESS", "AUTH"})
			word := map[bool]string{true: "yes"}
			for _, name := range f.profiles() {
				p := shownProfile{Profile: name, InForce: name == c.config.profile.text}
				if e := f.find(profilesPart+name, "address"); e != nil {
					p.Address = e.values[0]
				}
				p.Auth = f.authOf(name)
				if err := out.add(p, []string{p.Profile, word[p.InForce], p.Address, p.Auth}); err != nil {
					return err
				}
			}
			return out.end()
		},
	}
}

// authOf is how a profile shows who calls, "" where it does not.
func (f *configFile) authOf(profile string) string {
	table := profilesPart + profile
	switch {
	case f.find(table, "auth") != nil:
		return f.find(table, "auth").values[0]
	case f.find(table, "token") != nil || f.find(table, "token_file") != nil:
		return authToken
	case f.find(table, "api_key") != nil || f.find(table, "api_key_file") != nil:
		return authAPIKey
	}
	return ""
}
