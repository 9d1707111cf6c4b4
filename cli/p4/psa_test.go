package p4

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/tests/dataplane/embedded"
	frames "github.com/headgate/headgate/tests/dataplane/target"
)

// psaPrograms is the folder of PSA programs, with the output of p4c-bm2-psa for each.
const psaPrograms = "../../softswitch/arch/psa/testdata/"

// forwarding is an embedded switch that forwards frames. BMv2's psa_switch serves only Thrift, so
// headgate p4 cannot talk to it.
type forwarding struct {
	shell
	*embedded.Switch
	*testing.T
}

func newForwarding(t *testing.T, program string) *forwarding {
	t.Helper()
	s, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	_, address := s.Address()
	r := &forwarding{shell{address, frames.DeviceID}, s, t}
	r.must(t, "load", program+".p4info.txtpb", program+".json")
	return r
}

// send sends a frame, given in hexadecimal, to port 1.
func (r *forwarding) send(frame string) {
	r.Helper()
	f, err := hex.DecodeString(strings.ReplaceAll(frame, " ", ""))
	if err != nil {
		r.Fatal(err)
	}
	if err := r.Send(1, append(f, make([]byte, max(0, 20-len(f)))...)); err != nil {
		r.Fatal(err)
	}
}

// receives checks that the next frame that leaves begins with the given bytes.
func (r *forwarding) receives(port uint32, want string) {
	r.Helper()
	f, ok := r.Receive(frames.Any, 10*time.Second)
	if got := hex.EncodeToString(f.Data); !ok || f.Port != port || !strings.HasPrefix(got, strings.ReplaceAll(want, " ", "")) {
		r.Errorf("port %d sends %s, want port %d and %s", f.Port, got, port, want)
	}
}

func (r *forwarding) passes(frame string, port uint32, want string) {
	r.Helper()
	r.send(frame)
	r.receives(port, want)
}

// leaves sends a frame and checks that it leaves once by each of the ports, in any order.
func (r *forwarding) leaves(frame string, want ...uint32) {
	r.Helper()
	r.send(frame)
	var got []uint32
	for range want {
		f, _ := r.Receive(frames.Any, 10*time.Second)
		got = append(got, f.Port)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		r.Errorf("frame %s leaves by ports %d, want %d", frame, got, want)
	}
}

// TestPSA is a shell session with a PSA program. A frame then shows the effect of each entity that
// was written.
func TestPSA(t *testing.T) {
	r := newForwarding(t, psaPrograms+"ways")
	for _, tt := range []struct{ command, want string }{
		{"tables entries", "In.entries  hdr.test.dst ternary 48  In.set_c(c:16)"},
		{"write insert entries dst=0a:00:00:00:00:00&0xff0000000000 priority=7 set_c c=0x1234",
			"insert In.entries hdr.test.dst=0x0a0000000000&0xff0000000000 priority 7 → set_c(c=4660)"},
		{"read entries", "In.entries hdr.test.dst=0x0a0000000000&0xff0000000000 priority 7 → set_c(c=4660)"},
		{"write insert multicast 9 2 3", "insert multicast group 9 → ports 2, 3"},
		{"write insert clone 7 4", "insert clone session 7 → ports 4"},
		{"groups", "multicast group 9 → ports 2, 3"},
		{"groups", "clone session 7 → ports 4"},
		{"write modify register totals 3 40", "In.totals"},
		{"read register totals 3", "value=0x28"},
		{"write modify meter rate 1 cir=1 cburst=1 pir=1 pburst=2", "In.rate"},
		{"read meter rate 1", "cir=1"},
	} {
		if got := r.must(t, strings.Fields(tt.command)...); !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(tt.want), " ")) {
			t.Errorf("%s: printed %q, want %q", tt.command, got, tt.want)
		}
	}
	// The fields of a frame are destination, op, a, b, c, sum, port and path; ways.p4 fills in the last three.
	r.passes("0a0000000001 00 03 0000 0000", 3, "0a0000000001 00 03 0000 1234")
	// Op 6 adds b to register a and counts, op 10 has the colour of meter 1 as b.
	r.passes("000000000001 06 03 0002 0000", 3, "000000000001 06 03 0002 002a")
	r.passes("000000000001 06 03 0001 0000", 3, "000000000001 06 03 0001 002b")
	for _, colour := range []string{"0001", "0002", "0003"} {
		r.passes("000000000001 0a 02 0000 0000", 2, "000000000001 0a 02 "+colour+" 0000")
	}
	if got := r.must(t, "counters", "seen", "3"); !strings.Contains(got, "packets=2") {
		t.Errorf("counters: %q", got)
	}
	// Op 2 sends to group a, op 11 is cloned to session 7 in egress.
	r.leaves("000000000001 02 09 0000 0000", 2, 3)
	r.leaves("000000000001 0b 02 0000 0000", 2, 4)
	r.must(t, "write", "delete", "multicast", "9")
	if got := r.must(t, "groups"); strings.Contains(got, "multicast") {
		t.Errorf("the deleted group is read: %q", got)
	}
}

// TestPSAStream: packet-outs reach ports, watch prints packet-ins and the digests of a PSA program by their names.
func TestPSAStream(t *testing.T) {
	r := newForwarding(t, psaPrograms+"learn")
	const frame = "646464646464 737373737373 88b5 0102"
	r.must(t, "packet-out", "egress_port=5", frame)
	r.receives(5, frame)
	for _, name := range []string{"learn", "alarm"} {
		r.must(t, "write", "insert", "digest", name, "max_list_size=1")
	}
	out := r.watch(t, "--election-id", "2")
	out.expect(t, "primary")
	r.send(frame)
	got := []string{<-out, <-out, <-out}
	for _, want := range []string{"digest  In.learn  src=73:73:73:73:73:73 port=1", "digest  In.alarm  dst=64:64:64:64:64:64", "packet-in  ingress_port=1  20 bytes " + strings.ReplaceAll(frame, " ", "")} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

// TestIdle: watch prints an entry that no packet hits within its idle timeout.
func TestIdle(t *testing.T) {
	r := newForwarding(t, "../../tests/conformance/testdata/learn")
	r.must(t, "write", "insert", "stations", "station=02:00:00:00:00:01", "NoAction", "idle_timeout=200ms")
	out := r.watch(t, "--election-id", "2")
	out.expect(t, "primary")
	out.expect(t, "idle-timeout  ingress.stations station=02:00:00:00:00:01")
}
