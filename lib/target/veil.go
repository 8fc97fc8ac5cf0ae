package target

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What is hidden. A shorter text than leastHidden occurs by chance everywhere, so that hiding it would spoil every log and
// still tell it, by where it is missing.
const (
	leastHidden = 4
	leastLine   = 16 // a line of a longer secret, which may be printed by itself
	leastPart   = 8  // the beginning of a secret, where what the target said ends in the midst of it
)

// veil hides the secrets of an attempt in what its target says: a server that repeats a header in its error page, a script
// that prints its environment. It finds a secret as it is, in the forms that programs commonly write it in (JSON, URL,
// base64 at any offset, hex), and, of an Authorization or a signing key, the telling part alone. It does not find one that
// was cut in pieces, turned around or encrypted: who gets a secret can always tell it.
type veil struct {
	longest int
	begins  [256][]disguise // by first byte, the longest first
}

// disguise is one form of a secret.
type disguise struct {
	text  string
	shown string // stands in its place
}

// newVeil gives nil where there is nothing to hide.
func newVeil(values map[string]string) *veil {
	var all []disguise
	seen := map[string]bool{}
	for name, value := range values {
		for _, text := range disguises(value) {
			if len(text) >= leastHidden && !seen[text] {
				seen[text] = true
				all = append(all, disguise{text, Secret(name).String()})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b disguise) int { return len(b.text) - len(a.text) })
	v := &veil{longest: len(all[0].text)}
	for _, d := range all {
		v.begins[d.text[0]] = append(v.begins[d.text[0]], d)
	}
	return v
}

// disguises lists the texts that would tell a secret.
func disguises(value string) []string {
	var all []string
	for _, part := range tellingParts(value) {
		all = append(all, part, hex.EncodeToString([]byte(part)), strings.ToUpper(hex.EncodeToString([]byte(part))))
		all = append(all, inJSON(part)...)
		all = append(all, inURL(part)...)
		all = append(all, inHTML(part)...)
		for offset := range 3 {
			all = append(all, inBase64(base64.RawStdEncoding, part, offset), inBase64(base64.RawURLEncoding, part, offset))
		}
	}
	return all
}

// leftInURLs are the signs that encoders leave as they are, beside letters and digits.
var leftInURLs = []string{
	"-_.~",                 // url.QueryEscape, and RFC 3986
	"-_.~$&+=:@",           // url.PathEscape
	"-_.~/",                // Python
	"-_.*",                 // forms of browsers, Java
	"-_.!*()",              // .NET
	"-_.~!'()*",            // encodeURIComponent
	"-_.~!'()*;,/?:@&=+$#", // encodeURI
}

// inURL gives what encoders make of the text, with digits of either case, and with a plus for a blank.
func inURL(text string) []string {
	var all []string
	for _, left := range leftInURLs {
		for _, digits := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
			out := make([]byte, 0, 3*len(text))
			for i := range len(text) {
				b := text[i]
				if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte(left, b) >= 0 {
					out = append(out, b)
				} else {
					out = append(out, '%', digits[b>>4], digits[b&15])
				}
			}
			all = append(all, string(out), strings.ReplaceAll(string(out), "%20", "+"))
		}
	}
	return all
}

// inHTML gives what pages make of the text, which have no one way to write quotes.
func inHTML(text string) []string {
	plain := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	all := []string{plain}
	for _, double := range []string{"&quot;", "&#34;"} {
		for _, single := range []string{"'", "&#39;", "&#039;", "&#x27;", "&apos;"} {
			all = append(all, strings.NewReplacer(`"`, double, "'", single).Replace(plain))
		}
	}
	return all
}

// inJSON gives what encoders make of the text: as it must be, with the signs of HTML as numbers, and with slashes marked; and of
// those that write ASCII alone.
func inJSON(text string) []string {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text)         // text always has a JSON form
	forHTML, _ := json.Marshal(text) // likewise
	quoted := strings.TrimSuffix(plain.String(), "\n")
	quoted = quoted[1 : len(quoted)-1]
	all := []string{quoted, string(forHTML[1 : len(forHTML)-1]), strings.ReplaceAll(quoted, "/", `\/`)}
	for _, number := range []string{`\u%04x`, `\u%04X`} {
		all = append(all, inASCII(quoted, number, ""), inASCII(strings.ReplaceAll(quoted, `\"`, `"`), number, "\"&'+<>`"))
	}
	return all
}

// inASCII writes other letters than those of ASCII, and some signs, as numbers of UTF-16.
func inASCII(text, number, signs string) string {
	var out strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf && !strings.ContainsRune(signs, r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, number, unit)
		}
	}
	return out.String()
}

// tellingParts are the secret and what of it is as good as the whole.
func tellingParts(value string) []string {
	parts := []string{value}
	if key, ok := strings.CutPrefix(value, signingPrefix); ok {
		parts = append(parts, key)
		if raw, err := base64.StdEncoding.DecodeString(key); err == nil {
			parts = append(parts, string(raw))
		}
	}
	if scheme, credentials, ok := strings.Cut(value, " "); ok && isToken(scheme) {
		parts = append(parts, credentials)
		if raw, err := base64.StdEncoding.DecodeString(credentials); err == nil && strings.EqualFold(scheme, "Basic") {
			_, password, _ := strings.Cut(string(raw), ":")
			parts = append(parts, string(raw), password)
		}
	}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= leastLine && !strings.HasPrefix(line, "-----") {
				parts = append(parts, line)
			}
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < leastHidden })
}

// inBase64 gives the letters that stand for the text whatever is encoded before and after it, when it begins at this offset
// of a group of three bytes.
func inBase64(encoding *base64.Encoding, text string, offset int) string {
	letters := encoding.EncodeToString(append(make([]byte, offset), text...))
	own := (offset + len(text)) * 8 / 6 // the letters of which all bits are known
	return letters[(offset*8+5)/6 : own]
}

// hide gives the text without the secrets.
func (v *veil) hide(text string) string {
	if v == nil {
		return text
	}
	var out strings.Builder
	w := v.over(&out)
	_, _ = w.Write([]byte(text)) // a builder takes everything
	w.close(false)
	return out.String()
}

// over gives a writer that hands on what it is given without the secrets. Its user must close it.
func (v *veil) over(to io.Writer) *veiled { return &veiled{veil: v, to: to} }

// veiled keeps back the end of what was written, as long as that may be the beginning of a secret: pieces of any size may
// come. So it holds less than the longest form of a secret.
type veiled struct {
	*veil
	to   io.Writer
	kept []byte
	out  []byte // of the last write, to be used again
}

func (w *veiled) Write(p []byte) (int, error) {
	if w.veil == nil {
		return w.to.Write(p)
	}
	w.kept = append(w.kept, p...)
	out, rest := w.pass(w.out[:0], w.kept, false)
	w.kept, w.out = append(w.kept[:0], rest...), out // the rest moves to the front of where it stands
	if len(out) > 0 {
		if _, err := w.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// close hands on what was kept back. Where the text was cut by us, more of a secret may have stood there: its beginning is
// dropped.
func (w *veiled) close(cut bool) {
	if w.veil == nil || len(w.kept) == 0 {
		return
	}
	out, rest := w.pass(nil, w.kept, !cut)
	if !cut {
		out = append(out, rest...)
	}
	w.kept = nil
	_, _ = w.to.Write(out) // its users' writers take everything
}

// pass appends what can be shown to out, and gives the rest, which may be the beginning of a secret. At the end of the text, the rest is what
// is too short to tell anything.
func (v *veil) pass(out, text []byte, end bool) (shown, rest []byte) {
	for i := 0; i < len(text); {
		whole, part := v.find(text[i:])
		switch {
		case part != nil && !end:
			return out, text[i:]
		case whole != nil:
			out = append(out, whole.shown...)
			i += len(whole.text)
		case part != nil && len(text)-i >= leastPart:
			return append(out, part.shown...), nil
		case part != nil && len(text)-i < leastHidden:
			return out, text[i:] // no whole one has room in it
		default:
			out = append(out, text[i])
			i++
		}
	}
	return out, nil
}

// find gives the longest secret that the text begins with, and one that is longer and may yet come.
func (v *veil) find(text []byte) (whole, part *disguise) {
	begins := v.begins[text[0]]
	for i := range begins {
		d := &begins[i]
		switch {
		case len(d.text) > len(text):
			if part == nil && d.text[:len(text)] == string(text) {
				part = d
			}
		case string(text[:len(d.text)]) == d.text:
			return d, part
		}
	}
	return nil, part
}
