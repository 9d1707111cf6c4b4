package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/internal/clients"
)

// Metrics serves what a collector has at /metrics, as OpenMetrics to those who ask for it and else as
// Prometheus' text, until ctx ends. It returns the address that it serves; an empty address is none.
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
