package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed dist
var dist embed.FS

// DefaultPrefix is where the console is unless it is told otherwise.
const DefaultPrefix = "/console"

// policy lets a page load what this handler serves, ask the API beside it, and nothing else. Text cannot become markup or a script: that
// takes a Trusted Types policy, and there is none.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Config says where the console is. The zero Config is that of a server whose API is at its root.
type Config struct {
	// Prefix is the path under which the handler is mounted, which requests still have when they come here. Default: DefaultPrefix
	Prefix string
	// API is the path before /v1 at which the same host has the API. Default: none
	API string
	// Key has the pages ask for a key in place of a token, and take the one that stands in their address, as in /console#key=KEY.
	Key bool
	// Flags are added to each command that the pages show, such as "--profile prod". Default: --address, with where the pages are
	Flags string
	// Now is the clock by which the next fires of a job that is being written are told. Default: time.Now
	Now func() time.Time
}

type console struct {
	prefix  string
	assets  string // path of the folder of assets, which changes with them
	convert *converter
	page    file
	named   map[string]file // assets by name
}

// file is something to serve. Browsers take it compressed, and hardly anybody else asks.
type file struct {
	media  string
	text   []byte
	packed func() []byte
}

func newFile(media string, text []byte) file {
	return file{media, text, sync.OnceValue(func() []byte {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = w.Write(text) // to memory
		_ = w.Close()
		return out.Bytes()
	})}
}

// media is the type of each asset, by the end of its name.
var media = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8"}

// New gives the handler of everything at and below the prefix.
func New(cfg Config) (http.Handler, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	for name, given := range map[string]string{"Prefix": cfg.Prefix, "API": cfg.API} {
		if given != "" && (given[0] != '/' || path.Clean(given) != given || given == "/") {
			return nil, fmt.Errorf("console: %s %q: want a path such as /console, without a slash at its end", name, given)
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	c := &console{prefix: cfg.Prefix, convert: newConverter(cfg.Now), named: map[string]file{}}
	var page string
	for _, entry := range entries { // in the order of their names
		text, err := fs.ReadFile(dist, "dist/"+entry.Name())
		if err != nil {
			return nil, err
		}
		if entry.Name() == "index.html" {
			page = string(text)
			continue
		}
		fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(text), text)
		c.named[entry.Name()] = newFile(media[path.Ext(entry.Name())], text)
	}
	c.assets = cfg.Prefix + "/a/" + hex.EncodeToString(hash.Sum(nil)[:6]) + "/"
	page = strings.NewReplacer("{{assets}}", html.EscapeString(c.assets), "{{prefix}}", html.EscapeString(cfg.Prefix), "{{api}}", html.EscapeString(cfg.API),
		"{{key}}", map[bool]string{true: "yes"}[cfg.Key], "{{flags}}", html.EscapeString(cfg.Flags)).Replace(page)
	c.page = newFile("text/html; charset=utf-8", []byte(page))
	return c, nil
}

func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	asset, isAsset := strings.CutPrefix(r.URL.Path, c.prefix+"/a/")
	conversion, isConversion := strings.CutPrefix(r.URL.Path, c.prefix+"/convert/")
	switch {
	case r.URL.Path != c.prefix && !strings.HasPrefix(r.URL.Path, c.prefix+"/"):
		refuse(w, http.StatusNotFound, "The console is at "+c.prefix+".")
	case r.Method == http.MethodPost && isConversion && (conversion == "read" || conversion == "write"):
		if foreign(r) || (&http.CrossOriginProtection{}).Check(r) != nil {
			refuse(w, http.StatusForbidden, "A page of another site may not ask for this.")
			return
		}
		c.convert.serve(w, r, conversion)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "Only GET is possible here.")
	case foreign(r) && (isAsset || !followed(r)):
		refuse(w, http.StatusForbidden, "A page of another site may lead here by a link, and do nothing else.")
	case isAsset:
		found, is := c.named[strings.TrimPrefix(c.prefix+"/a/"+asset, c.assets)]
		if !is {
			refuse(w, http.StatusNotFound, "The console has changed: load the page again.")
			return
		}
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		found.serve(w, r)
	default:
		// The page tells by itself whether there is something at its path. It is asked for each time, since it names the assets.
		h.Set("Cache-Control", "no-cache")
		c.page.serve(w, r)
	}
}

// foreign tells whether a page of another site makes a browser ask.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// followed tells whether a browser asks for a page to show as a whole, as it does when somebody follows a link.
func followed(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Vary", "Accept-Encoding")
	text := f.text
	if unpacks(r) {
		text = f.packed()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", fmt.Sprint(len(text)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // who has gone needs no answer
	}
}

// unpacks tells whether a client takes gzip.
func unpacks(r *http.Request) bool {
	for _, one := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		weight = strings.TrimRight(strings.ReplaceAll(weight, " ", ""), "0")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && weight != "q=" && weight != "q=0." {
			return true
		}
	}
	return false
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, why)
}
