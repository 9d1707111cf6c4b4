// Package nic runs a host agent on a real interface, such as a Mininet host's. Frames pass through a packet
// socket (packet(7)), and the clock is the machine's. The kernel still handles addresses and ARP or neighbour
// discovery: the next hop's MAC address is configured or read from the kernel's neighbour table. The agent
// needs CAP_NET_RAW.
package nic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	mpacket "github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

const (
	// lateness is how late a timer may fire without the flow losing rate. Go's timers and a loaded machine are
	// late by up to a few milliseconds.
	lateness = 5 * units.Millisecond
	// slots is how many frames may wait for the agent before the kernel has to drop.
	slots    = 1024
	frameMax = 2048
)

// ErrClosed is returned by Do when the NIC no longer runs.
var ErrClosed = errors.New("nic: not running")

// Config is where an agent runs.
type Config struct {
	Interface string // name of the interface
	// Agent is the agent's configuration. A zero MAC means the interface's own. A zero Gateway means the
	// kernel's default gateway, or packet.Gateway if there is none.
	Agent agent.Config
	Log   *slog.Logger // none by default
}

// NIC is an agent on an interface. Run's goroutine owns the agent; Do is for all others.
type NIC struct {
	cfg   Config
	conn  *mpacket.Conn
	pfc   *mpacket.Conn // connection for MAC control frames
	mutes []*net.UDPConn
	agent *agent.Agent
	to    *mpacket.Addr
	epoch time.Time

	frames chan []byte // received, for Run's goroutine
	free   chan []byte // buffers to receive into
	calls  chan call
	done   chan struct{} // closed when Run has ended

	sendErrors uint64 // owned by Run's goroutine
}

type call struct {
	fn  func(*agent.Agent, units.Time)
	ran chan struct{}
}

// Open attaches an agent to an interface. Close it, or Run it to the end.
func Open(cfg Config) (*NIC, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ifi, err := net.InterfaceByName(cfg.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %q: %w", cfg.Interface, err)
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("interface %q is down: ip link set %s up", cfg.Interface, cfg.Interface)
	}
	need, family := int(cfg.Agent.MSS)+packet.Overhead(cfg.Agent.IP)-14, unix.ETH_P_IP
	if cfg.Agent.IP.Is6() {
		family = unix.ETH_P_IPV6
	}
	if ifi.MTU < need {
		return nil, fmt.Errorf("interface %q: MTU %d: want at least %d for packets of %v", cfg.Interface, ifi.MTU, need, cfg.Agent.MSS)
	}
	if cfg.Agent.MAC == (packet.MAC{}) {
		copy(cfg.Agent.MAC[:], ifi.HardwareAddr)
	}
	if cfg.Agent.Gateway == (packet.MAC{}) {
		if cfg.Agent.Gateway, err = gatewayMAC(ifi.Index, ifi.Name, cfg.Agent.IP); err != nil {
			return nil, err
		}
	}
	cfg.Agent.MaxLate = lateness
	cfg.Agent.ShimPort = cmp.Or(cfg.Agent.ShimPort, maxqd.Port)
	filter, err := portFilter(cfg.Agent.IP, cfg.Agent.ShimPort)
	if err != nil {
		return nil, err
	}
	conn, err := mpacket.Listen(ifi, mpacket.Raw, family, &mpacket.Config{Filter: filter})
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w (it needs CAP_NET_RAW)", err)
		}
		return nil, fmt.Errorf("interface %q: %w", cfg.Interface, err)
	}
	pfc, err := listenPFC(ifi)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("interface %q: %w", cfg.Interface, err)
	}
	n := &NIC{
		cfg: cfg, conn: conn, pfc: pfc, to: &mpacket.Addr{HardwareAddr: net.HardwareAddr(cfg.Agent.Gateway[:])},
		epoch: time.Now(), frames: make(chan []byte, slots), free: make(chan []byte, slots),
		calls: make(chan call), done: make(chan struct{}),
	}
	for range slots {
		n.free <- make([]byte, frameMax)
	}
	if n.agent, err = agent.New(cfg.Agent, n.send); err != nil {
		n.Close()
		return nil, err
	}
	n.mutes = mute(cfg.Log, cfg.Agent.IP, cfg.Agent.ShimPort)
	return n, nil
}

// listenPFC opens a socket for MAC control frames. Real MACs obey and consume them; virtual
// interfaces hand them up like any others.
func listenPFC(ifi *net.Interface) (*mpacket.Conn, error) {
	conn, err := mpacket.Listen(ifi, mpacket.Raw, packet.EtherTypeMACControl, nil)
	if err != nil {
		return nil, fmt.Errorf("PFC frames: %w", err)
	}
	group := packet.PFCAddress()
	if err := conn.JoinGroup(group[:]); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("PFC frames: multicast address %v: %w", group, err)
	}
	return conn, nil
}

// mute binds the frames' ports to unread sockets, so that the kernel, which sees the frames too, does
// not answer each with an ICMP port unreachable.
func mute(log *slog.Logger, ip netip.Addr, shim uint16) []*net.UDPConn {
	var out []*net.UDPConn
	network := "udp4"
	if ip.Is6() {
		network = "udp6"
	}
	for _, port := range []uint16{shim, packet.RoCEv2Port} {
		c, err := net.ListenUDP(network, &net.UDPAddr{Port: int(port)})
		if err != nil {
			// Most likely another agent of this network namespace holds it already.
			log.Debug("UDP port not bound", "port", port, "error", err)
			continue
		}
		_ = c.SetReadBuffer(0)
		out = append(out, c)
	}
	return out
}

// portFilter accepts unfragmented UDP to the shim's port or RoCEv2's, over ip's version of IP, without options
// or extension headers. It passes up to 2048 bytes of a packet.
func portFilter(ip netip.Addr, shim uint16) ([]bpf.RawInstruction, error) {
	first, mask, protocolAt, portAt := uint32(0x45), uint32(0xff), uint32(23), uint32(36)
	if ip.Is6() {
		first, mask, protocolAt, portAt = 0x60, 0xf0, 20, 56
	}
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 14, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: first, SkipTrue: 6},
		bpf.LoadAbsolute{Off: protocolAt, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 4},
		bpf.LoadAbsolute{Off: portAt, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(shim), SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: packet.RoCEv2Port, SkipTrue: 1},
		bpf.RetConstant{Val: frameMax},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, fmt.Errorf("packet filter: %w", err)
	}
	return filter, nil
}

// follow listens on the agent's UDP port after it was changed.
func (n *NIC) follow() error {
	port := n.agent.Config().ShimPort
	if port == n.cfg.Agent.ShimPort {
		return nil
	}
	filter, err := portFilter(n.cfg.Agent.IP, port)
	if err == nil {
		err = n.conn.SetBPF(filter)
	}
	if err != nil {
		return fmt.Errorf("interface %q: UDP port %d: %w", n.cfg.Interface, port, err)
	}
	n.cfg.Agent.ShimPort = port
	n.unmute()
	n.mutes = mute(n.cfg.Log, n.cfg.Agent.IP, port)
	return nil
}

func (n *NIC) unmute() {
	for _, c := range n.mutes {
		_ = c.Close()
	}
}

func (n *NIC) send(frame []byte) {
	if _, err := n.conn.WriteTo(frame, n.to); err != nil {
		// The interface's queue is full or it is down; the transport recovers.
		if n.sendErrors == 0 {
			n.cfg.Log.Warn("frame not sent", "interface", n.cfg.Interface, "error", err)
		}
		n.sendErrors++
	}
}

func (n *NIC) now() units.Time { return units.FromDuration(time.Since(n.epoch)) }

// Run drives the agent until ctx ends, and closes the NIC. It returns nil when ctx ended,
// or the error of an interface that went away. It runs at most once.
func (n *NIC) Run(ctx context.Context) error {
	defer close(n.done)
	received := make(chan error, 2)
	var wg sync.WaitGroup
	for _, c := range []*mpacket.Conn{n.conn, n.pfc} {
		wg.Go(func() { received <- n.receive(c) })
	}
	defer wg.Wait()
	defer func() {
		n.Close()
		for len(n.frames) > 0 { // so that a receive that waits goes on and sees that the socket is closed
			n.free <- (<-n.frames)[:frameMax]
		}
	}()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-received:
			return fmt.Errorf("interface %q: %w", n.cfg.Interface, err)
		case f := <-n.frames:
			n.handle(f)
			for range len(n.frames) { // frames that have arrived meanwhile, before answering
				n.handle(<-n.frames)
			}
		case c := <-n.calls:
			c.fn(n.agent, n.now())
			err := n.follow()
			close(c.ran)
			if err != nil {
				return err
			}
		case <-timer.C:
		}
		n.agent.Wake(n.now())
		if next := n.agent.Next(); next == units.MaxTime {
			timer.Stop()
		} else {
			timer.Reset(max((next - n.now()).Duration(), 0))
		}
	}
}

func (n *NIC) handle(frame []byte) {
	n.agent.Receive(n.now(), frame)
	n.free <- frame[:frameMax]
}

func (n *NIC) receive(conn *mpacket.Conn) error {
	for buf := range n.free {
		size, _, err := conn.ReadFrom(buf[:frameMax])
		if err != nil {
			return err
		}
		n.frames <- buf[:size]
	}
	return nil
}

// Do runs fn with the agent on Run's goroutine, and returns when it has run; ErrClosed
// when Run has ended, ctx's error when ctx ends first.
func (n *NIC) Do(ctx context.Context, fn func(a *agent.Agent, now units.Time)) error {
	c := call{fn, make(chan struct{})}
	select {
	case n.calls <- c:
		<-c.ran
		return nil
	case <-n.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close releases the interface. Run does it when it ends.
func (n *NIC) Close() {
	_ = n.conn.Close()
	_ = n.pfc.Close()
	n.unmute()
}
