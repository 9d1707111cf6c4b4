package main

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// multiplier is a sender that costs a fraction of the processor time of one with a system
// call and a socket buffer per frame, so that more of a small machine is left to the
// switch. One frame that it sends on a veth pair of its own, the seed, is multiplied by an
// XDP program at the pair's other end, which redirects copies of it to the hosts' ends, a
// few to each. On the way a second program turns each copy into one of the prepared
// frames. It needs Linux 5.14 (bpf_redirect_map with BPF_F_BROADCAST).
type multiplier struct {
	fd      int // packet socket on the pair's near end
	seed    []byte
	frames  *ebpf.Map // heads of the prepared frames, port by port
	counter *ebpf.Map // how many frames went to the hosts' ends from each core
	targets *ebpf.Map // where the copies go
	turn    []*ebpf.Program
	copy    *ebpf.Program
	link    link.Link
}

const (
	// copiesPerPort is how many frames one seed makes on each port.
	copiesPerPort = 8
	// headBytes is how much of a frame differs from the seed; a multiple of 8.
	headBytes = 64
	seedEnd   = "g0"
	copyEnd   = "g1"
)

// Of <linux/bpf.h>: return values of an XDP program, a flag of bpf_redirect_map, and offsets
// in struct xdp_md.
const (
	xdpDrop       = 1
	xdpPass       = 2
	flagBroadcast = 1 << 3
	mdData        = 0
	mdDataEnd     = 4
)

func newMultiplier(p *program, size int) (*multiplier, error) {
	m := &multiplier{fd: -1, seed: make([]byte, size)}
	if err := m.open(p); err != nil {
		return nil, errors.Join(fmt.Errorf("sender xdp (the kernel may be too old for it: -sender packet does without): %w", err), m.close())
	}
	return m, nil
}

func (m *multiplier) open(p *program) (err error) {
	if err := addVeth(seedEnd, copyEnd); err != nil {
		return err
	}
	for port := 1; port <= ports; port++ { // XDP frames need NAPI at the end where they arrive
		if err := setGRO(switchEnd(port)); err != nil {
			return err
		}
	}
	if m.counter, err = ebpf.NewMap(&ebpf.MapSpec{Name: "sent", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return err
	}
	if err := m.fillFrames(p); err != nil {
		return err
	}
	if err := m.fillTargets(); err != nil {
		return err
	}
	m.copy, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "multiply", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{ // return bpf_redirect_map(&targets, 0, BPF_F_BROADCAST)
			asm.LoadMapPtr(asm.R1, m.targets.FD()),
			asm.Mov.Imm(asm.R2, 0),
			asm.Mov.Imm(asm.R3, flagBroadcast),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return err
	}
	at, err := index(copyEnd)
	if err != nil {
		return err
	}
	if m.link, err = link.AttachXDP(link.XDPOptions{Program: m.copy, Interface: at, Flags: link.XDPDriverMode}); err != nil {
		return err
	}
	if m.fd, err = packetSocket(seedEnd, 0); err != nil {
		return err
	}
	return unix.SetsockoptInt(m.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
}

func (m *multiplier) fillFrames(p *program) (err error) {
	m.frames, err = ebpf.NewMap(&ebpf.MapSpec{Name: "frames", Type: ebpf.Array, KeySize: 4, ValueSize: headBytes, MaxEntries: ports * preparedFrames})
	if err != nil {
		return err
	}
	for port := 1; port <= ports; port++ {
		for i, f := range prepare(p, port, len(m.seed)) {
			if !bytes.Equal(f[headBytes:], m.seed[headBytes:]) {
				return fmt.Errorf("frames of %s differ behind byte %d, want nothing but zeros there", p.name, headBytes)
			}
			if err := m.frames.Put(uint32((port-1)*preparedFrames+i), f[:headBytes]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillTargets lists each host's end as many times as it gets copies, with the program that
// turns a copy into a prepared frame of its port.
func (m *multiplier) fillTargets() (err error) {
	m.targets, err = ebpf.NewMap(&ebpf.MapSpec{Name: "targets", Type: ebpf.DevMap, KeySize: 4, ValueSize: 8, MaxEntries: ports * copiesPerPort})
	if err != nil {
		return err
	}
	for port := 1; port <= ports; port++ {
		at, err := index(hostEnd(port))
		if err != nil {
			return err
		}
		turn, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "turn", Type: ebpf.XDP, AttachType: ebpf.AttachXDPDevMap, License: "Apache-2.0",
			Instructions: m.turnInto(port),
		})
		if err != nil {
			return err
		}
		m.turn = append(m.turn, turn)
		for i := range copiesPerPort {
			target := [2]uint32{uint32(at), uint32(turn.FD())} // struct bpf_devmap_val
			if err := m.targets.Put(uint32((port-1)*copiesPerPort+i), target); err != nil {
				return err
			}
		}
	}
	return nil
}

// turnInto is a program that takes a number from the counter and writes the head of that
// one of a port's prepared frames over the packet's.
func (m *multiplier) turnInto(port int) asm.Instructions {
	const key = -4 // on the stack
	lookup := func(of *ebpf.Map) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, of.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, key),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "drop"),
		}
	}
	all := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, mdData, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, mdDataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R6),
		asm.Add.Imm(asm.R3, headBytes),
		asm.JGT.Reg(asm.R3, asm.R2, "drop"),
		asm.StoreImm(asm.RFP, key, 0, asm.Word),
	}
	all = append(all, lookup(m.counter)...)
	all = append(all,
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord),
		asm.And.Imm(asm.R1, preparedFrames-1),
		asm.Add.Imm(asm.R1, int32((port-1)*preparedFrames)),
		asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
	)
	all = append(all, lookup(m.frames)...)
	for o := int16(0); o < headBytes; o += 8 {
		all = append(all, asm.LoadMem(asm.R1, asm.R0, o, asm.DWord), asm.StoreMem(asm.R6, o, asm.R1, asm.DWord))
	}
	return append(all,
		asm.Mov.Imm(asm.R0, xdpPass),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
		asm.Return(),
	)
}

func (m *multiplier) burst() (int, error) {
	switch _, err := unix.Write(m.fd, m.seed); {
	case err == nil:
		return ports * copiesPerPort, nil
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		runtime.Gosched()
		return 0, nil
	default:
		return 0, fmt.Errorf("sending on %s: %w", seedEnd, err)
	}
}

func (m *multiplier) sent() (n uint64, err error) {
	var cores []uint64
	err = m.counter.Lookup(uint32(0), &cores)
	for _, c := range cores {
		n += c
	}
	return n, err
}

func (m *multiplier) close() (err error) {
	if m.fd >= 0 {
		err = unix.Close(m.fd)
	}
	if m.link != nil {
		err = errors.Join(err, m.link.Close())
	}
	for _, p := range append(m.turn, m.copy) {
		err = errors.Join(err, p.Close()) // nil is fine
	}
	for _, t := range []*ebpf.Map{m.targets, m.frames, m.counter} {
		err = errors.Join(err, t.Close())
	}
	removeLink(seedEnd)
	return err
}
