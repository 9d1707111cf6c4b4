package observed

import (
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate/cnpgen"
)

// TestCounted: the bytes of a pair in consecutive readings are one burst. Bursts that begin within Together are a
// fan-in.
func TestCounted(t *testing.T) {
	pair := func(n, m byte) cnpgen.FlowKey {
		return cnpgen.FlowKey{Src: netip.AddrFrom4([4]byte{10, 0, 0, n}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, m})}
	}
	type sent = map[cnpgen.FlowKey]uint64
	table := Table{Together: 100 * time.Millisecond}
	for i, step := range []struct {
		sent sent
		want string
	}{
		{sent{pair(1, 9): 1000}, ""}, // sent over an unknown time
		{sent{pair(1, 9): 500}, "10.0.0.1→10.0.0.9 0 B, 0 begun, 0 ended with 0 B, 0 at most, 1 run; "}, // it may have begun earlier
		{sent{pair(1, 9): 500, pair(2, 9): 10}, "10.0.0.1→10.0.0.9 500 B, 0 begun, 0 ended with 0 B, 0 at most, 1 run; 10.0.0.2→10.0.0.9 10 B, 1 begun, 0 ended with 0 B, 0 at most, 1 run; "},
		{sent{pair(3, 9): 20}, "10.0.0.1→10.0.0.9 500 B, 0 begun, 1 ended with 1000 B, 1000 at most, 0 run; 10.0.0.2→10.0.0.9 10 B, 1 begun, 1 ended with 10 B, 10 at most, 0 run; " +
			"10.0.0.3→10.0.0.9 20 B, 1 begun, 0 ended with 0 B, 0 at most, 1 run; 2 to 10.0.0.9; "},
		{sent{}, "10.0.0.1→10.0.0.9 500 B, 0 begun, 1 ended with 1000 B, 1000 at most, 0 run; 10.0.0.2→10.0.0.9 10 B, 1 begun, 1 ended with 10 B, 10 at most, 0 run; " +
			"10.0.0.3→10.0.0.9 20 B, 1 begun, 1 ended with 20 B, 20 at most, 0 run; 2 to 10.0.0.9; "},
	} {
		table.Counted(begin.Add(time.Duration(i)*100*time.Millisecond), step.sent)
		if got := text(table.Traffic()); got != step.want {
			t.Errorf("reading %d: %s, want %s", i, got, step.want)
		}
	}
	for i := 5; i < 8; i++ { // 500 B in each 100 ms
		table.Counted(begin.Add(time.Duration(i)*100*time.Millisecond), sent{pair(2, 8): 500})
	}
	all := table.Traffic()
	got := all.Source("h2", []netip.Addr{netip.MustParseAddr("10.0.0.2")}, "leaf1")
	if len(got.Pairs) != 2 || got.Pairs[0].RunningBytes != 1500 || got.Pairs[0].RunningRate != 5000 || got.FanIn != 0 || got.Since != begin {
		t.Errorf("%+v", got)
	}
	if got := all.Source("h9", []netip.Addr{netip.MustParseAddr("10.0.0.9")}, "leaf1"); got.FanIn != 2 || len(got.Pairs) != 0 {
		t.Errorf("%+v", got)
	}
}
