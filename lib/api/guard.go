package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
)

// guard refuses what a web page could make a browser send. A page of another site can reach an address of this machine
// directly, which its Origin tells, or by giving its own name this machine's address (DNS rebinding), which makes the
// request same-origin for the browser but leaves a foreign Host.
func (a *api) guard(r *http.Request) *problem {
	if a.Local && !a.ours(r.Host) {
		return newProblem(codeHostNotAllowed, "The Host header names "+shown(r.Host)+
			", which is not this machine. Call it by a loopback address or by a name given to --host.")
	}
	for _, origin := range r.Header.Values("Origin") {
		from, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(from.Host, r.Host) || from.Scheme != "http" && from.Scheme != "https" {
			return newProblem(codeOriginNotAllowed, "The request comes from a web page of "+shown(origin)+". Pages of other sites may not call Belfry.")
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && !a.followed(r) {
		return newProblem(codeOriginNotAllowed, "The request comes from a web page of another site. Such pages may not call Belfry.")
	}
	return nil
}

// ours tells whether a Host header names this machine.
func (a *api) ours(hostport string) bool {
	host := hostOf(hostport)
	return loopback(hostport) || slices.ContainsFunc(a.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// loopback tells whether a Host header names this machine by what every machine calls itself.
func loopback(hostport string) bool {
	host := hostOf(hostport)
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost"
}

func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// lost answers for paths and methods that are not there, nil for those that are. The mux would answer in plain text, and
// send paths that are not clean elsewhere, which no client of an API expects.
func lost(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) *problem {
	clean := path.Clean(r.URL.Path)
	if r.URL.Path == "" || r.URL.Path != clean {
		return newProblem(codeNoSuchPath, "There is nothing at "+shown(r.URL.Path)+"; /openapi.json lists the paths.")
	}
	answer := unread{header: http.Header{}}
	if onlyPost(r.URL.Path) && r.Method != http.MethodPost {
		answer.header.Set("Allow", http.MethodPost)
		answer.status = http.StatusMethodNotAllowed
	} else if handler, pattern := mux.Handler(r); pattern != "" {
		return nil
	} else {
		handler.ServeHTTP(&answer, r)
	}
	if allow := answer.header.Get("Allow"); answer.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow+", OPTIONS")
		return newProblem(codeMethodNotAllowed, r.Method+" is not possible here, only "+allow+".")
	}
	hint := ""
	if below, ok := strings.CutPrefix(clean, "/v1/runs/"); ok {
		if of, path, ok := stepNamed(below); ok {
			hint = " " + stepRequests(of, path)
		}
	} else if clean == changesPath {
		hint = " This server does not tell what changes: ask for what you want to know every ten seconds."
	}
	return newProblem(codeNoSuchPath, "There is nothing at "+shown(r.URL.Path)+"; /openapi.json lists the paths."+hint)
}

// unread takes an answer of which only status and headers matter.
type unread struct {
	header http.Header
	status int
}

func (u *unread) Header() http.Header         { return u.header }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) WriteHeader(status int)      { u.status = status }
