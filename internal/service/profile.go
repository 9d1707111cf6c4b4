package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

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
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are not served any more", "error", err)
		}
	}()
	return nil
}
