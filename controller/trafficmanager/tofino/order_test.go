package tofino

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// watch checks after each write that lossless packets have their memory. It combines the server's
// rows with the writes so far.
type watch struct {
	t        *testing.T
	fields   map[string]bfrt.Fields
	ports    []uint32
	phi      uint64           // cells in flight after a PAUSE
	lossless map[uint32]uint8 // classes of each port that are lossless throughout
	buffer   uint64           // cells
	bad      int
}

func newWatch(t *testing.T, s *Server, lossless map[uint32]uint8, phi, buffer uint64) *watch {
	w := &watch{t: t, fields: map[string]bfrt.Fields{}, ports: numbers(), phi: phi, lossless: lossless, buffer: buffer}
	for _, table := range []string{tablePool, tablePort, tableFlow, tableGroup, tableMAC, tableDefault} {
		for _, r := range s.Table(table) {
			w.fields[r.Name()] = r.Data
		}
	}
	return w
}

func (w *watch) see(c bfrt.Change) error {
	name := c.Row.Name()
	if c.Operation == bfrt.Delete {
		delete(w.fields, name)
	} else {
		w.fields[name] = defaults(bfrt.Row{Data: w.fields[name]}, c.Row.Data)
	}
	w.check(c)
	return nil
}

func (w *watch) get(table string, key bfrt.Named) bfrt.Fields {
	return w.fields[bfrt.Row{Table: table, Pipe: bfrt.AllPipes, Key: bfrt.Fields{key}}.Name()]
}

func (w *watch) check(c bfrt.Change) {
	fail := func(format string, args ...any) {
		if w.bad++; w.bad < 5 {
			w.t.Errorf("after %v: %s", c, fmt.Sprintf(format, args...))
		}
	}
	pool := w.get(tablePool, text("pool", skidPool)).Uint("size_cells")
	used, needed := w.get(tablePool, text("pool", appPool)).Uint("size_cells")+pool, uint64(0)
	groups := 0
	for _, port := range w.ports {
		at := number("dev_port", uint64(port))
		used += w.get(tableDefault, at).Uint("guaranteed_cells")
		mode := w.get(tableFlow, at).Text("mode_tx")
		mac := w.get(tableMAC, number("$DEV_PORT", uint64(port)))
		n := bits.OnesCount8(w.lossless[port])
		groups -= n
		need := uint64(n) * w.phi
		switch mode {
		case "PFC":
			if uint8(mac.Uint("$TX_PFC_EN_MAP"))&w.lossless[port] != w.lossless[port] {
				fail("port %d: the MAC sends PFC for %v", port, mac.Get("$TX_PFC_EN_MAP"))
			}
		case "PAUSE":
			need = w.phi
			if !mac.Bool("$TX_PAUSE_FRAME_EN") {
				fail("port %d: the MAC sends no PAUSE", port)
			}
		default:
			if n == 0 {
				break
			}
			fail("port %d: mode_tx is %s", port, mode)
		}
		needed += need
		if have := w.get(tablePort, at).Uint("skid_limit_cells"); have < need {
			fail("port %d has %d cells of headroom and needs %d", port, have, need)
		}
	}
	for name, f := range w.fields {
		if !strings.HasPrefix(name, tableGroup+" ") {
			continue
		}
		r := bfrt.Row{Data: f}
		used += f.Uint("guaranteed_cells")
		if classes(r)&w.lossless[uint32(f.Uint("dev_port"))] == 0 {
			continue
		}
		groups++
		if !f.Bool("pfc_enable") || f.Uint("pfc_skid_max_cells") < w.phi {
			fail("%s: lossless %v with %v cells of headroom, needs %d", name, f.Get("pfc_enable"), f.Get("pfc_skid_max_cells"), w.phi)
		}
	}
	if groups != 0 {
		fail("%+d groups of lossless classes", groups)
	}
	if pool < needed {
		fail("the pool of headroom has %d cells and ports need %d", pool, needed)
	}
	if used > w.buffer {
		fail("pools and guarantees have %d cells of %d", used, w.buffer)
	}
}

// TestOrder changes from each policy to each other policy. After every single write, lossless
// packets still have their headroom, and the guarantees do not exceed the memory.
// Class 4 is lossy at port 4 in every other policy, and both classes are lossy at port 129 in all.
func TestOrder(t *testing.T) {
	const lossless = 1<<3 | 1<<4
	kinds := []headroom.Kind{headroom.Static, headroom.SIH, headroom.DSH, headroom.SPFC, headroom.DSHSPFC}
	server, d := serve(t, Tofino1)
	apply(t, d, wanted(mmu(kinds[0], 4, lossless)))
	last, turns := kinds[0], 0
	change := func(to headroom.Kind) {
		w := newWatch(t, server, map[uint32]uint8{0: lossless, 4: 1 << 3, 188: lossless}, 1190, 200_000)
		server.Hook(w.see)
		next := mmu(to, 4, lossless)
		next.Private = 1500 * units.Bytes(len(to)) // each with another guarantee
		c := wanted(next)
		turns++
		c.Ports[1].Lossy, c.Ports[2].Lossy = uint8(turns%2)<<4, lossless
		n, err := d.Apply(within(t), nil, c)
		if err != nil || n == 0 || w.bad > 0 {
			t.Errorf("%s → %s: %d rows, %d faults, %v", last, to, n, w.bad, err)
		}
		last = to
	}
	for i, a := range kinds {
		for _, b := range kinds[i+1:] {
			if last != a {
				change(a)
			}
			change(b)
			change(a)
		}
	}
}

// TestDrain: headroom in use is only reduced after it has drained. If it does not drain, an error
// says so.
func TestDrain(t *testing.T) {
	server, d := serve(t, Tofino1)
	apply(t, d, wanted(mmu(headroom.SIH, 4, 1<<3|1<<4)))
	full := groupOf(t, server, 129, 4)
	use := func(cells uint64) {
		server.Set(bfrt.Row{Table: tableGroupCounter, Pipe: 1, Key: bfrt.Fields{{Name: "ppg_counter_id", Value: full.Data.Get("ppg_counter_id")}}, Data: bfrt.Fields{number(skidUsage, cells)}})
	}
	use(7)
	dsh := wanted(mmu(headroom.DSH, 4, 1<<3|1<<4))
	_, err := d.Apply(within(t), nil, dsh)
	if err == nil || !strings.Contains(err.Error(), skidUsage+" is 7") {
		t.Fatalf("headroom in use: %v", err)
	}
	holds(t, device(t, server, tablePort, number("dev_port", 129)), "skid_limit_cells=2384")
	holds(t, device(t, server, tableFlow, number("dev_port", 129)), "mode_tx=PAUSE")
	timer := time.AfterFunc(50*time.Millisecond, func() { use(0) })
	defer timer.Stop()
	apply(t, d, dsh)
	holds(t, device(t, server, tablePort, number("dev_port", 129)), "skid_limit_cells=1192")
}

// TestTurns: a call ends with its context while it waits for its turn.
func TestTurns(t *testing.T) {
	server, d := serve(t, Tofino1)
	entered, leave := make(chan struct{}), make(chan struct{})
	server.Hook(func(bfrt.Change) error {
		select {
		case entered <- struct{}{}:
			<-leave
		default:
		}
		return nil
	})
	done := make(chan error, 1)
	c := wanted(mmu(headroom.SIH, 4, 1<<3))
	go func() {
		_, err := d.Apply(within(t), nil, c)
		done <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Plan(ctx, c); err == nil {
		t.Error("two at once")
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
