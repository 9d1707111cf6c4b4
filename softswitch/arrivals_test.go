package softswitch

import (
	"testing"

	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// frames collects the reports of frames that leave.
type frames struct{ got []report }

func (f *frames) Send(frame []byte, _ units.Time) { f.got = append(f.got, decode(frame)) }

// TestArrivalsAcrossSwap: frames that went through ingress before a pipeline took over
// leave through the egress of their own pipeline, in order, and it is forgotten then.
func TestArrivalsAcrossSwap(t *testing.T) {
	m, err := tm.New(tm.Config{Queues: 8})
	if err != nil {
		t.Fatal(err)
	}
	out := &frames{}
	c := &core{tm: m, old: map[uint32]*pipeline{}}
	for n := uint32(1); n <= 2; n++ {
		if err := m.AddPort(n, 0); err != nil {
			t.Fatal(err)
		}
		c.ports[n] = &portState{out: out, up: true, info: PortStats{Port: n}}
	}
	a := &arrivals{core: c, batch: port.NewBatch()}
	if a.ingress(0); a.pipeline != nil {
		t.Error("a batch went through ingress without a pipeline")
	}
	c.swap(echo(t, 8).Instance)
	for seq := range uint32(3) {
		a.batch.Add(1, frame(2, 0, seq, 64))
	}
	a.batch.Add(7, frame(2, 0, 9, 64)) // no such port
	a.ingress(1 * us)
	c.swap(echo(t, 8).Instance)
	c.arrive(a, 5*us)
	if len(out.got) != 3 {
		t.Fatalf("%d frames left, want 3", len(out.got))
	}
	for i, r := range out.got {
		if r.seq != uint32(i) || r.port != 2 {
			t.Errorf("frame %d: %+v, want sequence number %d on port 2", i, r, i)
		}
	}
	if len(c.old) != 0 || c.running.Load().held != 0 {
		t.Errorf("%d old pipelines, %d packets held, want none", len(c.old), c.running.Load().held)
	}
	if got := c.ports[1].info.RxFrames; got != 3 || c.stats.UnknownPort != 1 {
		t.Errorf("%d frames in, %d on unknown ports, want 3 and 1", got, c.stats.UnknownPort)
	}
	a.reset()
}
