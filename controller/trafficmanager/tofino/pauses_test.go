package tofino

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// TestPauses reads the MACs' counters, also while another call has its turn.
func TestPauses(t *testing.T) {
	for _, chip := range []string{Tofino1, Tofino2} {
		server, d := serve(t, chip)
		set := func(port uint64, data ...bfrt.Named) {
			server.Set(bfrt.Row{Table: tablePauses, Pipe: bfrt.AllPipes, Key: bfrt.Fields{number("$DEV_PORT", port)}, Data: data})
		}
		set(4, number("$TransmitPri3Pause1USCount", 1500), number("$FramesTransmittedPriPause", 7))
		set(188, number("$FramesTransmittedPause", 9))
		set(129, number("$TransmitPri3Pause1USCount", 1))
		d.working <- struct{}{}
		got, err := d.Pauses(within(t), []uint32{188, 4})
		<-d.working
		if err != nil {
			t.Fatal(err)
		}
		want := trafficmanager.PauseCounters{Frames: 7}
		want.Time[3] = 1500 * time.Microsecond
		if len(got) != 2 || got[4] != want || got[188] != (trafficmanager.PauseCounters{PortFrames: 9}) {
			t.Errorf("%s: %+v", chip, got)
		}
		if _, err := d.Pauses(within(t), []uint32{4, 127}); err == nil || !strings.Contains(err.Error(), "$PORT_STAT $DEV_PORT=127") || len(server.Refused()) != 1 {
			t.Errorf("%s: a port that is not there: %v", chip, err)
		}
		// The read bypasses the driver's copy, and nothing writes the counters.
		key := bfrt.Fields{number("$DEV_PORT", 4)}
		old, err := d.client.Read(within(t), bfrt.Row{Table: tablePauses, Pipe: bfrt.AllPipes, Key: key})
		if err != nil || old[0].Data.Uint(pauseTime(3)) != 0 {
			t.Errorf("%s: the driver remembers %v, %v", chip, old, err)
		}
		row := bfrt.Row{Table: tablePauses, Pipe: bfrt.AllPipes, Key: key, Data: bfrt.Fields{number(pfcFrames, 0)}}
		if err := d.client.Write(within(t), []bfrt.Change{{Operation: bfrt.Modify, Row: row}}); err == nil || !strings.Contains(err.Error(), "operation") {
			t.Errorf("%s: a counter was written: %v", chip, err)
		}
		server.Stop()
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := d.Pauses(short, []uint32{4}); err == nil || !strings.Contains(err.Error(), "leaf1") {
			t.Errorf("%s: without a server: %v", chip, err)
		}
		cancel()
	}
}

// TestVictimsAlone: a change that only concerns victims reads only the groups, unless other rows
// differ from the last write.
func TestVictimsAlone(t *testing.T) {
	server, d := serve(t, Tofino1)
	normal := wanted(mmu("spfc", 4, 1<<3))
	shape := func(victims ...uint32) *trafficmanager.Config {
		s, err := normal.WithVictims(victims)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(what string, from, s *trafficmanager.Config, rows int) {
		t.Helper()
		if n, err := d.Apply(within(t), from, s); n != rows || err != nil {
			t.Errorf("%s: %d rows, %v; want %d", what, n, err, rows)
		}
	}
	all, err := d.Apply(within(t), nil, normal)
	if err != nil {
		t.Fatal(err)
	}
	key := bfrt.Fields{number("$DEV_PORT", 4)}
	server.Set(bfrt.Row{Table: tableMAC, Key: key, Data: bfrt.Fields{number("$TX_PFC_EN_MAP", 0)}})
	two, one := shape(4, 129), shape(129)
	write("victims", normal, two, 2)
	write("one of them", two, one, 1)
	holds(t, groupOf(t, server, 4, 3), "pool_max_cells=1 dynamic_baf=6%")
	holds(t, groupOf(t, server, 129, 3), "dynamic_baf=DISABLE")
	holds(t, device(t, server, tableMAC, key...), "$TX_PFC_EN_MAP=0")
	write("the same, from what is not known", nil, one, 1)
	holds(t, device(t, server, tableMAC, key...), "$TX_PFC_EN_MAP=8")

	server.Set(bfrt.Row{Table: tableGroup, Pipe: 0, Key: groupOf(t, server, 4, 3).Key, Data: bfrt.Fields{number("guaranteed_cells", 0)}})
	server.Set(bfrt.Row{Table: tableMAC, Key: key, Data: bfrt.Fields{number("$TX_PFC_EN_MAP", 0)}})
	write("a group and a port that somebody changed", one, normal, 3)
	server.Restart()
	write("after a restart", normal, shape(188), all)
	off := wanted(nil)
	if n, err := d.Apply(within(t), shape(188), off); n < 5 || err != nil {
		t.Errorf("another policy: %d rows, %v", n, err)
	}
	if left, err := d.Plan(within(t), off); len(left) > 0 || err != nil {
		t.Errorf("left to do after another policy: %v, %v", left, err)
	}
}
