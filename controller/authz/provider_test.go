package authz

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestIssuerIsSlow: an unresponsive issuer delays a caller only until the caller's deadline. Waiting callers share one
// request to it.
func TestIssuerIsSlow(t *testing.T) {
	var asked atomic.Int32
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-answer
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	p := &provider{OIDC: OIDC{Issuer: server.URL}, client: server.Client()}
	waits := make(chan error, 1)
	go func() {
		_, _, err := p.verify(t.Context(), "x.y.z")
		waits <- err
	}()
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := p.verify(ctx, "x.y.z"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another caller: %v", err)
	}
	close(answer)
	if err := <-waits; err == nil || asked.Load() != 1 {
		t.Errorf("%v, and the issuer was asked %d times", err, asked.Load())
	}
}
