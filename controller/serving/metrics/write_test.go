package metrics

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestBoundWrites: the bound is for the client, who must read, and not for the handler, which may compute for longer.
func TestBoundWrites(t *testing.T) {
	const unread = 50 * time.Millisecond
	ended := make(chan error, 1)
	s := httptest.NewServer(boundWrites(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(3 * unread)
			_, _ = io.WriteString(w, "slow")
			return
		}
		for { // more than buffers hold
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	}), unread))
	defer s.Close()
	for range 2 { // on one connection
		r, err := s.Client().Get(s.URL + "/slow")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(text) != "slow" {
			t.Errorf("a handler that computes for longer than the bound answers %q, %v", text, err)
		}
		time.Sleep(2 * unread)
	}
	for _, client := range []struct {
		name string
		read func(net.Conn)
	}{
		{"does not read", func(net.Conn) {}},
		{"reads without end", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go client.read(conn)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("a client that %s holds its handler", client.name)
		}
	}
}
