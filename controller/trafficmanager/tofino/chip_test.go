package tofino_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/lag"
)

// TestChip: one controller and one configuration drive the same features on two programs.
func TestChip(t *testing.T) {
	for chip, cpu := range map[string]uint32{"tofino1": 320, "tofino2": 0} {
		t.Run(chip, func(t *testing.T) {
			t.Parallel()
			testChip(t, newChipRig(t, chip, cpu), cpu)
		})
	}
}

const tmLine = "traffic manager "

func testChip(t *testing.T, r *chipRig, cpu uint32) {
	sub := r.c.Events().Subscribe(events.Options[*pb.Event]{Match: func(e *pb.Event) bool { return strings.HasPrefix(e.Kind, "traffic_manager.") }})
	defer sub.Close()
	lines := r.plan()
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "pipeline → program ") || len(with(lines, tmLine)) == 0 {
		t.Errorf("plan before = %v", lines)
	}
	if n := len(r.bfrt.Writes()); n != 0 {
		t.Errorf("a plan wrote %d rows", n)
	}
	for _, res := range r.apply() {
		if res.Error != "" || res.Inserted == 0 {
			t.Errorf("result = %+v", res)
		}
	}
	have := r.holds()
	for _, want := range []string{
		"ingress.routing.ecmp member 3 → set_next_hop(port=3, src_mac=02:00:00:02:00:03, dst_mac=06:00:0a:00:00:02)",
		"ingress.routing.ipv4_lpm dst_addr=10.0.0.2/32 → member 3",
		"ingress.classify.dscp_to_class dscp=26 → set_class(class=3, queue=3)",
		"egress.maxqd.maxqd_scale default → set_scale(shift=12)",
		fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, cpu),
		"ingress.punt.punt_table ether_type=0x88cc&0xffff priority 10 → punt_to_cpu(reason=2)",
	} {
		if !slices.Contains(have, want) {
			t.Errorf("s2 lacks %s\nit has\n%s", want, strings.Join(have, "\n"))
		}
	}
	for _, prefix := range []string{"egress.ecn.ecn_red ", "ingress.pacc.watched_queue ", "digest "} {
		if len(with(have, prefix)) == 0 {
			t.Errorf("s2 has nothing of %s\n%s", prefix, strings.Join(have, "\n"))
		}
	}
	for _, l := range have {
		if strings.HasPrefix(l, "clone session 10") {
			t.Errorf("s2 has %s: PFC frames are its ports'", l)
		}
	}
	r.chipManaged(8)
	if list, _, err := sub.Next(context.Background()); err != nil || list[0].Subject != "s2" || list[0].Kind != "traffic_manager.applied" {
		t.Errorf("events = %+v, %v", list, err)
	}
	lag.Await(t, "PACC's loop reads its counters", func() bool { // a busy machine may exceed a read's timeout
		s := r.state("s2")
		ticks, ok := testenv.Number(s, "pacc_ticks")
		failed, also := testenv.Number(s, "pacc_read_errors")
		return ok && also && ticks > failed+3
	})
	if lines := r.plan(); len(lines) != 0 {
		t.Errorf("plan of what is = %v", lines)
	}
	r.chipChanges()
	r.chipRestarts()
	r.chipManagerFails()
	r.chipLimits()
	if lines := r.plan(); len(lines) != 0 {
		t.Errorf("plan at the end = %v", lines)
	}
}

// chipManaged checks the traffic manager of s2: PFC for classes on both ports.
func (r *chipRig) chipManaged(classes uint64) {
	r.t.Helper()
	for _, port := range []uint64{1, 3} {
		row := r.bfrt.Row("$PORT", 0, bfrt.Named{Name: "$DEV_PORT", Value: uint64(port)})
		if got := row.Data.Uint("$TX_PFC_EN_MAP"); got != classes {
			r.t.Errorf("port %d sends PFC for the classes %#x, want %#x", port, got, classes)
		}
	}
}

// chipLimits removes the policy and gives each queue a limit.
func (r *chipRig) chipLimits() {
	r.t.Helper()
	r.bfrt.Writes()
	r.edit("policy: sih", `policy: "off"`)
	r.edit("queue_limit: 8MB", "queue_limit: 1MB")
	for _, res := range r.apply() {
		if res.Error != "" {
			r.t.Errorf("result = %+v", res)
		}
	}
	r.chipManaged(0)
	cell := r.bfrt.Row("tm.cfg", 0).Data.Uint("cell_size_bytes")
	limited := 0
	for _, w := range r.bfrt.Writes() {
		if w.Row.Table == "tm.queue.buffer" && w.Row.Data.Uint("pool_max_cells") == 1_000_000/cell {
			limited++
		}
	}
	if want := 2 * 8; limited != want {
		r.t.Errorf("%d queues have the limit, want %d", limited, want)
	}
}

// chipChanges applies another policy and other marking curves.
func (r *chipRig) chipChanges() {
	r.t.Helper()
	marks := with(r.holds(), "egress.ecn.ecn_red ")
	r.bfrt.Writes()
	r.edit("{policy: dsh}", "{alpha: 1/2}")
	r.edit("kmax: 100KB", "kmax: 200KB")
	lines := r.plan()
	if len(with(lines, tmLine)) == 0 || len(with(lines, "egress.ecn.ecn_red ")) == 0 {
		r.t.Errorf("plan of another policy = %v", lines)
	}
	for _, res := range r.apply() {
		if res.Error != "" {
			r.t.Errorf("result = %+v", res)
		}
	}
	if after := with(r.holds(), "egress.ecn.ecn_red "); slices.Equal(after, marks) {
		r.t.Error("the marks did not change")
	}
	rows := map[string]bool{}
	for _, w := range r.bfrt.Writes() {
		rows[w.Row.Name()] = true
	}
	if len(rows) != len(with(lines, tmLine)) {
		r.t.Errorf("%d rows written to the traffic manager, planned were %d:\n%s", len(rows), len(with(lines, tmLine)), strings.Join(with(lines, tmLine), "\n"))
	}
	if lines := r.plan(); len(lines) != 0 {
		r.t.Errorf("plan after the change = %v", lines)
	}
}

// chipRestarts replaces the device by an empty one.
func (r *chipRig) chipRestarts() {
	r.t.Helper()
	want, pushes := r.holds(), r.pushes()
	r.s2.StopGRPC()
	r.becomes("s2", pb.SwitchStatus_STATE_DISCONNECTED)
	r.s2.end()
	r.bfrt.Restart()
	r.s2 = r.start(2, serverPort(r.cpu), r.at)
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	if got := r.holds(); !slices.Equal(got, want) {
		r.t.Errorf("s2 came back with\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := r.pushes(); got != pushes+1 {
		r.t.Errorf("%d pushes, want one more than %d", got, pushes)
	}
	r.chipManaged(8)
}

// chipManagerFails stops the BF Runtime server and changes a row without the controller.
func (r *chipRig) chipManagerFails() {
	r.t.Helper()
	r.bfrt.Fail()
	r.becomes("s2", pb.SwitchStatus_STATE_DEGRADED)
	if s := r.state("s2"); !strings.Contains(s.Error, "traffic manager") || s.Entries == 0 {
		r.t.Errorf("s2 without its traffic manager = %+v", s)
	}
	if lines := r.plan(); len(lines) != 1 || !strings.HasPrefix(lines[0], "unreachable: traffic manager: ") {
		r.t.Errorf("plan without the traffic manager = %v", lines)
	}
	r.bfrt.Restart()
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	r.chipManaged(8)
	key := bfrt.Fields{{Name: "$DEV_PORT", Value: uint64(3)}}
	r.bfrt.Set(bfrt.Row{Table: "$PORT", Pipe: bfrt.AllPipes, Key: key, Data: bfrt.Fields{{Name: "$TX_PFC_EN_MAP", Value: uint64(0)}}})
	lag.Await(r.t, "the row is repaired", func() bool {
		return r.bfrt.Row("$PORT", 0, key...).Data.Uint("$TX_PFC_EN_MAP") == 8
	})
}

// TestChipWithoutDevice: without a device configuration, the controller drives a switch that
// already runs Headgate's program. For another switch it reports what is missing, and drives it
// once another controller has loaded the program.
func TestChipWithoutDevice(t *testing.T) {
	r := newChipRig(t, "tofino1", 320)
	given := r.yaml
	r.edit(fmt.Sprintf(", device_config: %q", r.device), "")
	for _, res := range r.apply() {
		if (res.Error != "") != (res.Name == "s2") {
			t.Errorf("result = %+v", res)
		}
	}
	const missing = "the switch runs no pipeline, and its device_config is not set"
	r.becomes("s2", pb.SwitchStatus_STATE_DEGRADED)
	if s := r.state("s2"); !strings.Contains(s.Error, missing) {
		t.Errorf("s2 = %+v", s)
	}
	if n := len(r.bfrt.Writes()); n != 0 {
		t.Errorf("%d rows written to the traffic manager of a switch that runs something else", n)
	}
	if lines := r.plan(); len(lines) == 0 || !strings.HasPrefix(lines[0], "unreachable: "+missing) {
		t.Errorf("plan = %v", lines)
	}
	with := r.yaml
	r.yaml = given
	r.apply() // done by another controller
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	pushes := r.pushes()
	r.yaml = with
	for _, res := range r.apply() {
		if res.Error != "" {
			t.Errorf("result = %+v", res)
		}
	}
	r.becomes("s2", pb.SwitchStatus_STATE_READY)
	if n := r.pushes() - pushes; n != 0 {
		t.Errorf("%d pushes without a device configuration", n)
	}
	if lines := r.plan(); len(lines) != 0 {
		t.Errorf("plan of what is = %v", lines)
	}
}
