package api

import (
	"net/http"
	"strings"
)

// ConsolePath is where Config.Console is.
const ConsolePath = "/console"

func ofConsole(path string) bool {
	return path == ConsolePath || strings.HasPrefix(path, ConsolePath+"/")
}

// led are the paths from which a browser is led to a page of the console.
var led = map[string]string{"/": ConsolePath, "/docs": ConsolePath + "/docs"}

// shown answers what is for the console, and leads browsers there that ask for what no program does.
func (a *api) shown(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case a.Console == nil:
		return false
	case ofConsole(r.URL.Path):
		a.Console.ServeHTTP(w, r)
		return true
	case led[r.URL.Path] != "" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, led[r.URL.Path], http.StatusFound)
		return true
	}
	return false
}

// followed tells whether somebody has followed a link to a page of the console, in a mail or on a page of another site. That shows what
// is the same for everybody; the console itself refuses the rest of what another site may ask it for.
func (a *api) followed(r *http.Request) bool {
	return a.Console != nil && (led[r.URL.Path] != "" || ofConsole(r.URL.Path)) &&
		r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
