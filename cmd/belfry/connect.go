package main

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

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
	secret, err := c.secretShown()
	if err != nil {
		return nil, err
	}
	switch c.config.auth {
	case authIAM:
		s, err := c.signer()
		if err != nil {
			return nil, exiting(exitRefused, err)
		}
		c.signing = s
		cfg.Authorize = s.sign
	case authAPIKey:
		cfg.Authorize = func(req *http.Request, _ []byte) error {
			req.Header.Set("X-Api-Key", secret)
			return nil
		}
		if secret == "" {
			cfg.Authorize = nil
		}
	default:
		cfg.Token = secret
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
	if at, err := url.Parse(c.address); err == nil && secret != "" && at.Scheme == "http" && !isLoopback(at.Hostname()) {
		c.warn("the %s goes to %s unencrypted: use https", c.calledSecret(), c.address)
	}
	return made, nil
}

// calledSecret is what people call that which is shown.
func (c *cli) calledSecret() string {
	if c.config.auth == authAPIKey {
		return "API key"
	}
	return "token"
}

// secretShown is the token or key that the configuration names, "" for none.
func (c *cli) secretShown() (string, error) {
	what := c.calledSecret()
	from := c.sent()
	if from.text == "" {
		return "", nil
	}
	secret := from.text
	if name := c.config.settings[keyOfSecret(c.config.auth)+"_file"]; name.text != "" {
		text, err := readUpTo(name.text, mostToken)
		if err != nil {
			return "", exiting(exitRefused, fmt.Errorf("%s file, from %s: %w", what, name.from, err))
		}
		c.warnExposed("the "+what, name.text)
		if secret = string(bytes.TrimSpace(text)); secret == "" {
			return "", exiting(exitRefused, fmt.Errorf("%s file %s, from %s, is empty", what, name.text, name.from))
		}
	}
	if c.config.auth == authAPIKey && strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", exiting(exitUsage, fmt.Errorf("API key, from %s: want one word of ASCII", from.from))
	}
	return secret, nil
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
		return fmt.Errorf("%w\n%s", err, c.whyLost(lost))
	case errors.As(err, &refused) && (refused.Gateway != "" || refused.Status == http.StatusUnauthorized && c.config.auth != authToken):
		return c.explainGateway(err, refused)
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w\n%s", err, c.whyUnknown())
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden && c.config.auth == authToken && c.sent().text != "":
		return fmt.Errorf("%w\nThe token, from %s, is not enough for this. Whoever has the scope admin can make another with \"belfry token create\"", err, c.sent().from)
	}
	return err
}

// whyLost says what may be the matter where no answer came.
func (c *cli) whyLost(lost *client.Unreachable) string {
	var name *net.DNSError
	if at, err := url.Parse(lost.Address); err == nil && errors.As(lost.Err, &name) && regionOfAPI(at.Hostname()) != "" {
		return "There is no such API: want the address that the stack's output ApiUrl shows, in its region"
	}
	return "Is it running? Start it with \"belfry dev\", or name another server with --address"
}

// sent is the token or key that was sent, or the file it was read from.
func (c *cli) sent() value { return c.shown(c.config.auth) }

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
	fmt.Fprintf(c.messages(), "belfry: warning: "+format+"\n", args...)
}
