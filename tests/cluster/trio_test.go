package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/tests/switchtest"
)

// members is the number of controllers.
const members = 3

// trio is a cluster of controller processes, with two switches in this process.
type trio struct {
	t      *testing.T
	dir    string
	spaces []string // of the members; nil: they use loopback
	disks  bool     // each state folder is on its own disk
	nodes  [members]*node
	given  []string // by port
	yaml   string   // %d is the limit of a queue in KB

	mu     sync.Mutex
	writes []write // that a switch accepted
}

// write is a write that a switch accepted.
type write struct {
	at         string
	term       uint64
	begin, end time.Time
}

// node is a member's process.
type node struct {
	name, state, socket string
	conn                *grpc.ClientConn
	cmd                 *exec.Cmd
	done                chan struct{}
	log                 bytes.Buffer // of the process; readable after it has ended
	ahead               bool         // it runs with an uptime that is an hour longer
	tap                 string       // it runs under a kernel of its own, which others reach by this; "" for none
}

// newTrio starts a cluster: on loopback, or, as root, in namespaces of their own with certificates. A member
// named in guests has a kernel instead of a namespace.
func newTrio(t *testing.T, namespaces bool, guests ...string) *trio {
	t.Helper()
	c := &trio{t: t, dir: t.TempDir(), disks: namespaces}
	for i := range c.nodes {
		n := &node{name: fmt.Sprintf("c%d", i+1)}
		n.socket, n.state = filepath.Join(c.dir, n.name+".sock"), filepath.Join(c.dir, n.name)
		if slices.Contains(guests, n.name) {
			n.tap = fmt.Sprintf("ha%d-%s", os.Getpid()%100000, n.name)
		}
		c.nodes[i] = n
	}
	addresses, here, tls := []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, "127.0.0.1:0", ""
	if namespaces {
		addresses, here = c.network()
		a := testcert.New(t, c.dir)
		for _, ip := range addresses {
			a.IPs = append(a.IPs, net.ParseIP(ip))
		}
		a.Issue(t, "member", "member")
		tls = ", tls: {ca: ca.pem, cert: member.pem, key: member.key}"
	}
	var list, switches, links []string
	for i := range 2 {
		s := switchtest.NewAt(t, uint64(i+1), here)
		s.Start(grpc.ChainUnaryInterceptor(c.watch(fmt.Sprintf("s%d", i+1))))
		switches = append(switches, fmt.Sprintf(`{name: s%d, device_id: %d, address: %q, target: embedded}`, i+1, i+1, s.Address()))
		links = append(links, fmt.Sprintf(`{a: "s%d:1", b: h%d, rate: 10Mbps}`, i+1, i+1))
	}
	for i, n := range c.nodes {
		list = append(list, fmt.Sprintf("{name: %s, raft: %q, relay: %q}", n.name, c.port(addresses[i], 1+2*i), c.port(addresses[i], 2+2*i)))
		if c.disks {
			c.disk(n)
		}
		target, creds := "unix:"+n.socket, local.NewCredentials()
		if n.tap != "" {
			target, creds = fmt.Sprintf("passthrough:///%s:%d", addresses[i], guestAPI), insecure.NewCredentials()
		}
		var err error
		if n.conn, err = grpc.NewClient(target, grpc.WithTransportCredentials(creds)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.conn.Close() })
	}
	c.yaml = fmt.Sprintf(`name: trio
switches: [%s]
hosts: [{name: h1, ipv4: 10.0.1.1}, {name: h2, ipv4: 10.0.2.1}]
links: [%s, {a: "s1:2", b: "s2:2", rate: 10Mbps}]
applications: [{name: web, budget: 1000000000}]
prioplus: {base_rtt: 1ms, priorities: 3}
qos: {queue_limit: %%dKB}
controller: {listen: "127.0.0.1:0", metrics: "off", cluster: {members: [%s]%s}}
`, strings.Join(switches, ", "), strings.Join(links, ", "), strings.Join(list, ", "), tls)
	file := filepath.Join(c.dir, "fabric.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, c.yaml, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.kill()
			if t.Failed() {
				t.Logf("%s:\n%s", n.name, &n.log)
			}
		}
	})
	return c
}

// port returns an address with a free port, or with a fixed port in a namespace.
func (c *trio) port(ip string, n int) string {
	if len(c.spaces) > 0 {
		return fmt.Sprintf("%s:%d", ip, 9600+n)
	}
	for { // the kernel may reuse a port that was closed
		l, err := net.Listen("tcp", ip+":0")
		if err != nil {
			c.t.Fatal(err)
		}
		l.Close()
		if at := l.Addr().String(); !slices.Contains(c.given, at) {
			c.given = append(c.given, at)
			return at
		}
	}
}

// memberCommand is the process of a member with its files in a folder.
func memberCommand(dir, name, socket string) *exec.Cmd {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(binary, "controller", "-f", filepath.Join(dir, "fabric.yaml"), "--member", name, "--socket", socket, "--state", filepath.Join(dir, name), "--insecure-loopback=admin")
	cmd.Env = append(os.Environ(), beHeadgate+"=1")
	return cmd
}

// start starts a member's process.
func (c *trio) start(n *node) {
	c.t.Helper()
	n.cmd = memberCommand(c.dir, n.name, n.socket)
	args := n.cmd.Args
	switch {
	case n.tap != "":
		n.cmd = exec.Command(args[0], c.kernelArgs(n, n.tap)...)
		n.cmd.Env = append(os.Environ(), beKernel+"=1")
	case len(c.spaces) > 0:
		if n.ahead {
			args = append([]string{"unshare", "-T", "--monotonic", "3600", "--boottime", "3600"}, args...)
		}
		args = append([]string{"ip", "netns", "exec", c.spaces[n.index()]}, args...)
		env := n.cmd.Env
		n.cmd = exec.Command(args[0], args[1:]...)
		n.cmd.Env = env
	}
	n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if n.tap != "" {
		n.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID // the guest's processes end with the kernel
	}
	if err := n.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	n.done = done
	go func() { _ = n.cmd.Wait(); close(done) }()
}

func (n *node) index() int { return int(n.name[1] - '1') }

func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// kill kills the process and waits for its end.
func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	<-n.done
}

// ended reports whether the process has ended.
func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// watch records the writes that a switch accepts, with the writer's term.
func (c *trio) watch(at string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		begin := time.Now()
		answer, err := next(ctx, req)
		if r, ok := req.(interface{ GetElectionId() *p4v1.Uint128 }); ok && err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.writes = append(c.writes, write{at, r.GetElectionId().GetHigh(), begin, time.Now()})
		}
		return answer, err
	}
}

// check reports the places where a switch accepted an earlier leader's write after a later leader's, and returns
// the numbers of writes and of leaders.
func (c *trio) check() (count, terms int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[uint64]bool{}
	last := map[string]write{} // the one with the highest term; of equal ones, the one that ended first
	var errs []error
	for _, w := range c.writes {
		seen[w.term] = true
		if l := last[w.at]; w.term < l.term && w.begin.After(l.end) {
			errs = append(errs, fmt.Errorf("%s took a write of term %d after one of term %d", w.at, w.term, l.term))
		} else if w.term > l.term {
			last[w.at] = w
		}
	}
	if seen[0] {
		errs = append(errs, errors.New("a write has no term"))
	}
	return len(c.writes), len(seen), errors.Join(errs...)
}

// leader returns the leading member, once there is one.
func (c *trio) leader() *node {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, n := range c.nodes {
			if name := c.ask(n); name != "" {
				for _, m := range c.nodes {
					if m.name == name && !m.ended() {
						return m
					}
				}
			}
		}
	}
	c.t.Fatal("nobody leads")
	return nil
}

// ask asks a member for the leader.
func (c *trio) ask(n *node) string {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	r, err := pb.NewFabricServiceClient(n.conn).GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return ""
	}
	return r.GetMember()
}
