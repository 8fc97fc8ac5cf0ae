package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// asks tells whether there is a person to be asked.
func (c *cli) asks() bool {
	in, ok := c.stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && isTerminal(c.stderr)
}

// unseen asks for something that nobody is to read over a shoulder.
func (c *cli) unseen(question string) ([]byte, error) {
	fmt.Fprint(c.messages(), question)
	text, err := term.ReadPassword(int(c.stdin.(*os.File).Fd()))
	fmt.Fprintln(c.messages())
	return text, err
}

// confirmation is the flag --yes, and the question that it answers.
type confirmation struct{ yes bool }

// errDeclined ends a command that was told not to go on.
var errDeclined = errors.New("nothing was done")

// needed refuses, before anything is done, what would have to be asked and cannot be.
func (k confirmation) needed(c *cli, what string) error {
	if k.yes || c.asks() {
		return nil
	}
	return misused("%s asks first, and there is no terminal to ask on: say --yes", what)
}

// confirm asks a person, unless --yes was given. Anything but yes is no.
func (k confirmation) confirm(c *cli, format string, args ...any) error {
	if k.yes {
		return nil
	}
	if !c.asks() {
		return misused(format+"; say --yes, or run it on a terminal", args...)
	}
	fmt.Fprintf(c.messages(), format+"? [y/N] ", args...)
	line, err := bufio.NewReader(c.stdin).ReadString('\n') // an interrupt ends the process, which has begun nothing yet
	if err != nil {
		return errDeclined
	}
	if said := strings.ToLower(strings.TrimSpace(line)); said != "y" && said != "yes" {
		return errDeclined
	}
	return nil
}
