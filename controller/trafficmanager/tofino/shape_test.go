package tofino

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// TestHeadroomCells compares the closed form with a search over all frame sizes.
func TestHeadroomCells(t *testing.T) {
	for _, name := range []string{Tofino1, Tofino2} {
		ch, err := chipOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ least, mtu, bridged units.Bytes }{{64, 1500, 0}, {64, 9000, 16}, {1500, 1500, 0}, {200, 4096, 40}, {64, 64, 0}} {
			worst := uint64(0)
			for n := c.least; n <= c.mtu; n++ {
				// Frames of n bytes that arrive within 60 000 bytes on the wire; the last one may
				// be partial.
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

// TestErrors: the errors for settings that a chip does not support.
func TestErrors(t *testing.T) {
	policy := func(change func(*headroom.Config)) func(*trafficmanager.Config) {
		return func(c *trafficmanager.Config) { change(c.MMU) }
	}
	_, d := serve(t, Tofino1)
	for _, c := range []struct {
		name   string
		change func(*trafficmanager.Config)
		field  string
		text   string
	}{
		{"α too small", policy(func(m *headroom.Config) { m.Alpha = -7 }), "alpha", "the nearest is 1/64"},
		{"α too large", policy(func(m *headroom.Config) { m.Alpha = 3 }), "alpha", "1/64, 1/32, 1/16, 1/8, 1/4, 1/2, 1, 2, 4"},
		{"all memory", policy(func(m *headroom.Config) { m.Buffer = 23 * units.MB }), "buffer", "286720 cells of 80 B"},
		{"cells", policy(func(m *headroom.Config) { m.Policy, m.Alpha, m.Buffer, m.ResumeGap = headroom.SIH, 2, 300_000, 0 }), "buffer", "take whole cells"},
		{"threshold", policy(func(m *headroom.Config) { m.Policy, m.Alpha, m.Buffer, m.ResumeGap = headroom.SIH, -6, 593_600, 0 }), "alpha", "hysteresis"},
		{"policy", policy(func(m *headroom.Config) { m.Policy = "best" }), "policy", "allowed"},
		{"no insurance", policy(func(m *headroom.Config) { m.DSH.NoInsurance, m.AllowLoss = true, true }), "dsh.no_insurance", "false"},
		{"ports", policy(func(m *headroom.Config) { m.Ports = m.Ports[1:] }), "ports", "the same ports"},
		{"port", func(c *trafficmanager.Config) { c.Ports[2].Number = 72 }, "ports[2].number", "pipe (0 to 3)"},
		{"port twice", func(c *trafficmanager.Config) { c.Ports[2] = c.Ports[0] }, "ports[2].number", "of its own"},
		{"pipe", func(c *trafficmanager.Config) { c.Ports[0].Number = 512 }, "ports[0].number", "pipe"},
		{"queues", func(c *trafficmanager.Config) { c.Queues = 9 }, "queues", "0 to 8"},
		{"limit of a cell", func(c *trafficmanager.Config) {
			c.QueueLimits = []trafficmanager.QueueLimit{{Port: 4, Queue: 1, Bytes: 79}}
		}, "queue_limits[0].bytes", "80 B"},
		{"lossless limit", func(c *trafficmanager.Config) {
			c.QueueLimits = []trafficmanager.QueueLimit{{Port: 4, Queue: 3, Bytes: 1000}}
		}, "queue_limits[0].bytes", "lossless"},
		{"limit of no port", func(c *trafficmanager.Config) { c.QueueLimits = []trafficmanager.QueueLimit{{Port: 5, Queue: 1}} }, "queue_limits[0].port", "ports"},
		{"limit twice", func(c *trafficmanager.Config) { c.QueueLimits = []trafficmanager.QueueLimit{{Port: 4}, {Port: 4}} }, "queue_limits[1].queue", "once"},
		{"victim", func(c *trafficmanager.Config) { c.Victims = []uint32{4} }, "victims[0]", "spfc"},
		{"filter", func(c *trafficmanager.Config) { c.Filters = map[string]units.Time{"f": -1} }, "filters[f]", "1ns to 1s"},
		{"groups", func(c *trafficmanager.Config) {
			c.Ports, c.MMU.Ports = nil, nil
			for i := range uint32(17) {
				c.Ports = append(c.Ports, trafficmanager.Port{Number: i})
				c.MMU.Ports = append(c.MMU.Ports, headroom.Port{Rate: units.Gbps})
			}
			c.MMU.Lossless = 0xff
		}, "lossless", "up to 128 priority groups"},
	} {
		want := wanted(mmu(headroom.DSH, 4, 1<<3))
		c.change(want)
		err := d.Check(want)
		var field *units.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want field %s and %q", c.name, err, c.field, c.text)
		}
	}
}

// TestAnyPolicy applies random policies one after another. Each gives either an error that names
// its field, or rows that the checking server accepts and that read back unchanged.
func TestAnyPolicy(t *testing.T) {
	type rig struct {
		*Server
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
		want := anyConfig(r)
		if err := rigs[chip].Check(want); err != nil {
			var field *units.FieldError
			if !errors.As(err, &field) || field.Field == "" || field.Allowed == "" {
				r.Fatalf("%v", err)
			}
			return
		}
		made++
		if _, err := rigs[chip].Apply(within(t), nil, want); err != nil { // which reads back
			r.Fatal(err)
		}
		sums(r, rigs[chip].Server, rigs[chip].chip)
	})
	if made < 20 {
		t.Errorf("only %d policies were valid", made)
	}
}

// sums checks that pools and guarantees fit into the policy's buffer, and that the headroom sums
// are right.
func sums(r *rapid.T, server *Server, ch *chip) {
	total, skid := uint64(0), uint64(0)
	for _, p := range server.Table(tablePool) {
		switch p.Key.Text("pool") {
		case appPool:
			total += p.Data.Uint("size_cells")
		case skidPool:
			skid = p.Data.Uint("size_cells")
		}
	}
	ports := uint64(0)
	for _, p := range server.Table(tablePort) {
		ports += p.Data.Uint("skid_limit_cells")
	}
	if skid != ports {
		r.Fatalf("the pool of headroom has %d cells, its ports %d", skid, ports)
	}
	if total+skid > ch.cells {
		r.Fatalf("%d cells of %d", total+skid, ch.cells)
	}
}

func anyConfig(r *rapid.T) *trafficmanager.Config {
	list := numbers()[:rapid.IntRange(1, 3).Draw(r, "ports")]
	c := &trafficmanager.Config{Queues: rapid.IntRange(0, 8).Draw(r, "queues")}
	for _, n := range list {
		c.Ports = append(c.Ports, trafficmanager.Port{Number: n, Lossy: rapid.SampledFrom([]uint8{0, 0, 1 << 3, 0xff}).Draw(r, "lossy")})
	}
	bytes := func(name string, low, high int) units.Bytes {
		return units.Bytes(rapid.IntRange(low, high).Draw(r, name))
	}
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
	if m.Policy.Victims() {
		for _, n := range list {
			if rapid.Bool().Draw(r, "victim") {
				c.Victims = append(c.Victims, n)
			}
		}
	}
	for q := range 8 {
		if m.Lossless>>q&1 == 0 && rapid.Bool().Draw(r, "limited") {
			c.QueueLimits = append(c.QueueLimits, trafficmanager.QueueLimit{Port: list[0], Queue: q, Bytes: bytes("limit", 200, 500_000)})
		}
	}
	return c
}

// TestWeights: queues with weights share the lowest priority level, and the others keep their order
// above it.
func TestWeights(t *testing.T) {
	server, d := serve(t, Tofino1)
	c := wanted(nil)
	c.Queues, c.Weights = 8, externs.Weights{1: 30, 2: 70}
	apply(t, d, c)
	queue := func(q uint64) bfrt.Row { return server.Row(tableSched, 1, number("pg_id", 15), number("pg_queue", q)) }
	holds(t, queue(0), "min_priority=1 max_priority=1")
	holds(t, queue(1), "min_priority=LOW max_priority=LOW dwrr_weight=30")
	holds(t, queue(2), "min_priority=LOW max_priority=LOW dwrr_weight=70")
	holds(t, queue(3), "min_priority=2 max_priority=2")
	holds(t, queue(7), "min_priority=6 max_priority=6")
}

// TestLossyPorts: a port neither sends nor obeys PFC for its lossy classes and has no group or headroom for them; its
// egress queues keep the packets that other ports got in these classes.
func TestLossyPorts(t *testing.T) {
	server, d := serve(t, Tofino1)
	for _, policy := range []headroom.Kind{headroom.SIH, headroom.DSH} {
		c := wanted(mmu(policy, 4, 1<<3|1<<4))
		c.Ports[1].Lossy, c.Ports[2].Lossy = 1<<4, 1<<3|1<<4
		apply(t, d, c)
		whole := map[headroom.Kind]string{headroom.SIH: "PFC 0x18 2384", headroom.DSH: "PAUSE 0x0 1192"}[policy]
		for port, want := range map[uint32]string{0: whole, 4: "PFC 0x8 1192", 129: "NONE 0x0 0", 188: whole} {
			dev := number("dev_port", uint64(port))
			mac := device(t, server, tableMAC, number("$DEV_PORT", uint64(port)))
			if sends, obeys := mac.Data.Uint("$TX_PFC_EN_MAP"), mac.Data.Uint("$RX_PFC_EN_MAP"); sends != obeys {
				t.Errorf("%s, port %d: sends PFC of %#x, obeys %#x", policy, port, sends, obeys)
			}
			got := fmt.Sprintf("%s %#x %d", device(t, server, tableFlow, dev).Data.Text("mode_tx"), mac.Data.Uint("$RX_PFC_EN_MAP"),
				device(t, server, tablePort, dev).Data.Uint("skid_limit_cells"))
			if got != want {
				t.Errorf("%s, port %d: %s, want %s", policy, port, got, want)
			}
		}
		for _, r := range server.Table(tableGroup) {
			if port := r.Data.Uint("dev_port"); port == 129 && r.Data.Bool("pfc_enable") || port == 4 && classes(r)&(1<<4) != 0 && r.Data.Bool("pfc_enable") {
				t.Errorf("%s: a lossy class has the group %v", policy, r)
			}
		}
		kept := 0
		for _, r := range server.Table(tableEgress) {
			if r.Data.Get("tail_drop_enable") == false {
				kept++
			}
		}
		if kept != 8 {
			t.Errorf("%s: %d queues do not drop, want two of each of four ports", policy, kept)
		}
	}
}
