package session

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestKeepalive: a session ends after ten unanswered heartbeats. Heartbeats that the controller itself sends
// late do not count, and a switch that sends messages is not asked.
func TestKeepalive(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events string // the switch sends a message (w) or answers (a), a heartbeat is due (b) or comes late (l)
		asked  int
		dead   bool
	}{
		{"a switch that is dead", "bbbbbbbbbbb", 1, true},
		{"one beat less", "bbbbbbbbbb", 1, false},
		{"a controller that is late", "bbbbbbbbbbllllllllllll", 1, false},
		{"and then is not", "bbbbbllllllllllllbbbbbb", 1, true},
		{"packets all the time", "wbwbwbwbwbwbwbwbwbwbwbwbwb", 0, false},
		{"packets while no answer comes", "bwbbbbwbbbbbbwbbbbb", 1, false},
		{"and then it dies", "bwbbbbwbbbbbbbbbbbb", 1, true},
		{"late answers", "bbbbbbbbabbbbbbbbbbabbb", 3, false},
		{"an answer, and silence", "babbbbbbbbbbbb", 2, true},
	} {
		var k keepalive
		asked, dead := 0, false
		for _, e := range tt.events {
			switch e {
			case 'w':
				k.heard()
			case 'a':
				k.answered()
			case 'b', 'l':
				late := map[rune]time.Duration{'l': time.Second}[e]
				ask, end := k.tick(late, 3*time.Second)
				if dead = end; ask {
					asked++
				}
			}
		}
		if asked != tt.asked || dead != tt.dead {
			t.Errorf("%s: asked %d times, dead %v; want %d, %v", tt.name, asked, dead, tt.asked, tt.dead)
		}
	}
}

// TestHeard: every message from a switch shows that it is alive.
func TestHeard(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	ses, r, _ := start(t, s, 1)
	r.is(t, Primary)
	c, err := ses.Client()
	if err != nil {
		t.Fatal(err)
	}
	if !c.keepalive.alive.Load() {
		t.Error("not by its word on who is primary")
	}
	if err := c.Push(t.Context(), load(t)); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"a read": func() error {
			_, err := c.Read(t.Context(), pipeline.CloneSession(0))
			return err
		},
		"a write": func() error {
			return c.Write(t.Context(), []*p4v1.Update{{Type: p4v1.Update_INSERT, Entity: pipeline.CloneSession(1, 1)}})
		},
		"a packet": func() error {
			s.PacketIn(&p4v1.PacketIn{Payload: []byte("x")})
			r.until(t, "the packet", func() bool { return len(r.packets) > 0 })
			return nil
		},
	} {
		c.keepalive.alive.Store(false)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if !c.keepalive.alive.Load() {
			t.Errorf("not by %s", what)
		}
	}
}

// TestUserTimeout: the kernel gets the time for which the other end may leave data unacknowledged.
func TestUserTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := dialer{unacknowledged: 9 * time.Second}
	c, err := d.dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ms := 0
	if e := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); e != nil || err != nil || ms != 9000 {
		t.Errorf("%d ms, %v, %v", ms, e, err)
	}
}

// TestUnixSocket: a switch with the address unix:PATH is reached. gRPC passes unix://PATH to the dialer.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "switch")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&dialer{}).dial(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
