package target

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// through writes the text in pieces of the given sizes, in turn, and gives what comes out.
func through(values map[string]string, text string, cut bool, sizes ...int) string {
	var out bytes.Buffer
	w := newVeil(values).over(&out)
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		fmt.Fprint(w, text[:n])
		text = text[n:]
	}
	w.close(cut)
	return out.String()
}

func TestSecretsAreHiddenHoweverTheyAreCut(t *testing.T) {
	values := map[string]string{"token": "s3cr3t-s3cr3t-value", "short": "abcd", "longer": "abcdefgh"}
	text := "a s3cr3t-s3cr3t-s3cr3t-value, abcd, abcdefgh, abcdefg and s3cr3t-value\n"
	want := "a s3cr3t-[secret token], [secret short], [secret longer], [secret short]efg and s3cr3t-value\n"
	for size := 1; size <= len(text); size++ {
		if got := through(values, text, false, size); got != want {
			t.Fatalf("in pieces of %d: got %q", size, got)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		sizes := []int{1 + random.IntN(9), 1 + random.IntN(30), 1 + random.IntN(4)}
		if got := through(values, text, false, sizes...); got != want {
			t.Fatalf("in pieces of %v: got %q", sizes, got)
		}
	}
}

func TestSecretsAreHiddenInTheirForms(t *testing.T) {
	const secret = "p\"ä ss/w+rd<&>\\=word?"
	quoted, _ := json.Marshal(map[string]string{"a": secret})
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	encoder.Encode(map[string]string{"a": secret})
	for name, text := range map[string]string{
		"itself":    "x" + secret + "x",
		"JSON":      string(quoted),
		"JSON, PHP": strings.ReplaceAll(plain.String(), "/", `\/`),
		"JSON, raw": plain.String(),
		"query":     "?a=" + url.QueryEscape(secret) + "&b",
		"path":      "/" + url.PathEscape(secret) + "/b",
		"hex":       hex.EncodeToString([]byte("x" + secret + "x")),
		"HEX":       strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":    base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64, 1": base64.StdEncoding.EncodeToString([]byte("x" + secret + "yz")),
		"base64, 2": base64.StdEncoding.EncodeToString([]byte("xy" + secret + "z")),
		"base64, 3": base64.URLEncoding.EncodeToString([]byte("user:x" + secret)),
	} {
		if got := through(map[string]string{"a": secret}, text, false, 7); !strings.Contains(got, "[secret a]") || len(got) >= len(text) {
			t.Errorf("%s: %q is shown as %q", name, text, got)
		}
	}
}

// What programs in other languages printed, a line each.
func TestSecretsAreHiddenInTheFormsOfOtherLanguages(t *testing.T) {
	const secret = "p\"ä ss/w+rd<&>\\=word?'!~*"
	for name, text := range map[string]string{
		"Python quote":                   `p%22%C3%A4%20ss/w%2Brd%3C%26%3E%5C%3Dword%3F%27%21~%2A`,
		"Python quote_plus":              `p%22%C3%A4+ss%2Fw%2Brd%3C%26%3E%5C%3Dword%3F%27%21~%2A`,
		"Python json":                    `p\"\u00e4 ss/w+rd<&>\\=word?'!~*`,
		"Python html":                    `p&quot;ä ss/w+rd&lt;&amp;&gt;\=word?&#x27;!~*`,
		"JavaScript encodeURIComponent":  `p%22%C3%A4%20ss%2Fw%2Brd%3C%26%3E%5C%3Dword%3F'!~*`,
		"JavaScript encodeURI":           `p%22%C3%A4%20ss/w+rd%3C&%3E%5C=word?'!~*`,
		"JavaScript URLSearchParams":     `p%22%C3%A4+ss%2Fw%2Brd%3C%26%3E%5C%3Dword%3F%27%21%7E*`,
		"Go html":                        `p&#34;ä ss/w+rd&lt;&amp;&gt;\=word?&#39;!~*`,
		".NET UrlEncode":                 `p%22%c3%a4+ss%2fw%2brd%3c%26%3e%5c%3dword%3f%27!%7e*`,
		".NET System.Text.Json":          `p\u0022\u00E4 ss/w\u002Brd\u003C\u0026\u003E\\=word?\u0027!~*`,
		"PHP htmlspecialchars, ENT_HTML": `p&quot;ä ss/w+rd&lt;&amp;&gt;\=word?&#039;!~*`,
	} {
		if got := through(map[string]string{"a": secret}, "x "+text+" x", false, 7); got != "x [secret a] x" {
			t.Errorf("%s: %q is shown as %q", name, text, got)
		}
	}
}

func TestTheTellingPartOfASecretIsHidden(t *testing.T) {
	key := bytes.Repeat([]byte("key!"), 8)
	for name, c := range map[string]struct{ secret, said string }{
		"token without its scheme":    {"Bearer tok-1234", "no such token tok-1234"},
		"password of Basic":           {"Basic " + base64.StdEncoding.EncodeToString([]byte("ann:p4ssw0rd")), "wrong: p4ssw0rd"},
		"signing key without whsec_":  {"whsec_" + base64.StdEncoding.EncodeToString(key), base64.StdEncoding.EncodeToString(key)},
		"signing key, its bytes":      {"whsec_" + base64.StdEncoding.EncodeToString(key), string(key)},
		"one line of several":         {"-----BEGIN KEY-----\nMIIBVgIBADANBgkqhki\nG9w0BAQEFAASC\n-----END KEY-----", "2026 MIIBVgIBADANBgkqhki 2026"},
		"beginning, at the very end":  {"0123456789abcdef", "said 0123456789"},
		"all of it, before a longer ": {"0123456789abcdef", "0123456789abcdef0123"},
	} {
		got := through(map[string]string{"a": c.secret}, c.said, false, 3)
		if !strings.Contains(got, "[secret a]") {
			t.Errorf("%s: %q is shown as %q", name, c.said, got)
		}
	}
}

// What stays as it is, so that a log can be read: what is too short to tell from any other text.
func TestShortTextsAreNotHidden(t *testing.T) {
	for _, c := range []struct{ secret, said string }{
		{"1", "11:01"}, {"abc", "abc"}, {"", "anything"}, {"0123456789abcdef", "count 0123456"},
	} {
		if got := through(map[string]string{"a": c.secret}, c.said, false, 2); got != c.said {
			t.Errorf("with the secret %q, %q is shown as %q", c.secret, c.said, got)
		}
	}
	if got := through(map[string]string{"a": "0123456789abcdef"}, "said 0123", true, 2); got != "said " {
		t.Errorf("of a text that we cut, %q is shown: the rest may be all of a secret", got)
	}
}

// The writer holds back less than a secret's longest form, and nothing of what cannot be its beginning.
func TestOutputIsNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	w := newVeil(map[string]string{"a": "xyzzy-xyzzy"}).over(&out)
	fmt.Fprint(w, "progress 10%\n")
	if out.String() != "progress 10%\n" {
		t.Errorf("shown so far: %q", out.String())
	}
	for range 1000 {
		fmt.Fprint(w, strings.Repeat("xyzz", 100))
		if len(w.kept) >= w.longest {
			t.Fatalf("%d bytes are held back", len(w.kept))
		}
	}
}

// However the output is cut, the same is shown, and a secret is nowhere in it but where its name stands.
func FuzzVeil(f *testing.F) {
	f.Add("s3cr3t-value", "a s3cr3t-s3cr3t-value b", uint8(3))
	f.Add("Bearer token-1234", "Bearer Bearer token-12 token-1234", uint8(1))
	f.Add("aaaa", "aaaaaaabaaaaa", uint8(2))
	f.Add("line of a secret\nanother of its lines", "line of a line of a secret", uint8(5))
	f.Fuzz(func(t *testing.T, secret, text string, size uint8) {
		values := map[string]string{"a": secret}
		whole := newVeil(values).hide(text)
		if pieces := through(values, text, false, int(size)+1); pieces != whole {
			t.Errorf("in pieces %q, as a whole %q", pieces, whole)
		}
		for _, part := range strings.Split(whole, "[secret a]") {
			if len(secret) >= leastHidden && strings.Contains(part, secret) {
				t.Errorf("%q is shown as %q", text, whole)
			}
		}
	})
}
