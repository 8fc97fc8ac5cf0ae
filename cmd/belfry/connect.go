package main

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// mostToken bounds what is read of a token's file, and mostCA of certificates.
const (
	mostToken = 64 << 10
	mostCA    = 16 << 20
)

// client gives the client of the server that the configuration names.
func (c *cli) client() (*client.Client, error) {
	cfg := client.Config{Address: c.address, NewKey: rand.Text}
	var err error
	if cfg.Token, err = c.token(); err != nil {
		return nil, err
	}
	if c.caFile != "" {
		if cfg.RootCAs, err = certificates(c.caFile); err != nil {
			return nil, err
		}
	}
	made, err := client.New(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	if at, err := url.Parse(c.address); err == nil && cfg.Token != "" && at.Scheme == "http" && !isLoopback(at.Hostname()) {
		c.warn("the token goes to %s unencrypted: use https", c.address)
	}
	return made, nil
}

// token is the one that the configuration names, "" for none.
func (c *cli) token() (string, error) {
	if token := c.config.settings["token"]; token.text != "" {
		return token.text, nil
	}
	file := c.config.settings["token_file"]
	if file.text == "" {
		return "", nil
	}
	text, err := readUpTo(file.text, mostToken)
	if err != nil {
		return "", exiting(exitRefused, fmt.Errorf("token file, from %s: %w", file.from, err))
	}
	token := string(bytes.TrimSpace(text))
	if token == "" {
		return "", exiting(exitRefused, fmt.Errorf("token file %s, from %s, is empty", file.text, file.from))
	}
	return token, nil
}

func certificates(name string) (*x509.CertPool, error) {
	text, err := readUpTo(name, mostCA)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA file %s holds no certificate: want PEM, which begins with -----BEGIN CERTIFICATE-----", name)
	}
	return pool, nil
}

func readUpTo(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d KB", name, most>>10)
	}
	return text, err
}

// explain adds what would help to errors that say too little by themselves.
func (c *cli) explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var lost *client.Unreachable
	var refused *client.Error
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w\nName the file of the authority that signed the server's certificate with --ca-file, or \"belfry config set ca_file FILE\"", err)
	case errors.As(err, &lost):
		return fmt.Errorf("%w\nIs it running? Start it with \"belfry dev\", or name another server with --address", err)
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w\n%s", err, c.whyUnknown())
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden && c.sent().text != "":
		return fmt.Errorf("%w\nThe token, from %s, is not enough for this. Whoever has the scope admin can make another with \"belfry token create\"", err, c.sent().from)
	}
	return err
}

// sent is the token that was sent, or the file it was read from.
func (c *cli) sent() value {
	if token := c.config.settings["token"]; token.text != "" {
		return token
	}
	return c.config.settings["token_file"]
}

func (c *cli) whyUnknown() string {
	const give = "Give one by BELFRY_TOKEN, --token-file or \"belfry config set token -\"; \"belfry token create\" makes one"
	switch {
	case c.config.unsent != "":
		return "No token was sent: " + c.config.unsent + ". " + give
	case c.sent().text == "":
		return "No token was sent. " + give
	}
	return fmt.Sprintf("The token, from %s, is not known there, or is no longer. %s", c.sent().from, give)
}

// warn tells on stderr what did not stop the command.
func (c *cli) warn(format string, args ...any) {
	fmt.Fprintf(c.stderr, "belfry: warning: "+format+"\n", args...)
}
