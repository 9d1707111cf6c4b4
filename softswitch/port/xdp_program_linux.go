package port

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// xdpProgram is the XDP program of an interface. It redirects the frames of queue 0 to a socket.
// The kernel detaches it when the link's file closes, at the latest when the process ends.
type xdpProgram struct {
	sockets *ebpf.Map // sockets by queue
	link    link.Link
	native  bool // runs in the interface's driver
	taking  bool // redirects frames to the socket
	beside  bool // the interface also has a packet socket, which is as good as the generic mode
}

// rxQueueIndex is the offset of rx_queue_index in struct xdp_md of <linux/bpf.h>.
const rxQueueIndex = 16

// attach loads the program and attaches it in the interface's driver. If the driver cannot run it,
// attach attaches it in front of the kernel's network stack ("generic"), unless beside is set.
// Frames go to the kernel until the map has a socket.
func (x *xdpProgram) attach(ifi *net.Interface) (err error) {
	x.sockets, err = ebpf.NewMap(&ebpf.MapSpec{Name: "headgate_xsk", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("a map of AF_XDP sockets needs root or CAP_BPF and CAP_NET_ADMIN: %w", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "headgate_port", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{
			// bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS): a frame of a queue
			// without a socket goes on to the kernel.
			asm.LoadMem(asm.R2, asm.R1, rxQueueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, x.sockets.FD()),
			asm.Mov.Imm(asm.R3, xdpPass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return fmt.Errorf("loading the XDP program: %w", err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()

	modes := []link.XDPAttachFlags{link.XDPDriverMode, link.XDPGenericMode}
	if x.beside {
		modes = modes[:1]
	}
	var reasons []error
	for _, mode := range modes {
		x.link, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: ifi.Index, Flags: mode})
		x.native = mode == link.XDPDriverMode
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("the interface has an XDP program already (`ip link show %s`): %w", ifi.Name, err)
		}
		reasons = append(reasons, err)
	}
	return fmt.Errorf("attaching the XDP program: %w", errors.Join(reasons...))
}

// take starts or stops redirecting frames to a socket. It does nothing if that is done already.
func (x *xdpProgram) take(socket int, on bool) error {
	if on == x.taking {
		return nil
	}
	change := func() error { return x.sockets.Delete(uint32(xdpQueue)) }
	if on {
		change = func() error { return x.sockets.Put(uint32(xdpQueue), uint32(socket)) }
	}
	if err := change(); err != nil {
		return fmt.Errorf("map of AF_XDP sockets: %w", err)
	}
	x.taking = on
	return nil
}

// xdpPass is XDP_PASS of <linux/bpf.h>.
const xdpPass = 2

func (x *xdpProgram) close() error {
	var err error
	if x.link != nil {
		err = x.link.Close()
	}
	if x.sockets != nil {
		err = errors.Join(err, x.sockets.Close())
	}
	*x = xdpProgram{native: x.native}
	return err
}

// oneQueue fails if an interface has several receive queues, because frames of the other queues
// would go to the kernel.
func oneQueue(ifi *net.Interface) error {
	n, err := rxQueues(ifi.Name)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return nil // a device without queues to choose from, such as a bridge
	case err != nil:
		return fmt.Errorf("number of queues: %w", err)
	case n > 1:
		return fmt.Errorf("%d receive queues: the AF_XDP driver wants one: `ethtool -L %s combined 1` (or rx 1), or the AF_PACKET driver", n, ifi.Name)
	}
	return nil
}

// ethtoolChannels is struct ethtool_channels of <linux/ethtool.h>.
type ethtoolChannels struct {
	command                                uint32
	maxRx, maxTx, maxOther, maxCombined    uint32
	rxCount, txCount, otherCount, combined uint32
}

// rxQueues asks an interface's driver how many receive queues are in use.
func rxQueues(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	channels := ethtoolChannels{command: unix.ETHTOOL_GCHANNELS}
	var request struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&channels)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	return int(channels.rxCount + channels.combined), nil
}
