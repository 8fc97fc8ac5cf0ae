package api

import (
	"log/slog"
	"net/http"
	"time"
)

// Bounds of one request. A request's own time ends before the server's, so that it can still be answered.
const (
	maxBody        = 1 << 20 // of one request
	maxBatchBody   = 16 << 20
	maxWaitingBody = 160 << 10 // thousands of these are there at once; room for all handlers and labels of a worker
	maxHeader      = 64 << 10

	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	requestTimeout = 50 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 2 * time.Minute
)

// Server wraps the handler in a server with all its bounds set. What clients do to their connections is no news and logged
// at debug level only.
func Server(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
}

// Loopback shows the console, and passes all else on to next, as a server does that only this machine is to reach: what a web page of
// elsewhere makes a browser send is refused.
func Loopback(console, next http.Handler, log *slog.Logger) http.Handler {
	a := &api{Config: Config{Console: console, Local: true, Log: log}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.guarded(w, r, next.ServeHTTP) })
}
