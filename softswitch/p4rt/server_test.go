package p4rt

import (
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/headgate/headgate/internal/clients"
)

// TestKeepalive: a client that pings every 1.1 s without an open call keeps its connection. By default gRPC's
// servers close it after the fourth ping; here the fifth is sent at once.
func TestKeepalive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gs := grpc.NewServer(ServerOptions(clients.Process, nil)...)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	defer func() { gs.Stop(); <-served }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if i < 4 {
			time.Sleep(1100 * time.Millisecond)
		}
		if err := f.WritePing(false, [8]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		for answered := false; !answered; {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("ping %d: %v", i, err)
			}
			switch frame := frame.(type) {
			case *http2.GoAwayFrame:
				t.Fatalf("ping %d: GOAWAY %v %q", i, frame.ErrCode, frame.DebugData())
			case *http2.PingFrame:
				answered = frame.IsAck()
			}
		}
	}
}
