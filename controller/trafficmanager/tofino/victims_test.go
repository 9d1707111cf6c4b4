package tofino_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/lag"
)

// TestChipVictims: SPFC on a chip, from counters of the program and of the MACs to priority
// groups of the traffic manager.
//
// The shared pool is 4 MB minus the headroom; there are no guarantees. Φ is 9012 B, and with the
// three frames without framing 9072 B. On Tofino 1, cells of 80 B, the worst frame has 65 B, with
// 16 B before it 2 cells for 85 B on the wire: 9072 · 2/85 = 213.5 → 216 cells (of 8) of each port,
// and 50 000 − 432 = 49 568. On Tofino 2, cells of 176 B, it has 64 B, a cell for 84 B: 108 → 112
// cells, and 22 727 − 224 = 22 503.
func TestChipVictims(t *testing.T) {
	for chip, c := range map[string]struct {
		cpu    uint32
		policy string
		pool   uint64 // cells of the shared pool
	}{
		"tofino1": {320, "spfc", 48560},
		"tofino2": {0, "dsh+spfc", 21991},
	} {
		t.Run(chip, func(t *testing.T) {
			t.Parallel()
			r := newChipRig(t, chip, c.cpu)
			r.edit("{policy: dsh}", fmt.Sprintf("{policy: %s}", c.policy))
			testVictims(&victimRig{chipRig: r, pool: c.pool})
		})
	}
}

// victimRig drives the counters of ports 1 and 3 of s2.
type victimRig struct {
	*chipRig
	pool     uint64
	departed int64 // of port 1, in bytes
	paused   uint64
}

func testVictims(r *victimRig) {
	t := r.t
	for _, res := range r.apply() {
		if res.Error != "" {
			t.Fatalf("result = %+v", res)
		}
	}
	normal := r.group(1)
	if normal.whole || r.group(3) != normal {
		t.Fatalf("groups at first: %+v, %+v", normal, r.group(3))
	}
	if pool := r.bfrt.Row("tm.pool.cfg", 0, bfrt.Named{Name: "pool", Value: "IG_APP_POOL_0"}).Data.Uint("size_cells"); pool != r.pool {
		t.Fatalf("the shared pool has %d cells, want %d", pool, r.pool)
	}
	whole := share{r.pool, "DISABLE", true}
	becomes := func(what string, want share, each ...func()) {
		t.Helper()
		lag.Await(t, what, func() bool {
			for _, f := range each {
				f()
			}
			return r.group(1) == want
		})
		if got := r.group(3); got != normal {
			t.Errorf("%s: port 3 has %+v", what, got)
		}
	}
	becomes("a victim of what departs", whole, r.depart)
	r.departing(func() {
		lag.Await(t, "no plan, for a victim", func() bool {
			before := r.group(1)
			lines := r.plan()
			return len(lines) == 0 && before == whole && r.group(1) == whole
		})
	})
	becomes("normal once it pauses", normal, r.depart, r.pause)
	becomes("a victim again after RESUME", whole, r.depart)
	becomes("normal when little departs", normal)

	// The chip's driver restarts with its counters at 0. While it is down, pauses are unknown.
	becomes("a victim before the restart", whole, r.depart)
	r.bfrt.Fail()
	r.becomes("s2", pb.SwitchStatus_STATE_DEGRADED)
	lag.Await(t, "no victim that is shown", func() bool {
		s := r.state("s2")
		victim, ok := testenv.Number(s, "pfc_victim", "1", s.Ports[0].Peer)
		return ok && victim == 0
	})
	r.bfrt.Restart()
	r.paused = 0
	becomes("a victim after the restart of the driver", whole, r.depart)
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	r.chipManaged(8)

	// An empty device has no victims.
	r.s2.StopGRPC()
	r.becomes("s2", pb.SwitchStatus_STATE_DISCONNECTED)
	r.s2.end()
	r.s2, r.departed = r.start(2, serverPort(r.cpu), r.at), 0
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	becomes("normal after the restart of the device", normal)
	becomes("a victim of the new device", whole, r.depart)

	// Another policy ends the victim states, and no policy removes the groups.
	r.edit(fmt.Sprintf("{policy: %s}", r.policy()), "{policy: dsh}")
	r.apply()
	if got := r.group(1); got.whole {
		t.Errorf("port 1 under dsh: %+v", got)
	}
	r.edit("{policy: dsh}", `{policy: "off"}`)
	for _, res := range r.apply() {
		if res.Error != "" {
			t.Errorf("result = %+v", res)
		}
	}
	if groups := r.bfrt.Table("tm.ppg.cfg"); len(groups) != 0 {
		t.Errorf("groups without a policy: %v", groups)
	}
	if lines := r.plan(); len(lines) != 0 {
		t.Errorf("plan at the end = %v", lines)
	}
}

// policy returns the policy of s2.
func (r *victimRig) policy() string {
	r.t.Helper()
	cfg, err := config.Parse("fabric.yaml", r.yaml, nil, controller.Sections()...)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(buffer.FromSwitch(cfg.Switch("s2")).Policy)
}

// share is the part of the shared pool that a priority group may use.
type share struct {
	cells   uint64
	dynamic string
	whole   bool // it has the whole pool
}

// group returns the share of the group of a port's class 3.
func (r *victimRig) group(port uint64) share {
	for _, g := range r.bfrt.Table("tm.ppg.cfg") {
		if g.Data.Uint("dev_port") == port && g.Data.Bool("icos_3") {
			s := share{cells: g.Data.Uint("pool_max_cells"), dynamic: g.Data.Text("dynamic_baf")}
			s.whole = s.dynamic == "DISABLE" && s.cells == r.pool
			return s
		}
	}
	return share{}
}

// departing runs f while something departs from port 1.
func (r *victimRig) departing(f func()) {
	conn := r.dial()
	defer conn.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				r.departOver(conn)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	f()
}

// depart makes a megabyte depart from port 1: C/K is 250 kB in a period of 100 ms.
func (r *victimRig) depart() {
	conn := r.dial()
	defer conn.Close()
	r.departOver(conn)
}

func (r *victimRig) dial() *grpc.ClientConn {
	conn, err := grpc.NewClient(r.at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func (r *victimRig) departOver(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.departed += 1_000_000
	// Does the data plane's work; a write needs the primary's election id.
	_, err := p4v1.NewP4RuntimeClient(conn).Write(ctx, &p4v1.WriteRequest{
		DeviceId: 2, ElectionId: &p4v1.Uint128{Low: 1},
		Updates: []*p4v1.Update{{Type: p4v1.Update_MODIFY, Entity: p4rtmsg.Entity(&p4v1.CounterEntry{
			CounterId: ids.CounterIngressDepartures, Index: &p4v1.Index{Index: 1}, Data: &p4v1.CounterData{ByteCount: r.departed},
		})}},
	})
	if err != nil {
		r.t.Error(err)
	}
}

// pause makes the MAC of port 1 pause class 3 for a millisecond.
func (r *victimRig) pause() {
	r.paused += 1000
	r.bfrt.Set(bfrt.Row{
		Table: "$PORT_STAT", Pipe: bfrt.AllPipes, Key: bfrt.Fields{{Name: "$DEV_PORT", Value: uint64(1)}},
		Data: bfrt.Fields{{Name: "$TransmitPri3Pause1USCount", Value: uint64(r.paused)}},
	})
}
