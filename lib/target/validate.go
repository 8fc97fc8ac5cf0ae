package target

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Bounds of a definition. They keep a job well under the store's item size and a request under what servers accept. Those of lists stand in
// the API's document.
const (
	maxURL         = 2048
	MaxHeaders     = 64
	maxHeaderBytes = 16 << 10 // names and values together
	MaxStatuses    = 64
	MaxArgv        = 256
	MaxEnv         = 128
	maxExecBytes   = 64 << 10 // argv and env together
	maxDir         = 4096
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// reservedHeaders belong to Belfry or to the connection. X-Idempotency-Key stands here because Go's transport, when it
// sees it, takes the leave to send a request twice.
var reservedHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Idempotency-Key": true, "Keep-Alive": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "X-Idempotency-Key": true,
}

// reservedPrefixes begin the names that only Belfry, or a proxy, sets.
var reservedPrefixes = []string{"Belfry-", "Proxy-"}

func (h *HTTP) validate() error {
	errs := []error{ValidURL(h.URL)}
	if h.Method != "" && !slices.Contains(methods, h.Method) {
		errs = append(errs, invalid.Field("method", h.Method, "one of "+strings.Join(methods, ", ")))
	}
	errs = append(errs, validHeaders(h.Headers), h.Sign.validate(h.Headers))
	errs = append(errs, validCodes("permanent_status", h.PermanentStatus, 300, 599))
	errs = append(errs, validCodes("retry_status", h.RetryStatus, 300, 599))
	for _, status := range h.RetryStatus {
		if slices.Contains(h.PermanentStatus, status) {
			errs = append(errs, invalid.Field("retry_status", strconv.Itoa(status), "a status that is not in permanent_status too"))
		}
	}
	return errors.Join(errs...)
}

// ValidURL says what is wrong with the URL of an http target, as *invalid.Error of the field url.
func ValidURL(text string) error {
	const want = "an absolute http or https URL such as \"https://example.org/hook\""
	wrong := func(want string) error { return invalid.Field("url", text, want) }
	switch {
	case text == "":
		return invalid.Missing("url", want)
	case len(text) > maxURL:
		return wrong(fmt.Sprintf("at most %d bytes", maxURL))
	case strings.Contains(text, " "):
		return wrong("a URL without blanks; %20 stands for one")
	case strings.ContainsFunc(text, unicode.IsControl):
		return wrong("a URL without control characters, as tabs and line ends")
	case strings.Contains(text, "#"):
		return wrong("a URL without a fragment (#…), which is never sent")
	}
	at, err := url.Parse(text)
	switch {
	case err != nil:
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the URL, which stands there already
		}
		return wrong(want + ": " + err.Error())
	case at.Scheme == "":
		return wrong(want + ": it begins with http:// or https://")
	case at.Scheme != "http" && at.Scheme != "https":
		return wrong(want + ": " + at.Scheme + " is not called")
	case at.Opaque != "" || at.Hostname() == "":
		return wrong(want + ": it names no host")
	case at.User != nil:
		// Such a URL would show its password in every list of jobs.
		return invalid.Field("url", at.Redacted(), "a URL without user and password; send an Authorization header instead")
	}
	if port := at.Port(); port != "" || strings.HasSuffix(at.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return wrong("a port from 1 to 65535")
		}
	}
	return nil
}

// validHeaders never shows a value: it may be a token.
func validHeaders(headers map[string]Value) error {
	var errs []error
	size, seen := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, field, canonical := headers[name], "headers."+name, http.CanonicalHeaderKey(name)
		size += len(name) + value.size()
		switch {
		case !isToken(name):
			errs = append(errs, invalid.Field("headers", name, "header names of letters, digits and !#$%&'*+-.^_`|~"))
		case reservedHeaders[canonical] || slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) }):
			errs = append(errs, invalid.Field("headers", name, "headers other than "+reservedList()+", which Belfry and the connection set"))
		case seen[canonical]:
			errs = append(errs, invalid.Field("headers", name, "each header once; upper and lower case are the same"))
		case value.Secret != "":
			errs = append(errs, validSecret(field+".secret", value.Secret))
		case !isFieldValue(value.Text):
			errs = append(errs, invalid.Missing(field, "a value of visible characters, spaces and tabs, with none of those at its ends"))
		}
		seen[canonical] = true
	}
	if len(headers) > MaxHeaders {
		errs = append(errs, invalid.Field("headers", fmt.Sprintf("%d headers", len(headers)), fmt.Sprintf("at most %d", MaxHeaders)))
	}
	if size > maxHeaderBytes {
		errs = append(errs, invalid.Field("headers", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d bytes of names and values", maxHeaderBytes)))
	}
	return errors.Join(errs...)
}

func reservedList() string {
	all := slices.Sorted(maps.Keys(reservedHeaders))
	for _, prefix := range reservedPrefixes {
		all = append(all, prefix+"*")
	}
	return strings.Join(all, ", ")
}

// isToken follows RFC 9110, 5.6.2.
func isToken(name string) bool {
	const signs = "!#$%&'*+-.^_`|~"
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(signs, c) >= 0) {
			return false
		}
	}
	return name != ""
}

// isFieldValue follows RFC 9110, 5.5, bytes above 127 included.
func isFieldValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(value, " \t") == value
}

func validSecret(field, name string) error {
	if !ValidSecretName(name) {
		return invalid.Field(field, name, wantSecretName)
	}
	return nil
}

// validate refuses headers of the job's own beside the signature's: a receiver would not know which to believe.
func (s *Sign) validate(headers map[string]Value) error {
	if s == nil {
		return nil
	}
	errs := []error{validSecret("sign.secret", s.Secret)}
	if s.Previous != "" {
		errs = append(errs, validSecret("sign.previous", s.Previous))
	}
	if s.Previous == s.Secret {
		errs = append(errs, invalid.Field("sign.previous", s.Previous, "another secret than sign.secret, or nothing"))
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Webhook-") {
			errs = append(errs, invalid.Field("headers", name, "no header that begins with Webhook- beside sign, which sets them"))
		}
	}
	return errors.Join(errs...)
}

func validCodes(field string, codes []int, low, high int) error {
	var errs []error
	for _, code := range codes {
		if code < low || code > high {
			errs = append(errs, invalid.Field(field, strconv.Itoa(code), fmt.Sprintf("numbers from %d to %d", low, high)))
		}
	}
	if len(codes) > MaxStatuses {
		errs = append(errs, invalid.Field(field, fmt.Sprintf("%d numbers", len(codes)), fmt.Sprintf("at most %d", MaxStatuses)))
	}
	return errors.Join(errs...)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (e *Exec) validate() error {
	var errs []error
	size := 0
	for _, arg := range e.Argv {
		size += len(arg) + 1
	}
	switch {
	case len(e.Argv) == 0 || e.Argv[0] == "":
		errs = append(errs, invalid.Missing("argv", "the program and its arguments, such as [\"/usr/bin/backup\", \"--all\"]"))
	case len(e.Argv) > MaxArgv:
		errs = append(errs, invalid.Field("argv", fmt.Sprintf("%d arguments", len(e.Argv)), fmt.Sprintf("at most %d", MaxArgv)))
	case slices.ContainsFunc(e.Argv, hasNUL):
		errs = append(errs, invalid.Missing("argv", "arguments without NUL bytes"))
	case strings.Contains(e.Argv[0], "/") && !filepath.IsAbs(e.Argv[0]) && e.Dir == "":
		errs = append(errs, invalid.Field("argv", e.Argv[0], "an absolute path, a bare name to look up in PATH, or a dir that it is relative to"))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		value := e.Env[name]
		size += len(name) + value.size() + 2
		switch {
		case !envName.MatchString(name):
			errs = append(errs, invalid.Field("env", name, "names of letters, digits and _, not beginning with a digit, at most 128 bytes"))
		case strings.HasPrefix(name, ownEnv):
			errs = append(errs, invalid.Field("env", name, "names that do not begin with BELFRY_, which Belfry sets"))
		case value.Secret != "":
			errs = append(errs, validSecret("env."+name+".secret", value.Secret))
		case hasNUL(value.Text):
			errs = append(errs, invalid.Missing("env."+name, "a value without NUL bytes"))
		}
	}
	if len(e.Env) > MaxEnv {
		errs = append(errs, invalid.Field("env", fmt.Sprintf("%d names", len(e.Env)), fmt.Sprintf("at most %d", MaxEnv)))
	}
	if size > maxExecBytes {
		errs = append(errs, invalid.Field("argv", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d bytes of argv and env together", maxExecBytes)))
	}
	if e.Dir != "" && (!strings.HasPrefix(e.Dir, "/") && !filepath.IsAbs(e.Dir) || hasNUL(e.Dir) || len(e.Dir) > maxDir) {
		errs = append(errs, invalid.Field("dir", e.Dir, fmt.Sprintf("an absolute path of at most %d bytes, without NUL bytes", maxDir)))
	}
	errs = append(errs, validCodes("permanent_exit_codes", e.PermanentExitCodes, 1, 255))
	return errors.Join(errs...)
}

func hasNUL(text string) bool { return strings.IndexByte(text, 0) >= 0 }

var handlerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func validHandlerName(name string) error {
	const want = "1 to 128 letters, digits, dots, dashes and underscores, beginning with a letter or digit"
	if name == "" {
		return invalid.Missing("name", want)
	}
	if !handlerName.MatchString(name) {
		return invalid.Field("name", name, want)
	}
	return nil
}

func (h *Handler) validate() error { return validHandlerName(h.Name) }

// withoutSecrets shows scheme, host and path of a URL: user, query and fragment often carry tokens.
func withoutSecrets(text string) string {
	at, err := url.Parse(text)
	if err != nil {
		return "(unreadable URL)"
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
}
