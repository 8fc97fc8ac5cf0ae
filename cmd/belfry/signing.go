package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// signer signs requests to an API Gateway with AWS credentials, by Signature Version 4.
type signer struct {
	v4          *v4.Signer
	credentials aws.CredentialsProvider
	region      string
	whose       string // for people: where the credentials are from
	now         func() time.Time
}

// findCredentials bounds how long it may take to get credentials. Those of a role come from a service of the host, or by STS or
// the single sign-on, within a second or two; a host that has none would ask for them for long.
const findCredentials = 15 * time.Second

// signer finds out who signs, and for which region. Credentials are asked for with the first request.
func (c *cli) signer() (*signer, error) {
	profile, region := c.config.settings["aws_profile"].text, c.config.settings["aws_region"].text
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // what matters comes as an error
	whose := "as AWS's tools find them"
	if profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
		whose = fmt.Sprintf("of the AWS profile %s", profile)
	}
	found, err := config.LoadDefaultConfig(context.Background(), options...)
	var missing config.SharedConfigProfileNotExistError
	switch {
	case errors.As(err, &missing):
		return nil, fmt.Errorf("there is no AWS profile %q in ~/.aws/config or ~/.aws/credentials: name another with aws_profile, or make it with \"aws configure --profile %s\"", missing.Profile, missing.Profile)
	case err != nil:
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if region == "" {
		if at, err := url.Parse(c.address); err == nil {
			region = regionOfAPI(at.Hostname())
		}
	}
	if region == "" {
		region = found.Region
	}
	if region == "" {
		return nil, errors.New("the AWS region of the API is not known, since it is not in the address: name it with --aws-region, \"belfry config set aws_region REGION\" or AWS_REGION")
	}
	return &signer{v4: v4.NewSigner(), credentials: found.Credentials, region: region, whose: whose, now: c.now}, nil
}

var apiHost = regexp.MustCompile(`\.execute-api\.([a-z]{2}[a-z0-9-]*)\.`)

// regionOfAPI is the region that the host name of an API Gateway has in it, "" for another host.
func regionOfAPI(host string) string {
	if found := apiHost.FindStringSubmatch(strings.ToLower(host)); found != nil {
		return found[1]
	}
	return ""
}

// sign is a client.Config.Authorize. Each try is signed anew: a signature is good for five minutes.
func (s *signer) sign(req *http.Request, body []byte) error {
	ctx, cancel := context.WithTimeout(req.Context(), findCredentials)
	defer cancel()
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		if stopped := req.Context().Err(); stopped != nil {
			return stopped
		}
		why := " (" + strings.Join(strings.Fields(err.Error()), " ") + ")"
		if strings.Contains(why, "no EC2 IMDS role found") {
			why = "" // the last place that is looked at, and on most hosts not the one that was meant
		}
		return exiting(exitRefused, fmt.Errorf("there are no AWS credentials to sign with, %s: sign in with \"aws sso login\", name a profile with aws_profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY%s", s.whose, why))
	}
	sum := sha256.Sum256(body)
	if err := s.v4.SignHTTP(req.Context(), credentials, req, hex.EncodeToString(sum[:]), "execute-api", s.region, s.now()); err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	return nil
}

// gatewayError is a refusal by API Gateway, in words that say what to do about it.
type gatewayError struct {
	said  string
	cause error
}

func (g *gatewayError) Error() string { return g.said }
func (g *gatewayError) Unwrap() error { return g.cause }

// stageHint is for what API Gateway answers alike: a path that it has not, and a caller that it does not let in.
const stageHint = "does the address end with the API's stage, as in https://ID.execute-api.REGION.amazonaws.com/belfry?"

const noKey = "no API key was sent%s: give one by BELFRY_API_KEY, --api-key-file or \"belfry config set api_key -\""

// explainGateway says in one line why API Gateway passed a request not on. Its own words are kept where they name what is missing.
func (c *cli) explainGateway(err error, refused *client.Error) error {
	said := func(format string, args ...any) error {
		return &gatewayError{c.address + ": " + fmt.Sprintf(format, args...), err}
	}
	signed := c.config.auth == authIAM && c.signing != nil
	switch refused.Gateway {
	case "MissingAuthenticationTokenException":
		if signed {
			return said("the API has nothing there: %s", stageHint)
		}
		return said("the API wants requests signed with AWS credentials (\"belfry config set auth iam\"), or has nothing there: %s", stageHint)
	case "IncompleteSignatureException":
		return said("the API wants requests signed with AWS credentials: \"belfry config set auth iam\"")
	case "InvalidSignatureException":
		if signed {
			return said("%s", c.signing.wrong(refused))
		}
	case "UnrecognizedClientException", "InvalidClientTokenId":
		if signed {
			return said("AWS does not know the credentials, %s: is the access key deleted, or of another partition?", c.signing.whose)
		}
	case "ExpiredTokenException":
		if signed {
			return said("the AWS credentials, %s, have expired: sign in again, for instance with \"aws sso login\"", c.signing.whose)
		}
	case "AccessDeniedException", "AccessDenied":
		if signed {
			return said("the AWS credentials, %s, lack the right execute-api:Invoke on this API: %s", c.signing.whose, strings.TrimSpace(refused.Message))
		}
		return said("the API's rules do not let this caller in: %s", strings.TrimSpace(refused.Message))
	case "ForbiddenException":
		switch {
		case c.config.auth != authAPIKey:
			return said("the API wants a key (\"belfry config set api_key -\"), or has no such stage: %s", stageHint)
		case c.sent().text == "":
			return said(noKey, because(c.config.unsent))
		}
		return said("the API key, from %s, is of none of the API's usage plans, or the API has no such stage: %s", c.sent().from, stageHint)
	case "UnauthorizedException":
		if c.config.auth != authToken || c.sent().text == "" {
			return said("the API wants a JWT as token, and got none%s: give one by BELFRY_TOKEN, --token-file or \"belfry config set token -\"", because(c.config.unsent))
		}
		return said("the API refuses the token, from %s: it has expired, or is of another issuer or for another audience than the API wants", c.sent().from)
	case "LimitExceededException":
		return said("the quota of the API key's usage plan is used up: wait for its next period, or have the plan changed")
	case "": // not AWS's own, which name what they mean
		switch {
		case c.sent().text == "" && !signed:
			return said(noKey, because(c.config.unsent))
		case signed:
			return said("it refuses what AWS credentials have signed, those %s: %s", c.signing.whose, refused.Detail)
		}
		return said("it refuses the API key, from %s: %s", c.sent().from, refused.Detail)
	}
	return err
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ", since " + why
}

// signedFor is how old a signature may be.
const signedFor = 5 * time.Minute

// wrong says why AWS takes a signature for wrong. Where a stack has put other words in place of AWS's, the clock of the answer tells
// what can be told.
func (s *signer) wrong(by *client.Error) string {
	said := strings.TrimSpace(by.Message)
	aged := strings.HasPrefix(said, "Signature expired") || strings.HasPrefix(said, "Signature not yet current")
	off := s.now().Sub(by.At)
	switch {
	case aged, !by.At.IsZero() && off.Abs() > signedFor-30*time.Second:
		if by.At.IsZero() {
			return "this host's clock is off, set it by NTP: " + said
		}
		side := map[bool]string{true: "ahead of", false: "behind"}[off > 0]
		return fmt.Sprintf("this host's clock is %s %s AWS's, set it by NTP: a signature is good for five minutes", off.Abs().Round(time.Second), side)
	case strings.Contains(said, "valid region"):
		return fmt.Sprintf("the API is not in the region %s that the request was signed for: name its region with --aws-region or \"belfry config set aws_region REGION\"", s.region)
	}
	return fmt.Sprintf("AWS refuses the signature: the secret key of the credentials, %s, is wrong, the API is not in %s (aws_region), or something on the way changed the request", s.whose, s.region)
}
