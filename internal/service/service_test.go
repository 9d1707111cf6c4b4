package service

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestReady is the other end of the protocol of sd_notify(3).
func TestReady(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "2000")
	var sick atomic.Bool
	asked := make(chan struct{}, 1000)
	Ready(t.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context) error {
		if sick.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-ctx.Done() // as if the loop were stuck
			return ctx.Err()
		}
		return nil
	})
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := receive(t, conn); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}

	// Messages sent before the program was stuck may still arrive; after them nothing does.
	sick.Store(true)
	<-asked
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket + "2", Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket+"2")
	for range 3 {
		<-asked
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Fatalf("a sick program sent %d bytes", n)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	sick.Store(false)
	if got := receive(t, conn); got != "WATCHDOG=1" {
		t.Fatalf("%q, want WATCHDOG=1 from a program that is well again", got)
	}
}

func receive(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestProfile(t *testing.T) {
	for _, bad := range []string{"0.0.0.0:6060", ":6060", "10.0.0.1:80", "6060", "[::]:1"} {
		if err := Profile(t.Context(), bad, nil); err == nil || !strings.Contains(err.Error(), "want HOST:PORT of loopback") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := Profile(t.Context(), "", nil); err != nil {
		t.Error(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	if err := Profile(t.Context(), address, slog.Default()); err != nil {
		t.Skipf("%s is taken by now: %v", address, err)
	}
	for host, want := range map[string]int{address: http.StatusOK, "localhost": http.StatusOK, "[::1]:6060": http.StatusOK, "profiles.example:6060": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("for the host %s: %s, want %d", host, answer.Status, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ format, line, err string }{
		{"text", "level=INFO msg=\"up again\" port=1\n", ""},
		{"json", `{"level":"INFO","msg":"up again","port":1}` + "\n", ""},
		{"xml", "", "want text or json"},
	} {
		var f Format
		if err := f.Set(c.format); c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v", c.format, err)
			}
			continue
		}
		var out bytes.Buffer
		f.Log(&out, slog.LevelInfo).Info("up again", "port", 1)
		if got := regexp.MustCompile(`time=\S+ |"time":"[^"]+",`).ReplaceAllString(out.String(), ""); got != c.line || f.String() != c.format {
			t.Errorf("%s: %q", c.format, got)
		}
	}
}
