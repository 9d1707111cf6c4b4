package session

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/tests/switchtest"
)

func TestBeat(t *testing.T) {
	const every = 300 * time.Millisecond
	a := Beat(time.Now(), every)
	if wait := time.Until(a); wait > every {
		t.Errorf("the next beat comes after %v, want at most %v", wait, every)
	}
	for _, tt := range []struct{ after, want time.Duration }{
		{-1, 0}, {0, every}, {1, every}, {every - 1, every}, {every, 2 * every}, {5*every + 1, 6 * every},
	} {
		if got := Beat(a.Add(tt.after), every); !got.Equal(a.Add(tt.want)) {
			t.Errorf("the beat after %v comes after %v, want %v", tt.after, got.Sub(a), tt.want)
		}
	}
}

// counting counts the bytes that a server reads from its clients.
type counting struct {
	credentials.TransportCredentials
	bytes *atomic.Int64
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counting) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(conn)
	return countedConn{conn, c.bytes}, info, err
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// TestPacketInsAreNotAnswered: the controller writes nothing back to a switch that sends it packets. An idle
// controller gets a probe for each end of each link, so an answer to each would double its system calls.
func TestPacketInsAreNotAnswered(t *testing.T) {
	var bytes atomic.Int64
	s := switchtest.New(t, 1)
	s.Start(grpc.Creds(counting{insecure.NewCredentials(), &bytes}))
	_, r, _ := start(t, s, 1)
	r.is(t, Primary)
	send := func(want int) {
		s.PacketIn(&p4v1.PacketIn{Payload: make([]byte, 60)})
		r.until(t, "a packet", func() bool { return len(r.packets) == want })
	}
	send(1)
	time.Sleep(50 * time.Millisecond) // answers to the first messages arrive
	before := bytes.Load()
	for n := range 10 {
		send(n + 2)
		time.Sleep(5 * time.Millisecond)
	}
	if got := bytes.Load() - before; got != 0 {
		t.Errorf("10 packets were answered with %d bytes, want none", got)
	}
}
