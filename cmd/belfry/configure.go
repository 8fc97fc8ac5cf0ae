package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// setting is something of a profile: what commands need to know to call a server and to show what it says.
type setting struct {
	name   string // in config.toml; the flag has dashes, the environment BELFRY_ and capitals
	says   string
	secret bool               // never shown, and without a flag: others on the host see command lines
	env    string             // the variable, where it is not called as the rule above has it
	check  func(string) error // what is wrong with a value; nil: nothing can be
}

// profileSettings in the order in which they are shown. Those that are not secret have a flag of the same name.
var profileSettings = []setting{
	{name: "address", says: "the server's URL", check: checkAddress},
	// BELFRY_AUTH is whom a server asks, and may stand in the same environment.
	{name: "auth", says: "how the server is told who calls: token, api-key, or iam for requests signed with AWS credentials; by default by the token or the key that is set", check: checkAuth, env: "BELFRY_CLIENT_AUTH"},
	{name: "token", says: "the token, Belfry's or a JWT, that the server knows you by", secret: true},
	{name: "token_file", says: "a file with the token, read anew by every command"},
	{name: "api_key", says: "the key of an API Gateway", secret: true},
	{name: "api_key_file", says: "a file with the key, read anew by every command"},
	{name: "aws_profile", says: "whose AWS credentials sign requests, with auth iam; by default those that AWS's own tools would take"},
	{name: "aws_region", says: "the AWS region that requests are signed for; by default the one in the server's address, else that of the AWS profile"},
	{name: "ca_file", says: "certificates, as PEM, that may have signed the server's; those that the host trusts by default"},
	{name: "output", says: "form of results: table, json, yaml, name or jsonpath=TEMPLATE", check: checkOutput},
	{name: "color", says: "colours: auto (on a terminal, unless NO_COLOR is set), always or never", check: func(v string) error { _, err := coloured(v, nil); return err }},
	{name: "timezone", says: "IANA name of the zone that times are shown in; this host's by default", check: func(v string) error { _, err := userZone(v); return err }},
}

// roles are the commands that run for long. Each of their flags can stand in the table of config.toml that is called as they are.
var roles = []string{"dev", "serve", "worker", "tick"}

func checkAddress(text string) error {
	at, err := url.Parse(text)
	if err == nil && at.User != nil {
		return misused("address: want it without user and password; a token says who calls")
	}
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return misused("address %q: want a URL such as %s", text, client.DefaultAddress)
	}
	return nil
}

// Ways to show who calls.
const (
	authToken  = "token"
	authAPIKey = "api-key"
	authIAM    = "iam"
)

func checkAuth(text string) error {
	if text != "" && text != authToken && text != authAPIKey && text != authIAM {
		return misused("auth %q: want token, api-key, or iam for requests signed with AWS credentials", text)
	}
	return nil
}

// variable is the one of the environment.
func (s setting) variable() string {
	if s.env != "" {
		return s.env
	}
	return variableOf(s.name)
}

func flagOf(name string) string     { return strings.ReplaceAll(name, "_", "-") }
func keyOf(flag string) string      { return strings.ReplaceAll(flag, "-", "_") }
func variableOf(name string) string { return "BELFRY_" + strings.ToUpper(keyOf(name)) }

// source says where a value comes from: the flag, the variable, or file and line.
type source struct {
	kind sourceKind
	what string
}

type sourceKind string

const (
	fromDefault sourceKind = "default"
	fromFlag    sourceKind = "flag"
	fromEnv     sourceKind = "environment"
	fromFile    sourceKind = "file"
)

func (s source) String() string { return strings.TrimSpace(string(s.kind) + " " + s.what) }

// value is what is in force, and where it comes from.
type value struct {
	text string
	from source
}

// configuration is what is in force for one command.
type configuration struct {
	file     configFile
	profile  value
	settings map[string]value // by setting
	role     map[string]value // by flag, of a command that is one of roles
	auth     string           // how the server is shown who calls: authToken, authAPIKey or authIAM
	unsent   string           // why the profile's token or key stays here, "" where it does not
}

// configure gives the flags that the command line left open their values: from the environment, else from config.toml. It may be
// called again.
func (c *cli) configure(cmd *cobra.Command) error {
	c.config = configuration{settings: map[string]value{}, role: map[string]value{}}
	file, err := readConfig(configPath())
	if err != nil {
		return err
	}
	if err := checkConfig(&file); err != nil {
		return err
	}
	c.config.file = file
	if file.holdsSecret() {
		c.warnExposed("a token or a key", file.path)
	}
	flags := cmd.Root().PersistentFlags() // not the command's own, where one may mean something else by the same name
	if err := c.chooseProfile(cmd, flags.Lookup(profileKey)); err != nil {
		return err
	}
	for _, s := range profileSettings {
		if err := c.settle(s, flags.Lookup(flagOf(s.name))); err != nil {
			return err
		}
	}
	if err := c.chooseAuth(); err != nil {
		return err
	}
	return c.configureCommand(cmd)
}

// chooseProfile finds the profile in force: the one that flag, environment or file name, else the one called default.
func (c *cli) chooseProfile(cmd *cobra.Command, flag *pflag.Flag) error {
	f := &c.config.file
	chosen := value{"default", source{kind: fromDefault}}
	if e := f.find("", profileKey); e != nil {
		chosen = value{e.values[0], f.source(e)}
	}
	if name := os.Getenv(variableOf(profileKey)); name != "" {
		chosen = value{name, source{fromEnv, variableOf(profileKey)}}
	}
	if flag.Changed {
		chosen = value{flag.Value.String(), source{fromFlag, "--" + flag.Name}}
	}
	c.config.profile = chosen
	if chosen.from.kind == fromDefault || slices.Contains(f.profiles(), chosen.text) || cmd.Annotations[makesProfiles] != "" {
		return nil
	}
	there := "it has none; belfry config set makes one"
	if all := f.profiles(); len(all) > 0 {
		there = "it has " + strings.Join(all, ", ")
	}
	return exiting(exitUsage, fmt.Errorf("profile %q (%s) is not in %s: %s", chosen.text, chosen.from, f.path, there))
}

func (f *configFile) source(e *entry) source {
	return source{fromFile, fmt.Sprintf("%s:%d", f.path, e.line)}
}

// settle finds the value of a setting, and gives it to its flag. A profile that --profile names goes before the environment:
// it stands on the command line.
func (c *cli) settle(s setting, flag *pflag.Flag) error {
	f := &c.config.file
	found := value{from: source{kind: fromDefault}}
	if flag != nil {
		found.text = flag.DefValue
	}
	entry := f.find(profilesPart+c.config.profile.text, s.name)
	env := os.Getenv(s.variable())
	switch {
	case flag != nil && flag.Changed:
		found = value{flag.Value.String(), source{fromFlag, "--" + flag.Name}}
	case entry != nil && (env == "" || c.config.profile.from.kind == fromFlag):
		found = value{entry.values[0], f.source(entry)}
	case env != "":
		found = value{env, source{fromEnv, s.variable()}}
		if s.check != nil {
			if err := s.check(env); err != nil {
				return exiting(exitUsage, fmt.Errorf("%s: %w", s.variable(), err))
			}
		}
	}
	c.config.settings[s.name] = found
	if flag != nil && !flag.Changed {
		return flag.Value.Set(found.text)
	}
	return nil
}

// chooseAuth decides how the server is shown who calls, and with what.
func (c *cli) chooseAuth() error {
	if err := c.chooseBetween("token", "token_file"); err != nil {
		return err
	}
	if err := c.chooseBetween("api_key", "api_key_file"); err != nil {
		return err
	}
	if c.config.auth = c.config.settings["auth"].text; c.config.auth != "" {
		if err := checkAuth(c.config.auth); err != nil {
			return exiting(exitUsage, err)
		}
	} else {
		token, key := c.shown(authToken), c.shown(authAPIKey)
		switch a, b := c.rank(token), c.rank(key); {
		case a > 0 && a == b:
			return exiting(exitUsage, fmt.Errorf("a token (%s) and an API key (%s) are both set: say by auth which of them the server wants", token.from, key.from))
		case a >= b:
			c.config.auth = authToken
		default:
			c.config.auth = authAPIKey
		}
		c.config.settings["auth"] = value{c.config.auth, source{kind: fromDefault}}
	}
	c.keepFromOthers()
	return nil
}

// shown is what the server is shown with a kind of auth: the secret, or the file that it stands in.
func (c *cli) shown(auth string) value {
	secret := keyOfSecret(auth)
	if v := c.config.settings[secret]; v.text != "" {
		return v
	}
	return c.config.settings[secret+"_file"]
}

// keyOfSecret is the setting that holds what is shown; with auth iam there is none in the configuration.
func keyOfSecret(auth string) string {
	return map[string]string{authToken: "token", authAPIKey: "api_key"}[auth]
}

// rank orders values by where they come from, 0 for one that is not set.
func (c *cli) rank(v value) int {
	if v.text == "" {
		return 0
	}
	switch {
	case v.from.kind == fromFlag:
		return 4
	case v.from.kind == fromFile && c.config.profile.from.kind == fromFlag:
		return 3
	case v.from.kind == fromEnv:
		return 2
	}
	return 1
}

// chooseBetween leaves of a secret and the file that it may stand in the one that goes before the other.
func (c *cli) chooseBetween(secret, file string) error {
	set := c.config.settings
	none := value{from: source{kind: fromDefault}}
	switch a, b := c.rank(set[secret]), c.rank(set[file]); {
	case a > 0 && a == b:
		return exiting(exitUsage, fmt.Errorf("%s (%s) and %s (%s) are both set: want one of them", secret, set[secret].from, file, set[file].from))
	case a > b:
		set[file] = none
	default:
		set[secret] = none
	}
	return nil
}

// keepFromOthers keeps a profile's token and key from servers that they were not given for. A signature is good for one request
// to one host, so with auth iam there is nothing to be kept.
func (c *cli) keepFromOthers() {
	set := c.config.settings
	address := set["address"]
	if address.from.kind == fromFile {
		return
	}
	own := client.DefaultAddress
	if e := c.config.file.find(profilesPart+c.config.profile.text, "address"); e != nil {
		own = e.values[0]
	}
	if strings.TrimSuffix(own, "/") == strings.TrimSuffix(address.text, "/") {
		return
	}
	for _, name := range []string{"token", "token_file", "api_key", "api_key_file"} {
		if set[name].from.kind != fromFile {
			continue
		}
		what := strings.TrimSuffix(name, "_file")
		if what == "api_key" {
			what = "API key"
		}
		c.config.unsent = fmt.Sprintf("the %s of profile %s is for %s, and was not sent to another address", what, c.config.profile.text, own)
		set[name] = value{from: source{kind: fromDefault}}
	}
}

// configureCommand settles the flags of one of roles. Of other commands' own flags only those that say where the data is can come from
// the environment, and only where they are wanted in any case: elsewhere they choose what the command does.
func (c *cli) configureCommand(cmd *cobra.Command) error {
	role := isRole(cmd)
	var failed error
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if failed != nil || !configurable(flag) || !role && !wanted(flag) {
			return
		}
		found := value{flagText(flag), source{kind: fromDefault}}
		env := os.Getenv(variableOfFlag(flag))
		entry := c.config.file.find(cmd.Name(), keyOf(flag.Name))
		switch {
		case flag.Changed:
			found.from = source{fromFlag, "--" + flag.Name}
		case env != "":
			found.from = source{fromEnv, variableOfFlag(flag)}
			if err := setFlag(cmd.Flags(), flag, strings.Split(env, ",")); err != nil {
				failed = exiting(exitUsage, fmt.Errorf("%s: %w", variableOfFlag(flag), err))
			}
		case role && entry != nil:
			found.from = c.config.file.source(entry)
			failed = setFlag(cmd.Flags(), flag, entry.values)
		}
		found.text = flagText(flag)
		c.config.role[flag.Name] = found
	})
	return failed
}

// wanted tells whether a command that is none of roles cannot do without a flag's value.
func wanted(flag *pflag.Flag) bool {
	return flag.Name == "data" && flag.DefValue != "" || flag.Annotations[wants] != nil
}

func isRole(cmd *cobra.Command) bool {
	return cmd.HasParent() && !cmd.Parent().HasParent() && slices.Contains(roles, cmd.Name())
}

// configurable tells whether a flag of one of roles can stand in config.toml.
func configurable(flag *pflag.Flag) bool { return flag.Name != "help" && !flag.Hidden }

func flagText(flag *pflag.Flag) string {
	if many, ok := flag.Value.(pflag.SliceValue); ok {
		return strings.Join(many.GetSlice(), ",")
	}
	return flag.Value.String()
}

// setFlag gives a flag its values, all of them at once where it takes many.
func setFlag(flags *pflag.FlagSet, flag *pflag.Flag, values []string) error {
	if many, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return many.Replace(values)
	}
	return flags.Set(flag.Name, strings.Join(values, ","))
}

// checkConfig refuses what config.toml sets in vain or wrongly, by its line.
func checkConfig(f *configFile) error {
	var probe *cobra.Command // a tree of its own, whose flags nobody reads
	for i := range f.entries {
		e := &f.entries[i]
		if probe == nil && e.table != "" {
			probe = (&cli{}).root()
		}
		if err := checkEntry(probe, e); err != nil {
			return exiting(exitUsage, fmt.Errorf("%s:%d: %s: %w", f.path, e.line, e.name(), err))
		}
	}
	for _, table := range f.tableNames() {
		if _, profile := strings.CutPrefix(table, profilesPart); !profile && table != "profiles" && !slices.Contains(roles, table) {
			return exiting(exitUsage, fmt.Errorf("%s:%d: [%s]: no such table; want [profiles.NAME], [%s]", f.path, f.tables[table], table, strings.Join(roles, "], [")))
		}
	}
	return nil
}

func checkEntry(probe *cobra.Command, e *entry) error {
	if e.table == "" {
		if e.key != profileKey {
			return fmt.Errorf("no such setting; want %s = \"NAME\", and the others under [profiles.NAME], [%s]", profileKey, strings.Join(roles, "], ["))
		}
		return single(e, nil)
	}
	if name, ok := strings.CutPrefix(e.table, profilesPart); ok {
		if !profileName.MatchString(name) {
			return fmt.Errorf("profile %q: want a name of letters, digits, - and _", name)
		}
		at := slices.IndexFunc(profileSettings, func(s setting) bool { return s.name == e.key })
		if at < 0 {
			return fmt.Errorf("no such setting; a profile has %s", strings.Join(settingNames(), ", "))
		}
		return single(e, profileSettings[at].check)
	}
	role := roleNamed(probe, e.table)
	if role == nil {
		return fmt.Errorf("no such table; want [profiles.NAME], [%s]", strings.Join(roles, "], ["))
	}
	flag := role.LocalNonPersistentFlags().Lookup(flagOf(e.key))
	if flag == nil || !configurable(flag) || strings.Contains(e.key, "-") {
		return fmt.Errorf("no such setting; %s has %s", e.table, strings.Join(roleKeys(role), ", "))
	}
	if _, many := flag.Value.(pflag.SliceValue); e.list && !many {
		return fmt.Errorf("got a list, want one value")
	}
	return setFlag(role.Flags(), flag, e.values)
}

// single checks a setting of one value.
func single(e *entry, check func(string) error) error {
	if e.list || e.values[0] == "" {
		return fmt.Errorf("want a text that is not empty")
	}
	if check == nil {
		return nil
	}
	return check(e.values[0])
}

func settingNames() []string {
	names := make([]string, len(profileSettings))
	for i, s := range profileSettings {
		names[i] = s.name
	}
	return names
}

func roleNamed(root *cobra.Command, name string) *cobra.Command {
	for _, cmd := range root.Commands() {
		if cmd.Name() == name && isRole(cmd) {
			return cmd
		}
	}
	return nil
}

// roleKeys are the settings of a role, as config.toml names them.
func roleKeys(role *cobra.Command) []string {
	var keys []string
	role.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if configurable(flag) {
			keys = append(keys, keyOf(flag.Name))
		}
	})
	return keys
}
