package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
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

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// paccFabric is one switch whose port 2 is congested, at 8 Mb/s that stand for 25 Gb/s. The
// weights are large and there is no derivative, so that a queue of 60 KB makes 20 CNPs a
// period of 250 ms; the loop is open, so stability does not matter.
const paccFabric = `
name: pacc
scale: 3125
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:9", target: %s}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1}
  - {name: h3, ipv4: 10.0.3.1}
links:
  - {a: "s1:1", b: h1, rate: 8Mbps}
  - {a: "s1:2", b: h2, rate: 8Mbps}
  - {a: "s1:3", b: h3, rate: 8Mbps}
qos: {classes: [{dscp: 48, class: 6, queue: 6}]}
pacc: {enabled: true, threshold: 20KB, burst: 4KB, beta1: 0.5, beta2: 0, force: true, at: %s}
controller: {poll_interval: "off", probe_interval: "off", resync_interval: 1s}
`

const (
	paccFrame  = 1000 // bytes of every data frame
	paccPeriod = 250 * time.Millisecond
)

func TestPaccEmbedded(t *testing.T) {
	for _, at := range []string{"controller", "switch"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			testPacc(t, s, fmt.Sprintf(paccFabric, config.Embedded, at))
		})
	}
}

func TestPaccBMv2(t *testing.T) {
	needBMv2(t)
	testPacc(t, startBMv2(t), fmt.Sprintf(paccFabric, config.BMv2, config.AtController))
}

// startController has Headgate's controller bring a target in line with a configuration.
func startController(t *testing.T, tg target.Target, yaml string) *controller.Controller {
	t.Helper()
	network, address := tg.Address()
	c, err := controller.New(controller.Options{
		Log:    slog.New(slog.DiscardHandler),
		Settle: time.Minute, // loading the program takes long under the race detector
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
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-c.Started()
	_, results, err := c.Apply(ctx, "pacc.yaml", []byte(yaml))
	if err != nil || results[0].Err != "" {
		t.Fatalf("apply: %v, %+v", err, results)
	}
	return c
}

// paccSource keeps a window of frames in the switch, two of host 1 to one of host 3: each
// that leaves port 2 lets the next one in, so the queue stays as long as the window.
type paccSource struct {
	t      *testing.T
	target target.Target
	frames [][]byte
	n      int
}

func newPaccSource(t *testing.T, tg target.Target) *paccSource {
	t.Helper()
	s := &paccSource{t: t, target: tg}
	for _, from := range []uint32{1, 1, 3} {
		f := newFrame(from, 2)
		f.payload = make([]byte, paccFrame-14-20-8)
		s.frames = append(s.frames, f.bytes(t))
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

// run keeps what is in the switch for as long as it is told.
func (s *paccSource) run(lasting time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		if _, ok := s.target.Receive(2, patience); !ok {
			s.t.Fatal("nothing leaves port 2")
		}
		s.send()
	}
}

// testPacc congests a port and looks at the notifications that come back.
func testPacc(t *testing.T, tg target.Target, yaml string) {
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, tg.Shape(2, target.Shape{PacketsPerSecond: 1000, FrameBytes: paccFrame, Depth: 2000}))
	c := startController(t, tg, yaml)
	src := newPaccSource(t, tg)

	// A queue below Q_burst: the flows are learned, and nobody is notified.
	for range 3 {
		src.send()
	}
	src.run(6 * paccPeriod)
	for _, port := range []uint32{1, 3} {
		if f, ok := tg.Receive(port, 0); ok {
			t.Errorf("with 3 KB in the queue port %d sent %x, want nothing", port, f.Data)
		}
	}

	// Far above Q_th.
	for range 57 {
		src.send()
	}
	src.run(14 * paccPeriod)
	cnps := map[uint32][][]byte{}
	for _, port := range []uint32{1, 3} {
		for f, ok := tg.Receive(port, 0); ok; f, ok = tg.Receive(port, 0) {
			cnps[port] = append(cnps[port], f.Data)
		}
	}
	one, three := len(cnps[1]), len(cnps[3])
	t.Logf("%d CNPs to host 1, %d to host 3 in %v", one, three, 14*paccPeriod)
	// 14 periods of 20 by N_all, shared out two to one and rounded down: 13 and 6. The
	// first periods of the burst may pass before both flows are in the table.
	if one < 80 || one > 14*20 || three < 35 || three > 14*20 {
		t.Errorf("%d and %d CNPs, want about %d and %d", one, three, 14*13, 14*6)
	}
	if ratio := float64(one) / float64(max(three, 1)); ratio < 1.6 || ratio > 2.7 {
		t.Errorf("the flows have congested packets 2:1 and CNPs %d:%d", one, three)
	}
	for port, frames := range cnps {
		for _, b := range frames {
			checkCNP(t, port, b)
		}
	}
	tsharkReadsCNPs(t, cnps)
	if c.Config().PACC.At != config.AtController {
		return
	}
	s := c.Switches()[0].PACC
	if s == nil || s.Flows != 2 || s.Learned != 2 || s.CNPs < uint64(one+three) || s.Ticks < 18 || s.ReadErrors != 0 {
		t.Fatalf("the loop says %+v", s)
	}
	t.Logf("ticks %d, late %d, missed %d, worst %v late", s.Ticks, s.Late, s.Missed, s.WorstLateness)
	// What was learned is not drift.
	if plans, err := c.Plan(context.Background(), "pacc.yaml", []byte(yaml)); err != nil || len(plans[0].Changes) != 0 {
		t.Errorf("the plan of what is: %+v, %v", plans, err)
	}
}

// checkCNP holds a notification to what the destination's NIC would have sent.
func checkCNP(t *testing.T, port uint32, b []byte) {
	t.Helper()
	var n packet.Notification
	if err := n.Decode(b); err != nil { // BECN, the reserved bytes and the ICRC too
		t.Fatalf("port %d: %v: %x", port, err, b)
	}
	want := netip.AddrFrom4([4]byte{10, 0, byte(port), 1})
	if n.FlowSrc != want || n.FlowDst != netip.MustParseAddr("10.0.2.1") || n.DSCP != 48 || n.TTL != 63 {
		t.Fatalf("port %d: %+v, want a CNP from 10.0.2.1 to %v", port, n, want)
	}
}

// tsharkReadsCNPs has Wireshark read the frames: opcode 0x81, then the 16 zero bytes and the
// ICRC, which checkCNP has verified and Wireshark 4.0 shows without a name.
func tsharkReadsCNPs(t *testing.T, cnps map[uint32][][]byte) {
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
			want = append(want, fmt.Sprintf("129|10.0.2.1|10.0.%d.1|1|4791|%x|", port, b[len(b)-20:]))
		}
	}
	must(t, out.Close())
	var errs bytes.Buffer
	cmd := exec.Command(tshark, "-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-E", "occurrence=l",
		"-e", "infiniband.bth.opcode", "-e", "ip.src", "-e", "ip.dst", "-e", "ip.checksum.status", "-e", "udp.dstport", "-e", "infiniband.vendor", "-e", "_ws.malformed")
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	if got := strings.Split(strings.TrimRight(string(text), "\n"), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("tshark reads %q …, want %q …", got[0], want[0])
	}
}
