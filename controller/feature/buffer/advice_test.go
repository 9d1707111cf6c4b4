package buffer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/units"
)

// TestAdvice: the advice that a plan prints beside its entries.
func TestAdvice(t *testing.T) {
	const starved = "buffer.lossy_private is 0: under the policy spfc lossless queues can take all of the shared pool, and then packets of the other classes, such as ACKs and CNPs, are dropped; 3KB for each queue avoid it"
	dsh, spfc := environment(t), environment(t, "policy: dsh", "policy: spfc")
	h, _, _ := Headroom(dsh.Config, dsh.Config.Switch("leaf1"))
	layout, err := h.Layout()
	if err != nil {
		t.Fatal(err)
	}
	f := newFeat(nil)
	if got := f.advise(spfc, nil); !slices.Equal(got, []string{starved}) {
		t.Errorf("a new switch: %q", got)
	}
	if got := f.advise(environment(t, "policy: dsh", "policy: spfc", "private: 3KB", "private: 3KB\n  lossy_private: 3KB"), nil); got != nil {
		t.Errorf("with private buffer: %q", got)
	}
	change := func() string {
		t.Helper()
		got := f.advise(dsh, spfc.Config.Switch("leaf1"))
		if len(got) != 1 {
			t.Fatalf("%d notes: %q", len(got), got)
		}
		return got[0]
	}
	hold := func(polled time.Time, shared, headroom units.Bytes) {
		f.latest.Set("leaf1", &State{Time: polled, Ports: []PortState{
			{Number: 1, Peer: "h1", Shared: [8]uint32{3: uint32(shared)}, Headroom: [8]uint32{3: uint32(headroom)}}, {Number: 2, Peer: "h2"},
		}})
	}
	hold(time.Time{}, 0, 0)
	if got := change(); !strings.HasPrefix(got, "the buffer changes from spfc to dsh: no poll was answered yet") {
		t.Error(got)
	}
	hold(time.Now(), 0, 0)
	if got := change(); !strings.HasSuffix(got, "no queue will be paused") {
		t.Error(got)
	}
	hold(time.Now(), layout.Shared/2, layout.Shared/4)
	if got := change(); !strings.Contains(got, "hold "+(layout.Shared/2+layout.Shared/4-h.Private).String()+" beyond") || !strings.Contains(got, "paused until they have drained: port 1 (h1) class 3 with ") {
		t.Error(got)
	}
	hold(time.Now(), layout.Shared, h.Private+1000)
	if got := change(); !strings.Contains(got, "the threshold 0B") || !strings.HasSuffix(got, "lossy packets are dropped while the pool is full") {
		t.Error(got)
	}
	if got := f.advise(dsh, dsh.Config.Switch("leaf1")); got != nil {
		t.Errorf("nothing changes: %q", got)
	}
	if got := f.advise(environment(t, "policy: dsh", `policy: "off"`), dsh.Config.Switch("leaf1")); got != nil {
		t.Errorf("off: %q", got)
	}
}
