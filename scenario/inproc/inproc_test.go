package inproc

import (
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

// TestBuild holds a fabric against its file: wires in the order of links, rates of ports,
// classes of DSCPs, and what Options.Host changed.
func TestBuild(t *testing.T) {
	cfg, err := config.Parse("leaf-spine.yaml", examples.LeafSpine)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Build(cfg, Options{Host: func(c *agent.Config) { c.CNPGap = 7 * units.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Wires) != 2*len(cfg.Links) || len(f.Hosts) != len(cfg.Hosts) {
		t.Fatalf("%d wires and %d hosts, want %d and %d", len(f.Wires), len(f.Hosts), 2*len(cfg.Links), len(cfg.Hosts))
	}
	for i, l := range cfg.Links {
		a, b := f.Wires[2*i], f.Wires[2*i+1]
		if a.From != l.A || a.To != l.B || b.From != l.B || b.To != l.A || a.Rate != l.Rate {
			t.Errorf("link %s is %+v and %+v", l.Name, a, b)
		}
	}
	for _, s := range cfg.Switches {
		if f.Switch(s.Name) == nil {
			t.Errorf("there is no switch %s", s.Name)
		}
	}
	if f.Switch("leaf9") != nil {
		t.Error("there is a switch leaf9")
	}
	c := f.Hosts["h1"].Config()
	if c.CNPGap != 7*units.Millisecond {
		t.Errorf("the hosts' gap is %v, want 7 ms", c.CNPGap)
	}
	if c.Classes[48] != 6 || c.Classes[8] != 0 || len(c.Classes) != 64 {
		t.Errorf("DSCP 48 and 8 are of class %d and %d of %d, want 6 and 0 of 64", c.Classes[48], c.Classes[8], len(c.Classes))
	}
}

func TestTelemetry(t *testing.T) {
	tel := newTelemetry()
	for _, s := range []*pb.TelemetrySample{
		{Switch: "a", Port: 1, Drops: 5, QueueBytes: []uint32{10, 20}},
		{Switch: "a", Port: 2, Drops: 1, QueueBytes: []uint32{0, 40}},
		{Switch: "b", Port: 1, QueueBytes: []uint32{90}},
		{Switch: "a", Port: 1, Drops: 2, QueueBytes: []uint32{10, 20}}, // restarted
	} {
		tel.take(s)
	}
	if n := tel.Drops(); n != 8 {
		t.Errorf("%d drops, want 8: 5 before the restart, 2 after it, 1 of the other port", n)
	}
	if p := tel.Busiest("a"); p == nil || p.Port != 2 || Queued(p) != 40 {
		t.Errorf("the busiest port of a is %v, want 2 with 40 B", p)
	}
	if p := tel.Busiest("c"); p != nil {
		t.Errorf("the busiest port of c is %v, want none", p)
	}
}

func TestLosses(t *testing.T) {
	before := Losses{Queues: 1, Links: 2, Switches: 3}
	after := before
	after.add(Losses{Queues: 4, Pipelines: 1})
	if d := after.Since(before); d != (Losses{Queues: 4, Pipelines: 1}) || !d.Any() {
		t.Errorf("since then %+v was lost", d)
	}
	if (Losses{Retransmits: 3}).Any() {
		t.Error("what was sent again counts as lost")
	}
}
