package bmv2

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// kind is the kind of switch.
type kind int

const (
	ours       kind = iota // with its default flags: its ports choose their driver
	oursPacket             // with AF_PACKET
	oursXDP                // with AF_XDP
	oursBusy               // polls for longer than the gap between single packets
	reference
	swx   // DPDK's pipeline
	htsim // and simulators
	ns3
	bridge // the kernel's bridge
)

func (k kind) String() string {
	return [...]string{"embedded", "embedded, afpacket", "embedded, xdp", "embedded, busy", "BMv2", "DPDK's SWX", "htsim", "PrioPlus' ns-3", "kernel's bridge"}[k]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a switch with a program and its entries until the test ends. Both kinds take
// the same flags.
func start(t *testing.T, k kind, p *program, dir string, flags ...string) *bmv2.Process {
	t.Helper()
	s, address := launch(t, k, dir, flags...)
	must(t, s.Explain(configure(s, address, p)))
	return s
}

// launch runs a switch without a program until the test ends.
func launch(t *testing.T, k kind, dir string, flags ...string) (*bmv2.Process, string) {
	t.Helper()
	address, err := bmv2.FreeAddress()
	must(t, err)
	command := []string{*bmv2Path}
	if k != reference {
		command = []string{*headgatePath, "switch"}
	}
	switch k {
	case oursXDP:
		flags = append(flags, "--port-driver", "xdp")
	case oursBusy:
		flags = append(flags, "--busy-poll", "10ms")
	case oursPacket:
		flags = append(flags, "--port-driver", "afpacket")
	}
	s, err := bmv2.Run(bmv2.Options{
		Command: command, Dir: dir, DeviceID: 1, Address: address, Flags: flags,
		Target: []string{"--cpu-port", "510", "--priority-queues", "8"},
	})
	must(t, err)
	t.Cleanup(s.Stop)
	return s, address
}

// dial connects to a switch, as soon as it listens.
func dial(s *bmv2.Process, address string) (*grpc.ClientConn, error) {
	starting, cancel := s.Starting()
	defer cancel()
	// gRPC would connect on a thread outside the test's network namespace.
	c, err := net.Dial("tcp", address)
	for err != nil && starting.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		c, err = net.Dial("tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return c, nil }))
}

// configure pushes the program and writes its entries.
func configure(s *bmv2.Process, address string, p *program) error {
	conn, err := dial(s, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	client, err := control.New(conn, 1)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.PushProgram(p.info, p.json); err != nil {
		return fmt.Errorf("pushing the program: %w", err)
	}
	if err := client.Write(p.entries...); err != nil {
		return fmt.Errorf("writing entries: %w", err)
	}
	return nil
}

// hostEnd and switchEnd are the names of the interfaces of a port's veth pair.
func hostEnd(port int) string   { return fmt.Sprintf("h%d", port) }
func switchEnd(port int) string { return fmt.Sprintf("s%d", port) }

// startBridge uses the kernel's bridge instead of a switch; it sends a program's frames to port 2.
func startBridge(t *testing.T, p *program) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "bridge"
	b := &netlink.Bridge{LinkAttrs: attrs}
	must(t, netlink.LinkAdd(b))
	must(t, netlink.LinkSetUp(b))
	for port := 1; port <= ports; port++ {
		l, err := netlink.LinkByName(switchEnd(port))
		must(t, err)
		must(t, netlink.LinkSetMaster(l, b))
		if port == 2 {
			to := p.frame(rand.New(rand.NewPCG(3, 3)), 1, *size)[:6]
			must(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_NOARP, HardwareAddr: to}))
		}
	}
}

// startVeth runs a switch between veth pairs in a network namespace of the test.
func startVeth(t *testing.T, k kind, p *program) *bmv2.Process {
	t.Helper()
	veth.New(t, ports)
	if k == bridge {
		startBridge(t, p)
		time.Sleep(200 * time.Millisecond)
		return nil
	}
	veth.SetUp(t, "lo", true) // for P4Runtime
	var flags []string
	for port := 1; port <= ports; port++ {
		flags = append(flags, "-i", fmt.Sprintf("%d@%s", port, switchEnd(port)))
	}
	s := start(t, k, p, t.TempDir(), flags...)
	time.Sleep(200 * time.Millisecond)
	return s
}

// cpu returns the processor time of a switch, in user and kernel mode (proc(5)).
func cpu(t *testing.T, s *bmv2.Process) (user, system time.Duration) {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/stat")
	must(t, err)
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	for i, d := range []*time.Duration{&user, &system} {
		n, err := strconv.Atoi(f[11+i])
		must(t, err)
		*d = time.Duration(n) * tick
	}
	return user, system
}
