package flowtable

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
)

// Entries read back equal those written, also when P4Runtime leaves out leading zeros.
func TestRoundTrip(t *testing.T) {
	for _, key := range []cnpgen.FlowKey{
		{Src: netip.MustParseAddr("0.0.1.1"), Dst: netip.MustParseAddr("10.0.2.1")},
		{Src: netip.MustParseAddr("::1:2"), Dst: netip.MustParseAddr("2001:db8:2::1")},
	} {
		flow := cnpgen.Flow{FlowKey: key, Port: 7}
		for _, e := range FlowEntries(flow, time.Second) {
			if f, ok := ReadFlow(e); !ok || f != flow {
				t.Errorf("flow %v, %v, want %v", f, ok, flow)
			}
		}
		pair := cnpgen.QueuePair{FlowKey: key, QP: 0x12345}
		if q, ok := ReadQueuePair(QueuePairEntry(pair, time.Second)); !ok || q != pair {
			t.Errorf("queue pair %v, %v, want %v", q, ok, pair)
		}
	}
	watched := Watched{Port: 511, Queue: 7, Threshold: 70_000, Settings: []byte("{}")}
	if w := ReadWatched(watched.Entry()); !reflect.DeepEqual(w, watched) {
		t.Errorf("watched queue %v, want %v", w, watched)
	}
}

// A digest or an entry without one of the members is ignored.
func TestIncomplete(t *testing.T) {
	whole := [][]byte{{1, 1}, {10, 0, 2, 1}, {3}}
	want := cnpgen.FlowKey{Src: netip.MustParseAddr("0.0.1.1"), Dst: netip.MustParseAddr("10.0.2.1")}
	if f, ok := IPv4.ReadFlowDigest(whole); !ok || f != (cnpgen.Flow{FlowKey: want, Port: 3}) {
		t.Errorf("flow %v, %v", f, ok)
	}
	if q, ok := IPv4.ReadQueuePairDigest(whole); !ok || q != (cnpgen.QueuePair{FlowKey: want, QP: 3}) {
		t.Errorf("queue pair %v, %v", q, ok)
	}
	six := [][]byte{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {5}, {3}}
	wantSix := cnpgen.FlowKey{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("::5")}
	if f, ok := IPv6.ReadFlowDigest(six); !ok || f != (cnpgen.Flow{FlowKey: wantSix, Port: 3}) {
		t.Errorf("flow %v, %v", f, ok)
	}
	if _, ok := IPv4.ReadFlowDigest(whole[:2]); ok {
		t.Error("a digest of two members is a flow")
	}
	e := FlowEntries(cnpgen.Flow{FlowKey: want}, 0)[0]
	if _, ok := ReadFlow(&p4v1.TableEntry{Match: e.GetMatch()[1:]}); ok {
		t.Error("an entry without its source is a flow")
	}
}
