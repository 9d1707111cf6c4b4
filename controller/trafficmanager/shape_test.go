package trafficmanager

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/internal/bfrttest"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// TestHeadroomCells compares the closed form with all frames there are.
func TestHeadroomCells(t *testing.T) {
	for _, name := range []string{Tofino1, Tofino2} {
		ch, err := chipOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ least, mtu, bridged units.Bytes }{{64, 1500, 0}, {64, 9000, 16}, {1500, 1500, 0}, {200, 4096, 40}, {64, 64, 0}} {
			worst := uint64(0)
			for n := c.least; n <= c.mtu; n++ {
				// Frames of n bytes that come within 60 000 bytes on the wire, the last in part.
				per := uint64((n + c.bridged + ch.cell - 1) / ch.cell)
				wire := uint64(n + framing)
				worst = max(worst, ((60_000+3*framing)*per+wire-1)/wire)
			}
			if got := ch.headroom(60_000, c.least, c.mtu, c.bridged); got != worst {
				t.Errorf("%s %+v: %d cells, want %d", name, c, got, worst)
			}
		}
		if got := ch.headroom(0, 64, 1500, 0); got != 0 {
			t.Errorf("%s: %d cells for nothing", name, got)
		}
	}
}

// TestShares checks the names of dynamic_baf against α/(1+α).
func TestShares(t *testing.T) {
	want := []string{"1/64 1.5%", "1/32 3%", "1/16 6%", "1/8 11%", "1/4 20%", "1/2 33%", "1 50%", "2 66%", "4 80%"}
	for i, w := range want {
		a := leastAlpha + headroom.Alpha(i)
		got, err := share(a)
		if err != nil || a.String()+" "+got != w {
			t.Errorf("%v %s %v, want %s", a, got, err, w)
		}
	}
}

// TestErrors says what a chip cannot do.
func TestErrors(t *testing.T) {
	policy := func(change func(*headroom.Config)) func(*Config) {
		return func(c *Config) { change(c.MMU) }
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		field  string
		text   string
	}{
		{"chip", func(c *Config) { c.Chip = "tofino3" }, "chip", "tofino1 or tofino2"},
		{"α too small", policy(func(m *headroom.Config) { m.Alpha = -7 }), "alpha", "the nearest is 1/64"},
		{"α too large", policy(func(m *headroom.Config) { m.Alpha = 3 }), "alpha", "1/64, 1/32, 1/16, 1/8, 1/4, 1/2, 1, 2, 4"},
		{"all memory", policy(func(m *headroom.Config) { m.Buffer = 23 * units.MB }), "buffer", "286720 cells of 80 B"},
		{"cells", policy(func(m *headroom.Config) { m.Policy, m.Alpha, m.Buffer, m.ResumeGap = headroom.SIH, 2, 300_000, 0 }), "buffer", "take whole cells"},
		{"threshold", policy(func(m *headroom.Config) { m.Policy, m.Alpha, m.Buffer, m.ResumeGap = headroom.SIH, -6, 593_600, 0 }), "alpha", "hysteresis"},
		{"policy", policy(func(m *headroom.Config) { m.Policy = "best" }), "policy", "allowed"},
		{"no insurance", policy(func(m *headroom.Config) { m.DSH.NoInsurance, m.AllowLoss = true, true }), "dsh.no_insurance", "false"},
		{"ports", policy(func(m *headroom.Config) { m.Ports = m.Ports[1:] }), "ports", "the same ports"},
		{"port", func(c *Config) { c.Ports[2].Number = 72 }, "ports[2].number", "pipe (0 to 3)"},
		{"port twice", func(c *Config) { c.Ports[2] = c.Ports[0] }, "ports[2].number", "of its own"},
		{"pipe", func(c *Config) { c.Ports[0].Number = 512 }, "ports[0].number", "pipe"},
		{"queues", func(c *Config) { c.Queues = 9 }, "queues", "0 to 8"},
		{"limit of a cell", func(c *Config) { c.QueueLimits = []QueueLimit{{Port: 4, Queue: 1, Bytes: 79}} }, "queue_limits[0].bytes", "80 B"},
		{"lossless limit", func(c *Config) { c.QueueLimits = []QueueLimit{{Port: 4, Queue: 3, Bytes: 1000}} }, "queue_limits[0].bytes", "lossless"},
		{"limit of no port", func(c *Config) { c.QueueLimits = []QueueLimit{{Port: 5, Queue: 1}} }, "queue_limits[0].port", "ports"},
		{"limit twice", func(c *Config) { c.QueueLimits = []QueueLimit{{Port: 4}, {Port: 4}} }, "queue_limits[1].queue", "once"},
		{"victim", func(c *Config) { c.Victims = []uint32{4} }, "victims[0]", "spfc"},
		{"sample", func(c *Config) { c.MaxQDSample = -1 }, "max_qd_sample", "1ns to 1s"},
		{"frame", func(c *Config) { c.MinFrame = 1501 }, "min_frame", "1500 B"},
		{"bridged", func(c *Config) { c.Bridged = -1 }, "bridged", "80 B"},
		{"groups", func(c *Config) {
			c.Ports, c.MMU.Ports = nil, nil
			for i := range uint32(17) {
				c.Ports = append(c.Ports, Port{Number: i})
				c.MMU.Ports = append(c.MMU.Ports, headroom.Port{Rate: units.Gbps})
			}
			c.MMU.Lossless = 0xff
		}, "lossless", "up to 128 priority groups"},
	} {
		config := config(Tofino1, mmu(headroom.DSH, 4, 1<<3))
		c.change(&config)
		_, err := Shape(config)
		var field *headroom.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want field %s and %q", c.name, err, c.field, c.text)
		}
	}
}

// TestRows is what people see.
func TestRows(t *testing.T) {
	s := shaped(t, config(Tofino1, mmu(headroom.SIH, 4, 1<<3)))
	all := strings.Join(s.Rows(), "\n")
	for _, want := range []string{"tm.ppg.cfg port 188 class 3 → pfc_enable=true, pfc_skid_max_cells=1192", "tm.queue.buffer port 0 queue 7 → default", "mode_tx=PFC"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if s.Groups() != 4 {
		t.Errorf("%d groups", s.Groups())
	}
}

// TestAnyPolicy applies random policies one after another: each is an error that names its
// field, or rows that the checking server takes and that read back as they were meant.
func TestAnyPolicy(t *testing.T) {
	type rig struct {
		*bfrttest.Server
		*Driver
	}
	rigs := map[string]rig{}
	for _, chip := range []string{Tofino1, Tofino2} {
		s, d := serve(t, chip)
		rigs[chip] = rig{s, d}
	}
	made := 0
	rapid.Check(t, func(r *rapid.T) {
		chip := rapid.SampledFrom([]string{Tofino1, Tofino2}).Draw(r, "chip")
		want, err := Shape(anyConfig(r, chip))
		if err != nil {
			var field *headroom.FieldError
			if !errors.As(err, &field) || field.Field == "" || field.Allowed == "" {
				r.Fatalf("%v", err)
			}
			return
		}
		made++
		if _, err := rigs[chip].Apply(within(t), want); err != nil { // which reads back
			r.Fatal(err)
		}
		sums(r, rigs[chip].Server, want)
	})
	if made < 20 {
		t.Errorf("only %d policies were valid", made)
	}
}

// sums makes sure that pools and guarantees fit into the policy's buffer, and that headroom
// adds up.
func sums(r *rapid.T, server *bfrttest.Server, s *Settings) {
	total, skid := uint64(0), uint64(0)
	for _, p := range server.Table(tablePool) {
		switch p.Key.Get("pool").Text() {
		case appPool:
			total += p.Data.Get("size_cells").Uint()
		case skidPool:
			skid = p.Data.Get("size_cells").Uint()
		}
	}
	ports := uint64(0)
	for _, p := range server.Table(tablePort) {
		ports += p.Data.Get("skid_limit_cells").Uint()
	}
	if skid != ports {
		r.Fatalf("the pool of headroom has %d cells, its ports %d", skid, ports)
	}
	if total+skid > s.chip.cells {
		r.Fatalf("%d cells of %d", total+skid, s.chip.cells)
	}
}

func anyConfig(r *rapid.T, chip string) Config {
	list := numbers()[:rapid.IntRange(1, 3).Draw(r, "ports")]
	c := Config{Chip: chip, Queues: rapid.IntRange(0, 8).Draw(r, "queues")}
	for _, n := range list {
		c.Ports = append(c.Ports, Port{Number: n})
	}
	bytes := func(name string, low, high int) units.Bytes {
		return units.Bytes(rapid.IntRange(low, high).Draw(r, name))
	}
	c.MinFrame = rapid.SampledFrom([]units.Bytes{0, 64, 1500, 1024}).Draw(r, "frame")
	c.Bridged = bytes("bridged", 0, 40)
	if rapid.IntRange(0, 9).Draw(r, "on") == 0 {
		return c
	}
	m := &headroom.Config{
		Policy: rapid.SampledFrom(headroom.Kinds()).Draw(r, "policy"), Buffer: bytes("buffer", 1_000_000, 18_000_000),
		Lossless: rapid.Uint8Min(1).Draw(r, "lossless"), MTU: 1500, Private: bytes("private", 0, 6000), LossyPrivate: bytes("lossy", 0, 2000),
		Alpha: headroom.Alpha(rapid.IntRange(-7, 3).Draw(r, "alpha")), Threshold: bytes("threshold", 20_000, 1_500_000),
		ResumeGap: bytes("gap", 0, 6000), PortResumeGap: bytes("port gap", 0, 6000), Share: rapid.IntRange(500, 1000).Draw(r, "share"),
	}
	for range list {
		p := headroom.Port{
			Rate: rapid.SampledFrom([]units.Rate{25 * units.Gbps, 100 * units.Gbps}).Draw(r, "rate"), Delay: units.Time(rapid.IntRange(0, 3).Draw(r, "µs")) * units.Microsecond,
		}
		if rapid.Bool().Draw(r, "own") {
			p.Headroom = bytes("phi", 30_000, 90_000)
		}
		m.Ports = append(m.Ports, p)
	}
	c.MMU = m
	if m.Policy == headroom.SPFC || m.Policy == headroom.DSHSPFC {
		for _, n := range list {
			if rapid.Bool().Draw(r, "victim") {
				c.Victims = append(c.Victims, n)
			}
		}
	}
	for q := range 8 {
		if m.Lossless>>q&1 == 0 && rapid.Bool().Draw(r, "limited") {
			c.QueueLimits = append(c.QueueLimits, QueueLimit{Port: list[0], Queue: q, Bytes: bytes("limit", 200, 500_000)})
		}
	}
	return c
}
