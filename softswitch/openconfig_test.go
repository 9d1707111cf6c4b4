package softswitch

import (
	"net"
	"testing"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/units"
)

// TestOpenConfig: the leaves show each port's sent and dropped frames and whether its cable works.
func TestOpenConfig(t *testing.T) {
	loop := clock.NewLoop()
	s, p := onLoop(t, loop, "a", 2, 8*units.Mbps)
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	connect(t, loop, 0, h1, p[1])
	cable := connect(t, loop, 0, p[2], h2)
	for i := range uint32(3) {
		h1.send(us, frame(2, 5, i, 100))
	}
	loop.RunUntil(ms)
	all := gnmi.Wants{}
	for _, l := range gnmi.Leaves {
		all[l] = true
	}
	leaves := func() map[gnmi.Value]any {
		states := openConfig{s}.State("any", all)
		if len(states) != 1 || states[0].Target != "any" {
			t.Fatalf("states %v", states)
		}
		of := map[gnmi.Value]any{}
		for _, v := range states[0].Values {
			of[gnmi.Value{Leaf: v.Leaf, Of: v.Of}] = v.Is
		}
		return of
	}
	got := leaves()
	for v, want := range map[gnmi.Value]any{
		{Leaf: gnmi.OperStatus, Of: [2]string{"2"}}:          gnmi.Up,
		{Leaf: gnmi.ID, Of: [2]string{"2"}}:                  uint32(2),
		{Leaf: gnmi.InPkts, Of: [2]string{"1"}}:              uint64(3),
		{Leaf: gnmi.InOctets, Of: [2]string{"1"}}:            uint64(300),
		{Leaf: gnmi.OutPkts, Of: [2]string{"2"}}:             uint64(3),
		{Leaf: gnmi.OutOctets, Of: [2]string{"2"}}:           uint64(300),
		{Leaf: gnmi.OutDiscards, Of: [2]string{"2"}}:         uint64(0),
		{Leaf: gnmi.TransmitPkts, Of: [2]string{"2", "5"}}:   uint64(3),
		{Leaf: gnmi.TransmitOctets, Of: [2]string{"2", "5"}}: uint64(300),
		{Leaf: gnmi.TransmitOctets, Of: [2]string{"2", "0"}}: uint64(0),
		{Leaf: gnmi.QueueLen, Of: [2]string{"2", "5"}}:       uint64(0),
	} {
		if got[v] != want {
			t.Errorf("%v of %v is %v, want %v", v.Leaf, v.Of, got[v], want)
		}
	}
	if n := got[gnmi.Value{Leaf: gnmi.MaxQueueLen, Of: [2]string{"2", "5"}}]; n == uint64(0) || n == nil {
		t.Errorf("the longest queue was %v", n)
	}
	cable.SetUp(false)
	h1.send(2*ms, frame(2, 5, 9, 100))
	loop.RunUntil(3 * ms)
	if few := (openConfig{s}).State("any", gnmi.Wants{gnmi.OperStatus: true})[0].Values; len(few) != 2 {
		t.Errorf("of two ports' status %v", few)
	}
	got = leaves()
	if oper, lost := got[gnmi.Value{Leaf: gnmi.OperStatus, Of: [2]string{"2"}}], got[gnmi.Value{Leaf: gnmi.OutDiscards, Of: [2]string{"2"}}]; oper != gnmi.Down || lost != uint64(1) {
		t.Errorf("without its cable the port is %v and lost %v, want DOWN and 1", oper, lost)
	}
}

// TestLargestFrames: the largest frame of an interface is its MTU and an Ethernet header.
func TestLargestFrames(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip("no loopback interface: ", err)
	}
	if got, want := largestFrames()["lo"], uint32(min(lo.MTU+14, 65535)); got != want {
		t.Errorf("lo takes frames of %d B, want %d", got, want)
	}
}
