package bmv2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
)

// multiplier is a sender that needs a fraction of the processor time of one with a system call and a socket
// buffer per frame. That leaves more of a small machine to the switch. It sends one frame, the seed, on a veth
// pair of its own. An XDP program at the pair's other end redirects copies of it to the hosts' ends, a few to
// each. On the way, a second program turns each copy into one of the prepared frames. It needs Linux 5.14
// (bpf_redirect_map with BPF_F_BROADCAST).
type multiplier struct {
	fd      int // packet socket on the pair's near end
	seed    []byte
	frames  *ebpf.Map // heads of the prepared frames, port by port
	counter *ebpf.Map // frames sent to the hosts' ends, by core
}

const (
	// copiesPerPort is the number of frames that one seed makes on each port.
	copiesPerPort = 8
	// headBytes is the length of the part that differs from the seed; a multiple of 8.
	headBytes = 64
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

// own closes a kernel object when the test ends. If the kernel gave none, the test fails.
func own[T io.Closer](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("sender xdp (the kernel may be too old for it: -sender packet does without): %v", err)
	}
	t.Cleanup(func() { must(t, v.Close()) })
	return v
}

func newMultiplier(t *testing.T, p *program, size int) *multiplier {
	t.Helper()
	pair := veth.Add(t, "g0", "g1")
	for port := 1; port <= ports; port++ { // XDP frames need NAPI at the receiving end
		setGRO(t, switchEnd(port))
	}
	newMap := func(m ebpf.MapSpec) *ebpf.Map {
		m.KeySize = 4
		made, err := ebpf.NewMap(&m)
		return own(t, made, err)
	}
	m := &multiplier{
		seed:    make([]byte, size),
		counter: newMap(ebpf.MapSpec{Name: "sent", Type: ebpf.PerCPUArray, ValueSize: 8, MaxEntries: 1}),
		frames:  newMap(ebpf.MapSpec{Name: "frames", Type: ebpf.Array, ValueSize: headBytes, MaxEntries: ports * preparedFrames}),
	}
	// Each host's end is listed once per copy, with the program that turns a copy into a prepared frame of its
	// port.
	targets := newMap(ebpf.MapSpec{Name: "targets", Type: ebpf.DevMap, ValueSize: 8, MaxEntries: ports * copiesPerPort})
	for port := 1; port <= ports; port++ {
		for i, f := range prepare(p, port, size) {
			if !bytes.Equal(f[headBytes:], m.seed[headBytes:]) {
				t.Fatalf("frames of %s differ behind byte %d, want nothing but zeros there", p.name, headBytes)
			}
			must(t, m.frames.Put(uint32((port-1)*preparedFrames+i), f[:headBytes]))
		}
		turn, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "turn", Type: ebpf.XDP, AttachType: ebpf.AttachXDPDevMap, License: "Apache-2.0",
			Instructions: m.turnInto(port),
		})
		own(t, turn, err)
		for i := range copiesPerPort {
			target := [2]uint32{uint32(index(t, hostEnd(port))), uint32(turn.FD())} // struct bpf_devmap_val
			must(t, targets.Put(uint32((port-1)*copiesPerPort+i), target))
		}
	}
	copies, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "multiply", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{ // return bpf_redirect_map(&targets, 0, BPF_F_BROADCAST)
			asm.LoadMapPtr(asm.R1, targets.FD()),
			asm.Mov.Imm(asm.R2, 0),
			asm.Mov.Imm(asm.R3, flagBroadcast),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
	own(t, copies, err)
	at, err := link.AttachXDP(link.XDPOptions{Program: copies, Interface: index(t, pair.Host), Flags: link.XDPDriverMode})
	own(t, at, err)
	m.fd = packetSocket(t, pair.Switch, 0)
	must(t, unix.SetsockoptInt(m.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1))
	return m
}

// turnInto is a program that takes a number from the counter and overwrites the packet's head with that of the
// prepared frame of this number.
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
		return 0, fmt.Errorf("sending the seed: %w", err)
	}
}

func (m *multiplier) sent(t *testing.T) (n uint64) {
	var cores []uint64
	must(t, m.counter.Lookup(uint32(0), &cores))
	for _, c := range cores {
		n += c
	}
	return n
}

// setGRO switches generic receive offload of an interface on. A veth interface then takes its frames by NAPI, as
// network cards do, and so it takes frames that an XDP program sends to it.
func setGRO(t *testing.T, name string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	value := struct{ command, data uint32 }{unix.ETHTOOL_SGRO, 1} // struct ethtool_value
	var request struct {                                          // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		t.Fatalf("interface %s: generic receive offload: %v", name, errno)
	}
}
