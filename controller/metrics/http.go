package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// HandlerOptions says what is served beside the metrics.
type HandlerOptions struct {
	// Health returns why the controller is not healthy; nil means it always is.
	Health func() error
	// PProf adds /debug/pprof/, which lets anyone who reaches the port profile the process.
	PProf bool
	Log   *slog.Logger // nil: slog.Default
}

// Handler serves /metrics, with Go's and the process's own, and /healthz.
func Handler(c prometheus.Collector, o HandlerOptions) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError, Registry: reg,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if o.Health != nil {
			if err := o.Health(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	if o.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux, nil
}

// Serve answers HTTP on lis, which it closes, until ctx ends; that is not an error.
func Serve(ctx context.Context, lis net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	stopped := make(chan struct{})
	ended := context.AfterFunc(ctx, func() {
		defer close(stopped)
		// The context is over; what runs gets a moment of its own.
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
