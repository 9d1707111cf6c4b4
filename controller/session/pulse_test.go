package session

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestPulse: a switch is given up after three heartbeats in which nothing came from it, however much time
// these take a controller that is late itself; and one that says something is not even asked.
func TestPulse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events string // the switch says something (w), answers (a), a heartbeat is due (b)
		asked  int
		dead   bool
	}{
		{"a switch that is dead", "bbbb", 1, true},
		{"one beat less", "bbb", 1, false},
		{"packets all the time", "wbwbwbwbwbwb", 0, false},
		{"packets while no answer comes", "bwbbwbbbwbbb", 1, false},
		{"and then it dies", "bwbbwbbbwbbbbb", 1, true},
		{"late answers", "bbbabbbbabbb", 3, false},
		{"an answer, and silence", "babbbbb", 2, true},
	} {
		var p pulse
		asked, dead := 0, false
		for _, e := range tt.events {
			switch e {
			case 'w':
				p.hear()
			case 'a':
				p.answer()
			case 'b':
				ask, end := p.beat()
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

// TestHeard: everything that comes from a switch says that it lives.
func TestHeard(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	ses, r, _ := start(t, s, 1)
	r.is(t, Primary)
	c, err := ses.Client()
	if err != nil {
		t.Fatal(err)
	}
	if !c.pulse.heard.Load() {
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
		c.pulse.heard.Store(false)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if !c.pulse.heard.Load() {
			t.Errorf("not by %s", what)
		}
	}
}
