package tofino

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/units"
)

// mmu is a policy for the DSH paper's switch: 16 MB, Φ of 60 KB, α of 1/16.
func mmu(policy headroom.Kind, ports int, lossless uint8) *headroom.Config {
	m := &headroom.Config{
		Policy: policy, Buffer: 16 * units.MB, Lossless: lossless, Private: 3000, Headroom: 60 * units.KB, Alpha: -4,
		Threshold: 1 * units.MB, ResumeGap: 3000,
	}
	for range ports {
		m.Ports = append(m.Ports, headroom.Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
	}
	return m
}

// delayFilter is a filter of the program.
const delayFilter = "egress.maxqd.delay_filter"

// numbers are dev_ports in two pipes.
func numbers() []uint32 { return []uint32{0, 4, 129, 188} }

func wanted(m *headroom.Config) *trafficmanager.Config {
	c := &trafficmanager.Config{MMU: m, Queues: 8, Filters: map[string]units.Time{delayFilter: 10 * units.Microsecond}}
	for _, n := range numbers() {
		c.Ports = append(c.Ports, trafficmanager.Port{Number: n, Rate: 100 * units.Gbps})
	}
	return c
}

func serve(t *testing.T, chip string) (*Server, *Driver) {
	t.Helper()
	program, err := p4src.Tofino(chip)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(t, chip)
	server.Load(program.BFRT)
	d, err := New(Options{Name: "leaf1", Address: server.Addr(), Chip: chip, Schema: program.BFRT})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, d
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// apply writes the configuration c to the chip, and checks that a second plan is empty.
func apply(t *testing.T, d *Driver, c *trafficmanager.Config) int {
	t.Helper()
	n, err := d.Apply(within(t), nil, c)
	if err != nil {
		t.Fatal(err)
	}
	left, err := d.Plan(within(t), c)
	if err != nil || len(left) > 0 {
		t.Fatalf("left to do: %v %v", left, err)
	}
	if again, err := d.Apply(within(t), nil, c); again != 0 || err != nil {
		t.Fatalf("again: %d rows, %v", again, err)
	}
	return n
}

// holds compares fields of a row with the server's.
func holds(t *testing.T, row bfrt.Row, want string) {
	t.Helper()
	for _, field := range strings.Fields(want) {
		name, value, _ := strings.Cut(field, "=")
		if have := row.Data.Get(name); strings.ReplaceAll(fmt.Sprint(have), " ", ",") != value {
			t.Errorf("%s: %s is %v, want %s", row.Name(), name, have, value)
		}
	}
}

// groupOf returns the server's priority group for a port's class.
func groupOf(t *testing.T, s *Server, port uint32, class int) bfrt.Row {
	t.Helper()
	for _, g := range s.Table(tableGroup) {
		if portOf(g) == uint64(port) && classes(g) == 1<<class {
			return g
		}
	}
	t.Fatalf("no group of port %d class %d in %v", port, class, s.Table(tableGroup))
	return bfrt.Row{}
}

func device(t *testing.T, s *Server, table string, key ...bfrt.Named) bfrt.Row {
	t.Helper()
	return s.Row(table, bfrt.AllPipes, key...)
}

// TestDSH is DSH with two lossless classes on Tofino 1, cells of 80 B. The worst frame has 81 B:
// two cells for 101 B on the wire. Headroom: (60 000 + 60) · 2/101 = 1189.3 → 1192 cells (of 8),
// once per port; ρ: 3000/80 = 37.5 → 38; δ: 38 → 40 (of 8). The shared pool is 16 MB/80 = 200 000 −
// 4 · 1192 − 8 · 38 = 194 928. α of 1/16 is 6 %.
func TestDSH(t *testing.T) {
	server, d := serve(t, Tofino1)
	c := wanted(mmu(headroom.DSH, 4, 1<<3|1<<4))
	plan, err := d.Plan(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	if n := apply(t, d, c); n != len(plan) {
		t.Errorf("%d rows written, %d planned", n, len(plan))
	}
	pool := func(name string) bfrt.Row { return device(t, server, tablePool, text("pool", name)) }
	holds(t, pool(skidPool), "size_cells=4768")
	holds(t, pool(appPool), "size_cells=194928")
	for class := range uint64(8) {
		holds(t, device(t, server, tableAppPFC, text("pool", appPool), number("cos", class)), "pfc_limit_cells=194928")
	}
	for _, port := range numbers() {
		holds(t, device(t, server, tablePort, number("dev_port", uint64(port))), "skid_limit_cells=1192")
		holds(t, device(t, server, tableFlow, number("dev_port", uint64(port))), "mode_tx=PAUSE cos_to_icos=[0,1,2,3,4,5,6,7]")
		holds(t, device(t, server, tableMAC, number("$DEV_PORT", uint64(port))), "$TX_PFC_EN_MAP=0 $TX_PAUSE_FRAME_EN=true $RX_PAUSE_FRAME_EN=true")
		holds(t, device(t, server, tableDefault, number("dev_port", uint64(port))), "guaranteed_cells=0 pool_max_cells=1 dynamic_baf=6% icos_2=true icos_3=false icos_4=false")
		for _, class := range []int{3, 4} {
			holds(t, groupOf(t, server, port, class),
				"pfc_enable=true pfc_skid_max_cells=1192 guaranteed_cells=38 hysteresis_cells=40 pool_id=IG_APP_POOL_0 pool_max_cells=1 dynamic_baf=6%")
		}
		holds(t, device(t, server, "pipe."+delayFilter, number("$LPF_INDEX", uint64(port))), "$LPF_SPEC_TYPE=SAMPLE $LPF_SPEC_GAIN_TIME_CONSTANT_NS=10000 $LPF_SPEC_DECAY_TIME_CONSTANT_NS=10000")
	}
	// Queue 3 of port 4 of pipe 1's 60: group 15, the first queue of its port group's first port.
	queue := func(table string, q uint64) bfrt.Row {
		return server.Row(table, 1, number("pg_id", 15), number("pg_queue", q))
	}
	holds(t, queue(tableEgress, 3), "tail_drop_enable=false pool_max_cells=13 dynamic_baf=80%")
	holds(t, queue(tableEgress, 2), "tail_drop_enable=true")
	holds(t, queue(tableQueue, 3), "pfc_cos=3")
	holds(t, queue(tableSched, 7), "min_priority=7 max_priority=7")
	if n := len(server.Table(tableGroup)); n != 8 {
		t.Errorf("%d groups, want 8", n)
	}
}

// TestSPFC is SPFC on Tofino 2, cells of 176 B. The worst frame has 64 B: a cell for 84 B on the
// wire. Headroom: 60 060/84 = 715 → 720 cells (of 8). ρ: 3000/176 = 17.05 → 18; δ: 18 → 24, which
// is below the minimum of 32. The shared pool is 16 MB/176 = 90 909 − 4 · 720 − 4 · 18 = 87 957.
func TestSPFC(t *testing.T) {
	server, d := serve(t, Tofino2)
	c := wanted(mmu(headroom.SPFC, 4, 1<<3))
	c.Victims = []uint32{129}
	c.QueueLimits = []trafficmanager.QueueLimit{{Port: 188, Queue: 1, Bytes: 100 * units.KB}, {Port: 188, Queue: 3, Bytes: 16 * units.MB}}
	apply(t, d, c)
	holds(t, device(t, server, tablePool, text("pool", appPool)), "size_cells=87957")
	holds(t, device(t, server, tablePool, text("pool", skidPool)), "size_cells=2880")
	holds(t, device(t, server, tablePool, text("pool", minPool)), fmt.Sprintf("size_cells=%d", 24576-4*72+4*18))
	holds(t, device(t, server, tableAppPFC, text("pool", appPool), number("cos", 3)), "pfc_limit_cells=87952")
	holds(t, device(t, server, tableChip), "ig_buffer_limit_cells=393216")
	holds(t, device(t, server, tableFlow, number("dev_port", 4)), "mode_tx=PFC")
	holds(t, device(t, server, tableMAC, number("$DEV_PORT", 4)), "$TX_PFC_EN_MAP=8 $RX_PFC_EN_MAP=8 $TX_PAUSE_FRAME_EN=false")
	normal := "pfc_skid_max_cells=720 guaranteed_cells=18 hysteresis_cells=32 pool_max_cells=1 dynamic_baf=6%"
	whole := "pfc_skid_max_cells=720 guaranteed_cells=18 hysteresis_cells=32 pool_max_cells=87957 dynamic_baf=DISABLE"
	holds(t, groupOf(t, server, 4, 3), normal)
	holds(t, groupOf(t, server, 129, 3), whole)
	// 100 000/176 = 568.2 cells; port 188 is local port 60, the fifth of group 7.
	holds(t, server.Row(tableEgress, 1, number("pg_id", 7), number("pg_queue", 4*16+1)), "pool_max_cells=568 dynamic_baf=DISABLE guaranteed_cells=0 tail_drop_enable=true")

	// A change of one port's state changes one row of each table.
	c.Victims = []uint32{4}
	c.QueueLimits = nil
	if n := apply(t, d, c); n != 3 { // two groups, and the queue without its limit
		t.Errorf("%d rows", n)
	}
	holds(t, groupOf(t, server, 4, 3), whole)
	holds(t, groupOf(t, server, 129, 3), normal)
	holds(t, server.Row(tableEgress, 1, number("pg_id", 7), number("pg_queue", 4*16+1)), "pool_max_cells=43 dynamic_baf=80% guaranteed_cells=36")
}

// TestOff: without a policy all settings return to their defaults.
func TestOff(t *testing.T) {
	for _, chip := range []string{Tofino1, Tofino2} {
		server, d := serve(t, chip)
		fresh := map[string][]bfrt.Row{}
		tables := []string{tableChip, tablePool, tableAppPFC, tablePort, tableFlow, tableDefault, tableGroup, tableQueue, tableEgress, tableMAC}
		for _, name := range tables {
			fresh[name] = server.Table(name)
		}
		apply(t, d, wanted(mmu(headroom.DSHSPFC, 4, 1<<3|1<<5)))
		apply(t, d, wanted(nil))
		for _, name := range tables {
			if have, want := fmt.Sprint(server.Table(name)), fmt.Sprint(fresh[name]); have != want {
				t.Errorf("%s: %s\n%s\nwant\n%s", chip, name, have, want)
			}
		}
	}
}

// TestRestart: the server restarts with its defaults.
func TestRestart(t *testing.T) {
	server, d := serve(t, Tofino1)
	c := wanted(mmu(headroom.SIH, 4, 1<<3))
	first := apply(t, d, c)
	server.Stop()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Apply(short, nil, c); err == nil || !strings.Contains(err.Error(), "leaf1") {
		t.Errorf("without a server: %v", err)
	}
	server.Restart()
	if again := apply(t, d, c); again != first {
		t.Errorf("%d rows after a restart, %d at first", again, first)
	}
	holds(t, groupOf(t, server, 188, 3), "pfc_enable=true pfc_skid_max_cells=1192")
}

// TestRefused: the chip refuses a row. The error names the row and its fields, nothing is written
// after it, and the next Apply continues.
func TestRefused(t *testing.T) {
	server, d := serve(t, Tofino1)
	c := wanted(mmu(headroom.DSH, 4, 1<<3))
	server.Hook(func(ch bfrt.Change) error {
		if ch.Row.Table == tableGroup && ch.Row.Data.Bool("pfc_enable") && ch.Row.Pipe == 1 {
			return status.Error(codes.ResourceExhausted, "none left")
		}
		return nil
	})
	n, err := d.Apply(within(t), nil, c)
	var refused bfrt.WriteError
	if !errors.As(err, &refused) || len(refused) != 2 {
		t.Fatalf("%d rows, %v", n, err)
	}
	for _, want := range []string{"switch leaf1", "make groups lossless", "tm.ppg.cfg pipe 1 ppg_id=1", "pfc_enable=true", "ResourceExhausted", "none left"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	for _, ch := range server.Writes() {
		if ch.Row.Table == tableFlow {
			t.Errorf("written after the refusal: %v", ch)
		}
	}
	server.Hook(nil)
	apply(t, d, c)
	if n := len(server.Table(tableGroup)); n != 4 {
		t.Errorf("%d groups, want 4: those of the first try are used", n)
	}
}

// TestForeign: priority groups of another controller: one that is in the way, one that is idle, one
// of another port.
func TestForeign(t *testing.T) {
	server, d := serve(t, Tofino1)
	apply(t, d, wanted(mmu(headroom.SIH, 4, 1<<2|1<<3)))
	c := wanted(mmu(headroom.SIH, 1, 1<<3))
	c.Ports = c.Ports[1:2] // dev_port 4
	server.Set(bfrt.Row{Table: tableGroup, Pipe: 0, Key: groupOf(t, server, 4, 3).Key, Data: bfrt.Fields{flag("icos_6", true)}})
	before := len(server.Table(tableGroup))
	apply(t, d, c)
	holds(t, groupOf(t, server, 4, 3), "pfc_enable=true")
	if after := len(server.Table(tableGroup)); after != before-1 {
		t.Errorf("%d groups, want %d: only those of the port are ours", after, before-1)
	}
}

// TestSuits: the chip is not the configured one, or lacks memory.
func TestSuits(t *testing.T) {
	server, d := serve(t, Tofino1)
	m := mmu(headroom.DSH, 4, 1<<3)
	m.Buffer = 21 * units.MB // 262 500 of 266 240 cells, but other tables need some
	_, err := d.Plan(within(t), wanted(m))
	var field *units.FieldError
	if !errors.As(err, &field) || field.Field != "buffer" || !strings.Contains(field.Allowed, "264780 cells") {
		t.Errorf("21 MB: %v", err)
	}
	server.Set(bfrt.Row{Table: tableChip, Data: bfrt.Fields{number("cell_size_bytes", 176)}})
	if _, err := d.Plan(within(t), wanted(nil)); !errors.As(err, &field) || field.Field != "chip" {
		t.Errorf("another chip: %v", err)
	}
}
