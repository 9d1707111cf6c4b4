package dataplane

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/controller/serving/tables"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

// paccFabric is one switch whose port 2 is congested, at 8 Mb/s, which represent 25 Gb/s. The weights are large
// and there is no derivative part, so that a queue of 60 KB causes 20 CNPs in a period of 250 ms. The loop is
// open, so stability does not matter.
const paccFabric = `
name: pacc
scale: 3125
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:9", target: %s}
hosts:
  - {name: h1, ipv4: 10.0.1.1, ipv6: "2001:db8:0:1::1"}
  - {name: h2, ipv4: 10.0.2.1, ipv6: "2001:db8:0:2::1"}
  - {name: h3, ipv4: 10.0.3.1, ipv6: "2001:db8:0:3::1"}
links:
  - {a: "s1:1", b: h1, rate: 8Mbps}
  - {a: "s1:2", b: h2, rate: 8Mbps}
  - {a: "s1:3", b: h3, rate: 8Mbps}
qos: {classes: [{dscp: 48, class: 6, queue: 6}]}
pacc: {enabled: true, ageing: 600s, threshold: 20KB, burst: 4KB, beta1: 0.5, beta2: 0, force: true, at: %s}
controller: {poll_interval: "off", probe_interval: "off", resync_interval: 1s}
`

const (
	paccFrame  = 1000 // bytes of every data frame
	paccPeriod = 250 * time.Millisecond
	paccQP     = 0x12345 // of host 1
)

// acknowledgement is host 2's frame to a queue pair of host 1.
func acknowledgement(t *testing.T, six, shim bool, qp uint32) []byte {
	t.Helper()
	f := frameOf(six, 2, 1)
	f.dscp = 48
	f.dstPort, f.payload = ids.UDPPortRoCE, make([]byte, 12+4+4)
	bth := f.payload
	if shim {
		f.payload = make([]byte, 4+12+4+4)
		f = f.shim(ids.MaxQDVersion, true, 0)
		bth = f.payload[4:]
	}
	bth[0], bth[2], bth[3] = ids.BTHAcknowledge, 0xff, 0xff
	binary.BigEndian.PutUint32(bth[4:], qp)
	return f.bytes(t)
}

func TestPaccEmbedded(t *testing.T) {
	race.SkipRealTime(t)
	for _, at := range []string{"controller", "switch"} {
		for _, six := range []bool{false, true} {
			t.Run(at+map[bool]string{true: "IPv6"}[six], func(t *testing.T) {
				t.Parallel()
				s, err := embedded.Start()
				if err != nil {
					t.Fatal(err)
				}
				testPacc(t, s, fmt.Sprintf(paccFabric, config.Embedded, at), six)
			})
		}
	}
}

func TestPaccBMv2(t *testing.T) {
	bmv2.Need(t)
	for _, six := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[six], func(t *testing.T) {
			testPacc(t, bmv2.Start(t), fmt.Sprintf(paccFabric, config.BMv2, pacc.AtController), six)
		})
	}
}

// startController makes Headgate's controller apply a configuration to a target.
func startController(t *testing.T, tg target.Target, yaml string) *controller.Controller {
	t.Helper()
	network, address := tg.Address()
	c, err := controller.New(controller.Options{
		Log:          slog.New(slog.DiscardHandler),
		ApplyTimeout: time.Minute, // loading the program takes long under the race detector
		Dial: func(config.Switch) ([]grpc.DialOption, error) {
			return []grpc.DialOption{
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, address)
				}),
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, _, err := c.Apply(ctx, "pacc.yaml", []byte(yaml)); err != nil {
		t.Fatalf("apply: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	for deadline := time.Now().Add(time.Minute); c.Switches()[0].State != pb.SwitchStatus_STATE_READY; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %+v", c.Switches()[0])
		}
	}
	return c
}

// paccSource keeps a window of frames in the switch, two of host 1 to one of host 3. Each frame that leaves port
// 2 lets the next one in, so the queue stays as long as the window.
type paccSource struct {
	t      *testing.T
	target target.Target
	frames [][]byte
	n      int
}

func newPaccSource(t *testing.T, tg target.Target, six bool) *paccSource {
	t.Helper()
	s := &paccSource{t: t, target: tg}
	for _, from := range []uint32{1, 1, 3} {
		s.frames = append(s.frames, frameOf(six, from, 2).long(paccFrame).bytes(t))
	}
	return s
}

func (s *paccSource) send() {
	s.t.Helper()
	from := []uint32{1, 1, 3}[s.n%3]
	if err := s.target.Send(from, s.frames[s.n%3]); err != nil {
		s.t.Fatal(err)
	}
	s.n++
}

// run keeps the window in the switch for a time.
func (s *paccSource) run(lasting time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		if _, ok := s.target.Receive(2, patience); !ok {
			s.t.Fatal("nothing leaves port 2")
		}
		s.send()
	}
}

// testPacc congests a port and checks the notifications.
func testPacc(t *testing.T, tg target.Target, yaml string, six bool) {
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, tg.Shape(2, target.Shape{PacketsPerSecond: 1000, FrameBytes: paccFrame, Depth: 2000}))
	c := startController(t, tg, yaml)
	src := newPaccSource(t, tg, six)

	// A queue below Q_burst: the flows are learned, and no host is notified.
	for range 3 {
		src.send()
	}
	src.run(6 * paccPeriod)
	for _, port := range []uint32{1, 3} {
		if f, ok := tg.Receive(port, 0); ok {
			t.Errorf("with 3 KB in the queue port %d sent %x, want nothing", port, f.Data)
		}
	}
	// Host 2 acknowledges a queue pair of host 1, as a NIC and our hosts do, and none of host 3.
	for _, shim := range []bool{false, true} {
		must(t, tg.Send(2, acknowledgement(t, six, shim, paccQP)))
		if _, ok := tg.Receive(1, patience); !ok {
			t.Fatal("the acknowledgement does not arrive")
		}
	}
	for end := time.Now().Add(patience); loopStats(c, tg).QueuePairs != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no queue pair is learned: %+v", loopStats(c, tg))
		}
		src.run(paccPeriod / 8) // keep the flows in the table
	}

	// Far above Q_th.
	for range 57 {
		src.send()
	}
	cnps := map[uint32][][]byte{}
	one, three, ticks := 0, 0, 0
	lag.Try(t, 20*time.Millisecond, func() error {
		before := loopStats(c, tg).Ticks
		src.run(14 * paccPeriod)
		ticks = int(loopStats(c, tg).Ticks - before)
		last := map[uint32]int{1: len(cnps[1]), 3: len(cnps[3])}
		for _, port := range []uint32{1, 3} {
			for f, ok := tg.Receive(port, 0); ok; f, ok = tg.Receive(port, 0) {
				cnps[port] = append(cnps[port], f.Data)
			}
		}
		one, three = len(cnps[1])-last[1], len(cnps[3])-last[3]
		t.Logf("%d CNPs to host 1, %d to host 3 in %d ticks", one, three, ticks)
		// N_all allows 20 per tick, shared 2 : 1 and rounded down: 13 and 6. The first ticks of the burst may
		// come before both flows are in the table, and the last tick's CNPs may still be in flight.
		if least, most := ticks-7, 20*(ticks+1); ticks < 10 || one < 13*least || one > most || three < 6*least || three > most {
			return fmt.Errorf("%d and %d CNPs in %d ticks, want about %d and %d", one, three, ticks, ticks*13, ticks*6)
		}
		if ratio := float64(one) / float64(max(three, 1)); ratio < 1.6 || ratio > 2.7 {
			return fmt.Errorf("the flows have congested packets 2:1 and CNPs %d:%d", one, three)
		}
		return nil
	})
	for port, frames := range cnps {
		for _, b := range frames {
			checkCNP(t, six, port, b)
		}
	}
	tsharkReadsCNPs(t, six, cnps)
	if pacc.FromConfig(c.Config()).At != pacc.AtController {
		return
	}
	shown := func(metric string) float64 {
		n, ok := shownNumber(c.Switches()[0], metric)
		if !ok {
			t.Fatalf("the loop does not show %s", metric)
		}
		return n
	}
	for _, want := range []struct {
		metric    string
		low, high float64
	}{
		{"pacc_flows", 2, 2}, {"pacc_learned_flows", 2, 2}, {"pacc_cnps", float64(len(cnps[1]) + len(cnps[3])), math.Inf(1)},
		{"pacc_ticks", float64(ticks), math.Inf(1)}, {"pacc_read_errors", 0, shown("pacc_ticks") - float64(ticks)}, // late answers
	} {
		if n := shown(want.metric); n < want.low || n > want.high {
			t.Fatalf("the loop shows %s = %v, want %v to %v", want.metric, n, want.low, want.high)
		}
	}
	t.Logf("ticks %v, late %v, missed %v, worst %v s late", shown("pacc_ticks"), shown("pacc_late_ticks"), shown("pacc_missed_ticks"), shown("pacc_lateness_max_seconds"))
	// Learned entries are not reported as drift.
	if plan, err := c.Plan(context.Background(), "pacc.yaml", []byte(yaml), 0); err != nil || len(plan.Switches[0].Changes) != 0 {
		t.Errorf("the plan of what is: %+v, %v", plan, err)
	}
}

// checkCNP compares a notification with the CNP that the destination's NIC would send.
func checkCNP(t *testing.T, six bool, port uint32, b []byte) {
	t.Helper()
	var n packet.Notification
	if err := n.Decode(b); err != nil { // BECN, the reserved bytes and the ICRC too
		t.Fatalf("port %d: %v: %x", port, err, b)
	}
	want, dst := address(port, 1), address(2, 1)
	if n.FlowSrc.Is6() {
		want, dst = addressIPv6(port, 1), addressIPv6(2, 1)
	}
	if n.FlowSrc != want || n.FlowDst != dst || n.FlowSrc.Is6() != six || n.DSCP != 48 || n.TTL != 63 {
		t.Fatalf("port %d: %+v, want a CNP from %v to %v", port, n, dst, want)
	}
	if n.DestQP != queuePairOf(port) {
		t.Fatalf("port %d: a CNP to queue pair %#x, want %#x", port, n.DestQP, queuePairOf(port))
	}
}

// queuePairOf returns the queue pair in a host's notifications, 0 if none was learned.
func queuePairOf(port uint32) uint32 {
	if port == 1 {
		return paccQP
	}
	return 0
}

// tsharkReadsCNPs decodes the frames with Wireshark: opcode 0x81, then the 16 zero bytes and the ICRC, which
// checkCNP has verified and Wireshark 4.0 shows without a name.
func tsharkReadsCNPs(t *testing.T, six bool, cnps map[uint32][][]byte) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Log("tshark is not on the PATH")
		return
	}
	file := filepath.Join(t.TempDir(), "cnps.pcap")
	out, err := os.Create(file)
	must(t, err)
	w := pcapgo.NewWriter(out)
	must(t, w.WriteFileHeader(65536, layers.LinkTypeEthernet))
	var want []string
	for port, frames := range cnps {
		for _, b := range frames {
			must(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(b), Length: len(b)}, b))
			ends := fmt.Sprintf("10.0.2.1|10.0.%d.1|1", port)
			if six {
				ends = fmt.Sprintf("2001:db8:0:2::1|2001:db8:0:%d::1|", port)
			}
			want = append(want, fmt.Sprintf("129|0x%06x|%s|4791|%x|", queuePairOf(port), ends, b[len(b)-20:]))
		}
	}
	must(t, out.Close())
	src, dst := "ip.src", "ip.dst"
	if six {
		src, dst = "ipv6.src", "ipv6.dst"
	}
	var errs bytes.Buffer
	cmd := exec.Command(tshark, "-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-E", "occurrence=l",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", src, "-e", dst, "-e", "ip.checksum.status", "-e", "udp.dstport", "-e", "infiniband.vendor", "-e", "_ws.malformed")
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	if got := strings.Split(strings.TrimRight(string(text), "\n"), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("tshark reads %q …, want %q …", got[0], want[0])
	}
}

// shownNumber returns a switch's value of a metric without keys.
func shownNumber(s *pb.SwitchStatus, metric string) (float64, bool) {
	for _, t := range tables.All {
		for i, c := range t.Columns {
			if rows := t.Rows(s.GetFeatures()); c.GetMetric() == metric && len(rows) > 0 {
				return tables.Number(rows[0].Values[i])
			}
		}
	}
	return 0, false
}
