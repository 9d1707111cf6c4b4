package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

// station is a test's device at the end of a port's cable. The loop owns it, except the frames.
type station struct {
	out softswitch.Sender
	mu  sync.Mutex
	got [][]byte
}

func (s *station) Attach(out softswitch.Sender) { s.out = out }
func (s *station) SetUp(bool)                   {}
func (s *station) Receive(frame []byte, _ units.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, bytes.Clone(frame))
}

func (s *station) frames() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// desk is an embedded switch with stations at ports 0 to 2, running in real time.
type desk struct {
	loop     *clock.Loop
	stations [3]station
	address  string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{loop: clock.NewLoop()}
	sw, err := softswitch.NewOnLoop(d.loop, softswitch.Config{Name: "s1", CPUPort: 510})
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.stations {
		p, err := sw.AddPort(uint32(i), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := softswitch.Connect(d.loop, 0, p, &d.stations[i]); err != nil {
			t.Fatal(err)
		}
	}
	addr, err := sw.ServeGRPC("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	d.address = addr.String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.loop.RunReal(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		sw.Close()
	})
	return d
}

func (d *desk) send(t *testing.T, station int, frame []byte) {
	t.Helper()
	if err := d.loop.Do(context.Background(), func() { d.stations[station].out.Send(frame, d.loop.Now()) }); err != nil {
		t.Fatal(err)
	}
}

// client runs a program written with p4runtime-go-client, an independent implementation, against the switch, and
// returns its output.
func (d *desk) client(t *testing.T, name string, args ...string) *transcript {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", binary, "github.com/antoninbas/p4runtime-go-client/cmd/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tr := &transcript{}
	c := exec.CommandContext(ctx, binary, append([]string{"-addr", d.address, "-verbose"}, args...)...)
	c.Stdout, c.Stderr = tr, tr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.Wait()
		if t.Failed() {
			t.Log(tr.String())
		}
	})
	return tr
}

// transcript is a process's output, readable while it runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func (t *transcript) has(text string) func() bool {
	return func() bool { return strings.Contains(t.String(), text) }
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	lag.Await(t, what, ok)
}

// ethernet returns a frame between two stations of the given number.
func ethernet(dst, src byte) []byte {
	f := make([]byte, 60)
	f[0], f[5] = 0x02, dst
	f[6], f[11] = 0x02, src
	f[12], f[13] = 0x88, 0xb5 // IEEE 802 local experimental
	return f
}

// l2_switch uses pipeline push, digests with acknowledgement, multicast, a default entry,
// idle timeouts and wildcard counter reads.
func TestPublicL2SwitchClient(t *testing.T) {
	d := newDesk(t)
	said := d.client(t, "l2_switch", "-ports", "0,1,2")
	eventually(t, "the client is done setting up", said.has("Do Ctrl-C to quit"))

	d.send(t, 0, ethernet(9, 1)) // unknown destination: flooded, and station 1 is learned at port 0
	eventually(t, "the frame is flooded", func() bool { return d.stations[1].frames() == 1 && d.stations[2].frames() == 1 })
	eventually(t, "the address is learned", said.has("Learning MAC"))
	eventually(t, "a frame to the learned address goes there alone", func() bool {
		before := d.stations[2].frames()
		at0 := d.stations[0].frames()
		d.send(t, 1, ethernet(1, 2))
		for range 100 {
			if d.stations[0].frames() > at0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		return d.stations[0].frames() > at0 && d.stations[2].frames() == before
	})
	if said.has("level=error")() {
		t.Errorf("the client met an error")
	}
}

// wcmp uses action profile members and groups with weights.
func TestPublicWCMPClient(t *testing.T) {
	d := newDesk(t)
	said := d.client(t, "wcmp")
	eventually(t, "the client installs and deletes its groups", said.has("msg=Done"))
	if said.has("level=error")() || said.has("level=fatal")() {
		t.Errorf("the client met an error")
	}
}
