package metrics

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/internal/clients"
)

// HandlerOptions are the pages served beside the metrics.
type HandlerOptions struct {
	// Ready returns the checks of /readyz: whether the parts of the process and the switches work; nil has none.
	// /healthz only shows that the process answers, because a restart cures nothing else.
	Ready func() []Check
	// Pages serves paths below /api/ to callers who may see the metrics; nil serves none.
	Pages http.Handler
	// Free serves all other paths, to everyone; nil serves none.
	Free http.Handler
	// Allow returns an HTTP status, 200 if the caller may see more than whether all is well. A nil Allow allows
	// everyone.
	Allow func(*http.Request) (code int, why string)
	// Leads returns why this process may no longer answer about the fabric; nil means that it may.
	Leads func() error
	Log   *slog.Logger // nil: slog.Default
}

// Check is the verdict on one part; a nil Err is good.
type Check struct {
	Part string
	Err  error
}

// Handler serves /metrics, with Go's and the process's own, /healthz and /readyz. The collector may be
// nil.
func Handler(c prometheus.Collector, o HandlerOptions) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(),
	} {
		if c == nil {
			continue
		}
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	if o.Allow == nil {
		o.Allow = func(*http.Request) (int, string) { return http.StatusOK, "" }
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.allowed(promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError, Registry: reg,
	})))
	mux.HandleFunc("GET /healthz", o.verdict(nil))
	mux.HandleFunc("GET /readyz", o.verdict(o.Ready))
	if o.Pages != nil {
		mux.Handle("GET /api/", o.allowed(o.Pages))
	}
	if o.Free != nil {
		mux.Handle("/", o.Free)
	}
	return mux, nil
}

// maxAnswers bounds the answers in progress, because an answer of a large fabric has megabytes.
const maxAnswers = 16

// allowed serves h. It refuses callers that Allow refuses, and requests beyond maxAnswers at once.
func (o HandlerOptions) allowed(h http.Handler) http.Handler {
	room := make(chan struct{}, maxAnswers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code, why := o.Allow(r); code != http.StatusOK {
			http.Error(w, why, code)
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d requests are being answered, which is the limit: try again", maxAnswers), http.StatusServiceUnavailable)
			return
		}
		if o.Leads != nil {
			w = &led{ResponseWriter: w, leads: o.Leads}
		}
		h.ServeHTTP(w, r)
	})
}

// led passes an answer on while the process leads, else it answers 503.
type led struct {
	http.ResponseWriter
	leads func() error
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (l *led) WriteHeader(code int) {
	if l.leads() == nil {
		l.begun = true
		l.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (l *led) Write(text []byte) (int, error) {
	if err := l.leads(); err != nil {
		if !l.begun {
			l.begun = true
			http.Error(l.ResponseWriter, err.Error(), http.StatusServiceUnavailable)
		}
		return 0, err
	}
	l.begun = true
	return l.ResponseWriter.Write(text)
}

// verdict answers with a line for each part, and with 503 if a part is not good. A caller who may not see the parts
// sees only whether all are good.
func (o HandlerOptions) verdict(checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code, text := http.StatusOK, ""
		if checks != nil {
			for _, c := range checks() {
				state := "ok"
				if c.Err != nil {
					code, state = http.StatusServiceUnavailable, c.Err.Error()
				}
				text += c.Part + ": " + state + "\n"
			}
		}
		if may, _ := o.Allow(r); may != http.StatusOK {
			text = ""
			if code != http.StatusOK {
				text = "not ok\n"
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, cmp.Or(text, "ok\n"))
	}
}

// boundWrites bounds the time from the first write of a handler to its last. http.Server.WriteTimeout also counts the time
// until the first write, so a scrape of a large fabric on a busy machine would end without an answer.
func boundWrites(h http.Handler, unread time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Time{}) // that of an earlier request; if it fails, so does the write
		h.ServeHTTP(&boundedWriter{ResponseWriter: w, controller: c, unread: unread}, r)
	}
}

// boundedWriter is the http.ResponseWriter of boundWrites.
type boundedWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
	unread     time.Duration
	began      bool // something was written
}

// Write implements http.ResponseWriter.
func (w *boundedWriter) Write(text []byte) (int, error) {
	if !w.began {
		w.began = true
		_ = w.controller.SetWriteDeadline(time.Now().Add(w.unread))
	}
	return w.ResponseWriter.Write(text)
}

// Unwrap returns the writer for http.ResponseController.
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Serve answers HTTP on lis, which it closes, until ctx ends; that is not an error. TLS is nil for
// plain text.
func Serve(ctx context.Context, lis net.Listener, secure *tls.Config, h http.Handler) error {
	if secure != nil {
		lis = tls.NewListener(lis, secure)
	}
	srv := &http.Server{Handler: boundWrites(h, clients.Unread), MaxHeaderBytes: 64 << 10, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	stopped := make(chan struct{})
	ended := context.AfterFunc(ctx, func() {
		defer close(stopped)
		// The context is over; requests under way get some time of their own.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(last) != nil {
			_ = srv.Close()
		}
	})
	err := srv.Serve(lis)
	if ended() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	<-stopped
	return nil
}
