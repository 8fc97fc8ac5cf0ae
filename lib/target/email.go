package target

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Email sends the run's payload by e-mail, as plain text. That the mail server has taken the mail is success, whatever becomes of it behind that.
type Email struct {
	To      []string `json:"to" cbor:"1,keyasint"`                          // addresses such as ops@example.org, all in one mail
	Subject string   `json:"subject,omitempty" cbor:"2,keyasint,omitempty"` // "" says what a callback tells, such as "report failed", and else names the job
	From    string   `json:"from,omitempty" cbor:"3,keyasint,omitempty"`    // an address of the domain that the worker sends from; "" is the worker's own
}

// Bounds of an email target.
const (
	MaxRecipients = 50
	maxSubject    = 200 // bytes
	maxAddress    = 254 // bytes, as RFC 5321 has it
	maxLocalPart  = 64
)

// SendEmail hands one mail over. Its errors are those of CallAWS: a *Failure where it is known that the mail was not taken, one of Short or one that
// wraps ErrUnsent where nothing was sent, and anything else where nobody knows whether it was taken.
type SendEmail func(ctx context.Context, to Email, call Call) (Result, error)

const (
	wantAddress = "an address such as ops@example.org, without a name around it"
	noASCII     = "an address in ASCII: a domain of other letters is written as xn--…"
)

var (
	localPart  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$")
	mailDomain = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

// ValidAddress says what is wrong with an address to mail to, as *invalid.Error of the field. An address that it lets pass can stand in a header and in a
// command of SMTP as it is.
func ValidAddress(field, text string) error {
	local, domain, has := strings.Cut(text, "@")
	switch {
	case text == "":
		return invalid.Missing(field, wantAddress)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		return invalid.Field(field, text, noASCII)
	case !has || len(text) > maxAddress || len(local) > maxLocalPart || !localPart.MatchString(local) || !mailDomain.MatchString(domain):
		return invalid.Field(field, text, wantAddress)
	}
	return nil
}

// DomainOf is the part of an address behind its @, in lower case.
func DomainOf(address string) string {
	_, domain, _ := strings.Cut(address, "@")
	return strings.ToLower(domain)
}

func (e *Email) validate() error {
	var errs []error
	switch {
	case len(e.To) == 0:
		errs = append(errs, invalid.Missing("to", `addresses such as ["ops@example.org"]`))
	case len(e.To) > MaxRecipients:
		errs = append(errs, invalid.Field("to", fmt.Sprintf("%d addresses", len(e.To)), fmt.Sprintf("at most %d", MaxRecipients)))
	}
	for i, to := range e.To {
		if err := ValidAddress("to["+strconv.Itoa(i)+"]", to); err != nil {
			errs = append(errs, err)
		} else if slices.ContainsFunc(e.To[:i], func(other string) bool { return strings.EqualFold(other, to) }) {
			errs = append(errs, invalid.Field("to["+strconv.Itoa(i)+"]", to, "each address once"))
		}
	}
	if e.Subject != "" && !isSubject(e.Subject) {
		errs = append(errs, invalid.Field("subject", e.Subject, fmt.Sprintf("at most %d bytes of text on one line, without blanks at its ends", maxSubject)))
	}
	if e.From != "" {
		errs = append(errs, ValidAddress("from", e.From))
	}
	return errors.Join(errs...)
}

// isSubject holds off what would begin another header, and what mail programs take for a line's end.
func isSubject(text string) bool {
	breaks := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	return len(text) <= maxSubject && utf8.ValidString(text) && !strings.ContainsFunc(text, breaks) && strings.TrimSpace(text) == text
}

// MailPattern is the addresses that an operator lets jobs mail to: * stands for any text, ? for any letter.
type MailPattern string

// ParseMailPatterns reads patterns with commas between them. "" is none.
func ParseMailPatterns(text string) ([]MailPattern, error) {
	var all []MailPattern
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		sample := strings.NewReplacer("*", "x", "?", "x").Replace(one)
		if one != "*" && ValidAddress("", sample) != nil {
			return nil, invalid.Field("pattern", one, `an address, or a pattern such as "*@example.org"; * stands for any text, ? for any letter`)
		}
		all = append(all, MailPattern(one))
	}
	return all, nil
}

// Allows tells whether a job may mail to the address. Capitals make no difference.
func (p MailPattern) Allows(address string) bool {
	pattern := strings.ToLower(string(p))
	if pattern == "*" {
		return true
	}
	local, domain, _ := strings.Cut(pattern, "@")
	gotLocal, gotDomain, _ := strings.Cut(strings.ToLower(address), "@")
	return glob(local, gotLocal) && glob(domain, gotDomain)
}

func (s *Set) canEmail() error {
	if s.cfg.Email == nil {
		return fmt.Errorf("%w: it has no mail server (BELFRY_SMTP_URL)", ErrNotHere)
	}
	return nil
}

// callEmail holds the operator's bound over recipients and sender.
func (s *Set) callEmail(ctx context.Context, to Email, call Call) (Result, error) {
	for _, address := range to.To {
		if len(s.cfg.MailTo) > 0 && !slices.ContainsFunc(s.cfg.MailTo, func(p MailPattern) bool { return p.Allows(address) }) {
			return Result{}, failed(KindRefused, nil, "%s: this worker's operator does not let jobs mail to it (--smtp-to)", address).permanent()
		}
	}
	if to.From != "" && DomainOf(to.From) != DomainOf(s.cfg.MailFrom) {
		return Result{}, failed(KindRefused, nil, "%s: jobs of this worker send from addresses at %s alone (--smtp-from)", to.From, DomainOf(s.cfg.MailFrom)).permanent()
	}
	if to.From == "" {
		to.From = s.cfg.MailFrom
	}
	got, err := s.cfg.Email(ctx, to, call)
	if err != nil {
		return Result{}, handedOver(ctx, err)
	}
	return got, nil
}
