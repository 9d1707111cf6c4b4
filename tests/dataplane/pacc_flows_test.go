package dataplane

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// paccTests are the cases of PACC's flow table; each gets a fresh switch.
func paccTests() map[string]func(*rig) {
	return map[string]func(*rig){
		"Counts": testPaccCounts,
		"Learns": testPaccLearns,
		"Ages":   testPaccAges,
		"Off":    testPaccOff,

		"CountsIPv6": ipv6(testPaccCounts),
		"LearnsIPv6": ipv6(testPaccLearns),
		"AgesIPv6":   ipv6(testPaccAges),
	}
}

func TestPaccTableEmbedded(t *testing.T) {
	for name, test := range paccTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			test(newRig(t, s))
		})
	}
}

func TestPaccTableBMv2(t *testing.T) {
	bmv2.Need(t)
	for name, test := range paccTests() {
		t.Run(name, func(t *testing.T) { test(newRig(t, bmv2.Start(t))) })
	}
}

func flowTo(f frame, port uint32) cnpgen.Flow {
	return cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: f.src, Dst: f.dst}, Port: port}
}

func (r *rig) flows() map[cnpgen.Flow]flowCount {
	r.Helper()
	flows, err := flowsOf(r.ctl)
	if err != nil {
		r.Fatal(err)
	}
	return flows
}

// testPaccCounts fills a slow port's queue. All packets of a flow are counted; those that found more than the
// threshold in the queue also count as congested.
func testPaccCounts(r *rig) {
	const threshold, burst = 450, 10
	a, b := r.frame(1, 2), r.frame(3, 2)
	other := r.frame(4, 2)
	other.dscp = 8
	r.write(control.Class(8, 1, 1), control.WatchQueue(2, 0, threshold))
	for _, f := range []frame{a, b, other} {
		r.write(control.LearnFlow(flowTo(f, 2), 0)...)
	}
	// The second flow's packets are all in the queue before six of the first have left, within 0.6 s.
	r.shape(2, target.Shape{PacketsPerSecond: slow / 4, FrameBytes: 100, Depth: 1000})
	r.send(1, repeat(r.T, a, burst, 1)...)
	r.fence()
	r.send(3, repeat(r.T, b, burst, 1)...)
	r.send(4, repeat(r.T, other, burst, 1)...) // another queue
	r.fence()
	r.fence() // BMv2's counters are certain once its ingress has passed a fence
	got := r.flows()
	if len(got) != 3 {
		r.Errorf("%d flows in the tables, want 3: %v", len(got), got)
	}
	n := got[flowTo(a, 2)]
	// Packet i of a finds at most i packets. Five or more are above the threshold, and at most two have left
	// before the last one arrives.
	if n.Packets != burst || n.Bytes != burst*100 || n.Congested > burst-5 || n.Congested < burst-5-2 || n.CgBytes != n.Congested*100 {
		r.Errorf("the first flow counts %+v, want %d packets of 100 B, about %d of them congested", n, burst, burst-5)
	}
	if n := got[flowTo(b, 2)]; n.Packets != burst || n.Congested != burst {
		r.Errorf("the second flow, behind the first, counts %+v, want %d packets, all congested", n, burst)
	}
	if n := got[flowTo(other, 2)]; n.Packets != 0 || n.Congested != 0 {
		r.Errorf("a flow in a queue that is not watched counts %+v, want nothing", n)
	}
	r.receive(2, 3*burst)
	r.noDropsBut()
}

// testPaccLearns sends unknown flows. Each is reported in a digest, and no longer once it is in the table.
func testPaccLearns(r *rig) {
	const flows = 40
	r.write(control.WatchQueue(2, 0, 0))
	r.write(flowDigests(16, 50*time.Millisecond)...)
	var frames [][]byte
	want := map[cnpgen.Flow]bool{}
	for i := range byte(flows) {
		f := r.frame(1, 2)
		f.src = address(1, 100+i)
		if r.six {
			f.src = addressIPv6(1, 100+i)
		}
		want[flowTo(f, 2)] = true
		frames = append(frames, f.bytes(r.T))
	}
	r.send(1, frames...)
	r.send(1, r.frame(1, 3).bytes(r.T)) // to an unwatched port
	r.send(1, make([]byte, 64))         // not IP
	var entries []cnpgen.Flow
	for len(want) > 0 {
		learned, err := learnedOf(r.ctl, patience)
		if err != nil {
			r.Fatalf("%v, with %d flows to come", err, len(want))
		}
		for _, f := range learned {
			if !want[f] {
				r.Errorf("learned %v, which was not sent or has come before", f)
			}
			delete(want, f)
			entries = append(entries, f)
		}
	}
	for _, f := range entries {
		r.write(control.LearnFlow(f, 0)...)
	}
	r.send(1, frames...)
	r.fence()
	if learned, err := learnedOf(r.ctl, 300*time.Millisecond); err == nil {
		r.Errorf("learned %v once more", learned)
	}
	for f, n := range r.flows() {
		if n.Packets != 1 || n.Bytes != 100 {
			r.Errorf("%v counts %+v, want one packet", f, n)
		}
	}
	r.receive(2, 2*flows)
	r.noDropsBut(ids.DropNotIPv4)
}

// testPaccAges stops one of two flows: only that one is reported as idle.
func testPaccAges(r *rig) {
	busy, idle := r.frame(1, 2), r.frame(3, 2)
	r.write(control.WatchQueue(2, 0, 0))
	r.write(control.LearnFlow(flowTo(busy, 2), time.Second)...)
	r.write(control.LearnFlow(flowTo(idle, 2), time.Second)...)
	r.send(3, idle.bytes(r.T))
	stop, sent := time.Now().Add(patience), time.Now()
	for longest := time.Duration(0); ; {
		r.send(1, busy.bytes(r.T))
		longest, sent = max(longest, time.Since(sent)), time.Now()
		aged, err := agedOf(r.ctl, 100*time.Millisecond)
		if err == nil {
			if longest > time.Second/2 {
				r.Skipf("invalid: the machine let %v pass between two packets of a flow that ages in a second", longest)
			}
			if !slices.Equal(aged, []cnpgen.Flow{flowTo(idle, 2)}) {
				r.Errorf("idle are %v, want the flow from port 3 alone", aged)
			}
			return
		}
		if time.Now().After(stop) {
			r.Fatal("the idle flow is never reported")
		}
	}
}

// testPaccOff sends while no queue is watched: nothing is learned and nothing counted.
func testPaccOff(r *rig) {
	f := r.frame(1, 2)
	r.write(flowDigests(1, 0)...)
	r.write(control.LearnFlow(flowTo(f, 2), 0)...)
	r.send(1, f.bytes(r.T), r.frame(3, 2).bytes(r.T))
	r.receive(2, 2)
	if n := r.flows()[flowTo(f, 2)]; n != (flowCount{}) {
		r.Errorf("a flow counts %+v, want nothing", n)
	}
	if learned, err := learnedOf(r.ctl, 300*time.Millisecond); err == nil {
		r.Errorf("learned %v", learned)
	}
}
