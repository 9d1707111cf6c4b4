package symbolic

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// controllerBytes is the length of the header of a packet-in and a packet-out.
const controllerBytes = 2

// rig is a switch with a program that plays cases one after the other. Each case starts with empty tables and
// removes its entries at the end.
type rig struct {
	testing.TB
	target target.Target
	ctl    *control.Client
	// patience bounds the wait for expected results; quiet and linger bound the wait for unexpected ones.
	patience, quiet, linger time.Duration
	drops                   []int64 // so far, by reason
}

// newRig takes over a target and pushes a program, in BMv2's JSON.
func newRig(t testing.TB, tg target.Target, program []byte) *rig {
	t.Helper()
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	r := &rig{TB: t, target: tg, patience: 5 * time.Second, quiet: 100 * time.Millisecond, linger: 3 * time.Millisecond}
	conn, err := tg.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if r.ctl, err = control.New(conn, target.DeviceID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.ctl.Close)
	info, err := control.P4Info()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ctl.PushProgram(info, program); err != nil {
		t.Fatal(err)
	}
	// The tool's time stands still, so it delays no packet; BMv2 delays them.
	if _, ok := tg.(target.Timed); !ok {
		if err := r.ctl.Write(control.DisableStamping()); err != nil {
			t.Fatal(err)
		}
	}
	if r.drops, err = r.ctl.Counters(ids.CounterDrops); err != nil {
		t.Fatal(err)
	}
	return r
}

// outcome is the result for a frame.
type outcome struct {
	frames []target.Frame // frames from all ports, in order of ports; packet-ins with their header in front
	drops  []string       // reasons
}

func (o outcome) String() string {
	var words []string
	for _, f := range o.frames {
		words = append(words, fmt.Sprintf("port %d: %x", f.Port, f.Data))
	}
	for _, d := range o.drops {
		words = append(words, "dropped: "+d)
	}
	return strings.Join(append(words, ""), "; ")
}

// play puts a case's entries into the switch, sends its frame, and takes the entries out again.
func (r *rig) play(c *testCase) (o outcome, err error) {
	entities, err := c.entities()
	if err != nil {
		return o, err
	}
	var in, out []*p4v1.Update
	for _, e := range entities {
		if te := e.GetTableEntry(); te.GetIsDefaultAction() {
			in = append(in, p4rtmsg.Modify(e))
			out = append(out, p4rtmsg.Modify(&p4v1.TableEntry{TableId: te.TableId, IsDefaultAction: true})) // to the program's own
			continue
		}
		in = append(in, p4rtmsg.Insert(e))
		out = append(out, p4rtmsg.Delete(e))
	}
	slices.Reverse(out)
	if len(in) > 0 {
		if err := r.ctl.Write(in...); err != nil {
			return o, fmt.Errorf("entries: %w", err)
		}
	}
	if err := r.send(c); err != nil {
		return o, err
	}
	patience := r.patience
	if c.quiet() {
		patience = min(patience, r.quiet)
	}
	if o, err = r.await(patience); err == nil && len(out) > 0 {
		err = r.ctl.Write(out...)
	}
	return o, err
}

func (r *rig) send(c *testCase) error {
	frame, err := hex.DecodeString(c.Frame)
	if err != nil {
		return err
	}
	if c.Port != ids.CPUPort {
		return r.target.Send(c.Port, frame)
	}
	if len(frame) < controllerBytes {
		return fmt.Errorf("a packet-out of %d bytes has no header", len(frame))
	}
	h := binary.BigEndian.Uint16(frame)
	return errors.Join(r.ctl.Send(control.PacketOut{Port: uint32(h >> 7), Queue: uint32(h >> 4 & 7), Mode: uint32(h & 15),
		Payload: frame[controllerBytes:]}), r.ctl.Sync())
}

// await collects the results of a frame: the frames that leave, and the drop counter.
func (r *rig) await(patience time.Duration) (o outcome, err error) {
	paused := false
	if _, ok := r.target.(target.Timed); ok {
		paused = true // its clock advances only while we wait for a frame
	}
	for end := time.Now().Add(patience); ; {
		for {
			f, ok := r.target.Receive(target.Any, r.linger)
			if !ok {
				break
			}
			o.frames = append(o.frames, f)
		}
		if paused {
			if err := r.ctl.Sync(); err != nil { // packet-ins come before the answer
				return o, err
			}
		}
		for {
			in, err := r.ctl.Receive(0)
			if errors.Is(err, control.ErrTimeout) {
				break
			}
			if err != nil {
				return o, err
			}
			head := binary.BigEndian.AppendUint16(nil, uint16(in.Port<<7|in.Queue<<4|in.Reason))
			o.frames = append(o.frames, target.Frame{Port: ids.CPUPort, Data: append(head, in.Payload...)})
		}
		now, err := r.ctl.Counters(ids.CounterDrops)
		if err != nil {
			return o, err
		}
		for i, n := range now {
			for range n - r.drops[i] {
				o.drops = append(o.drops, ids.DropReason(i))
			}
		}
		r.drops = now
		if len(o.frames)+len(o.drops) > 0 || time.Now().After(end) {
			slices.SortStableFunc(o.frames, func(a, b target.Frame) int { return int(a.Port) - int(b.Port) })
			return o, nil
		}
	}
}

// quiet says that a frame ends in egress, where nothing counts it.
func (c *testCase) quiet() bool { return c.Out == 0 && c.Drop == "" }

// check compares the result for a frame with the case's, and returns the difference, "" if there is none.
func (c *testCase) check(o outcome) string {
	want := "dropped: " + c.Drop
	if c.Out != 0 {
		want = fmt.Sprintf("port %d: %s", c.Out, c.Want)
	}
	same := false
	switch {
	case c.quiet():
		want = "nothing"
		same = len(o.frames)+len(o.drops) == 0
	case c.Out == 0:
		same = len(o.frames) == 0 && slices.Equal(o.drops, []string{c.Drop})
	case len(o.frames) == 1 && len(o.drops) == 0:
		same = o.frames[0].Port == c.Out && matches(c.Want, hex.EncodeToString(o.frames[0].Data))
	}
	if same {
		return ""
	}
	return fmt.Sprintf("got %v want %s", o, want)
}

// matches compares hexadecimal digits; * matches any.
func matches(want, got string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range len(want) {
		if want[i] != '*' && want[i] != got[i] {
			return false
		}
	}
	return true
}
