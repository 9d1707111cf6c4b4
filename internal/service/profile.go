package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/internal/clients"
)

// OnLoopback reports whether the host of a request of HTTP, with or without a port, is this machine.
func OnLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ProfileUsage describes the flag --pprof.
const ProfileUsage = "serve Go's profiles (net/http/pprof) on this `HOST:PORT` of loopback"

// Profile serves the process's profiles until ctx ends; an empty address is none. They show memory, so
// only loopback is allowed.
func Profile(ctx context.Context, address string, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || !at.IP.IsLoopback() {
		return fmt.Errorf("--pprof %q: want HOST:PORT of loopback, such as 127.0.0.1:6060", address)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return fmt.Errorf("--pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !OnLoopback(r.Host) { // DNS rebinding: the owner of another name let it point here
			http.Error(w, fmt.Sprintf("the host is %q: want localhost, or an address of loopback", r.Host), http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
	serve(ctx, clients.Limit(l, clients.Options{Name: "pprof", Most: 16, Log: log}), local, log)
	return nil
}

// serve answers HTTP on a listener until ctx ends.
func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("HTTP is not served any more", "address", l.Addr(), "error", err)
		}
	}()
}

// Metrics serves a collector's metrics at /metrics until ctx ends: as OpenMetrics if the client asks for it,
// otherwise as Prometheus' text. It returns the address that it serves. With an empty address it serves
// nothing.
func Metrics(ctx context.Context, address string, c prometheus.Collector, log *slog.Logger) (net.Addr, error) {
	if address == "" {
		return nil, nil
	}
	reg := prometheus.NewRegistry()
	if err := reg.Register(c); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics %q: want HOST:PORT, such as 127.0.0.1:9600: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	}))
	serve(ctx, clients.Limit(l, clients.Options{Name: "metrics", Most: 16, Log: log}), mux, log)
	return l.Addr(), nil
}
