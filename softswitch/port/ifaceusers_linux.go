package port

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// IfaceUsers finds the other users of a network namespace's interfaces, from which AF_XDP would
// take frames away. The namespace is that of the thread that opened it. Only one goroutine at a
// time may use it.
type IfaceUsers struct {
	netlink *netlink.Handle
	packets *os.File // /proc/net/packet

	links     map[int]string  // user of each interface
	peers     map[int]peer    // peer of each veth interface
	tagged    map[int]string  // why frames of an interface may have VLAN tags outside of the frame
	listeners map[int]string  // packet sockets on each interface; those at 0 listen on all interfaces
	own       map[uint64]bool // inodes of the ports' own packet sockets
	text      bytes.Buffer
}

type peer struct {
	index int
	here  bool // the peer is in the same network namespace
}

// OpenIfaceUsers looks for users for the first time.
func OpenIfaceUsers() (*IfaceUsers, error) {
	packets, err := os.Open("/proc/thread-self/net/packet")
	if err != nil {
		return nil, fmt.Errorf("reading /proc/net/packet: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("who uses interfaces: %w", err), packets.Close())
	}
	u := &IfaceUsers{netlink: handle, packets: packets, own: map[uint64]bool{}}
	if err := u.Look(true); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

// Look looks for users again. It always reads the packet sockets, because no event reports them.
// The rest it reads only if there was an event (LinkEvents).
func (u *IfaceUsers) Look(event bool) error {
	if event {
		if err := u.look(); err != nil {
			return fmt.Errorf("who uses interfaces: %w", err)
		}
	}
	return u.listen()
}

// look reads the interfaces above others, the addresses and the queueing disciplines.
func (u *IfaceUsers) look() error {
	u.links, u.peers, u.tagged = map[int]string{}, map[int]peer{}, map[int]string{}
	links, err := u.netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	uses := func(index int, why string) { u.links[index], u.tagged[index] = why, why }
	for _, l := range links {
		a := l.Attrs()
		switch {
		case l.Type() == "veth":
			u.peers[a.Index] = peer{a.ParentIndex, a.NetNsID < 0}
		case a.ParentIndex != 0 && a.NetNsID < 0:
			uses(a.ParentIndex, fmt.Sprintf("the interface %s is on it", a.Name))
		}
		if a.MasterIndex != 0 {
			uses(a.Index, "it is part of another interface, such as a bridge")
		}
	}
	addresses, err := u.netlink.AddrList(nil, unix.AF_UNSPEC)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() || a.IP.To4() != nil { // every interface has a link-local IPv6 address from the kernel
			u.links[a.LinkIndex] = fmt.Sprintf("it has the address %v", a.IPNet)
		}
	}
	disciplines, err := u.netlink.QdiscList(nil)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	for _, d := range disciplines {
		if a := d.Attrs(); a.Handle != 0 { // a queueing discipline of the kernel's choice has no handle
			uses(a.LinkIndex, fmt.Sprintf("it has the queueing discipline %s", d.Type()))
		}
	}
	return nil
}

// listen reads the list of packet sockets. The columns are: address, references, type, protocol,
// interface, running, memory, user, inode.
func (u *IfaceUsers) listen() error {
	if _, err := u.packets.Seek(0, 0); err != nil {
		return fmt.Errorf("reading /proc/net/packet: %w", err)
	}
	u.text.Reset()
	if _, err := u.text.ReadFrom(u.packets); err != nil {
		return fmt.Errorf("reading /proc/net/packet: %w", err)
	}
	u.listeners = parseListeners(u.text.Bytes(), u.own)
	return nil
}

// parseListeners returns a sentence for each interface from which packet sockets receive that are not in own.
// Interface 0 stands for all. It ignores lines that it does not understand.
func parseListeners(text []byte, own map[uint64]bool) map[int]string {
	found := map[int]string{}
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < 9 {
			continue
		}
		protocol, err1 := strconv.ParseUint(string(f[3]), 16, 16)
		index, err2 := strconv.Atoi(string(f[4]))
		inode, err3 := strconv.ParseUint(string(f[8]), 10, 64)
		if err1 != nil || err2 != nil || err3 != nil || protocol == 0 || own[inode] {
			continue // a socket of protocol 0 receives nothing
		}
		found[index] = fmt.Sprintf("a packet socket listens (inode %d in /proc/net/packet)", inode)
	}
	return found
}

// of names another user of an interface, or returns "".
func (u *IfaceUsers) of(index int) string {
	for _, why := range []string{u.links[index], u.listeners[index], u.listeners[0]} {
		if why != "" {
			return why
		}
	}
	if why := u.tagged[u.peers[index].index]; why != "" {
		return "at the other end: " + why
	}
	return ""
}

// disregard makes a packet socket of ours not count as a user.
func (u *IfaceUsers) disregard(socket int) error {
	var st unix.Stat_t
	if err := unix.Fstat(socket, &st); err != nil {
		return fmt.Errorf("inode of a packet socket: %w", err)
	}
	u.own[st.Ino] = true
	return nil
}

// never returns why an interface can never use AF_XDP, or "" if it can. Only veth interfaces can, because
// attaching a program to a hardware interface resets the hardware. The other end must be in the same network
// namespace. Otherwise its kernel may leave VLAN tags to the interface, and an XDP program does not see them.
// Packet sockets never leave a tag to the interface; the other namespace's interfaces and queueing disciplines do.
func (u *IfaceUsers) never(index int) string {
	p, veth := u.peers[index]
	switch {
	case !veth:
		return "it is not a veth interface"
	case !p.here:
		return "its other end is in another network namespace, whose VLAN tags could be lost"
	}
	return ""
}

// Close releases the descriptors.
func (u *IfaceUsers) Close() error {
	u.netlink.Close()
	return u.packets.Close()
}

// LinkEvents reports when a network interface may have gone up or down, or may have gained or lost
// an address, a queueing discipline or an interface above it. It covers the network namespace of
// the thread that opened it.
type LinkEvents struct{ file *os.File }

// OpenLinkEvents subscribes to the kernel's events about interfaces (rtnetlink).
func OpenLinkEvents() (*LinkEvents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("link events: %w", err)
	}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_TC
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return nil, errors.Join(fmt.Errorf("link events: %w", err), unix.Close(fd))
	}
	return &LinkEvents{os.NewFile(uintptr(fd), "rtnetlink")}, nil
}

// Run calls changed after each change, and when the kernel reports that it lost events, until ctx
// ends. It does not say what has changed; ask Port.Up. It closes the events when it returns.
func (e *LinkEvents) Run(ctx context.Context, changed func()) error {
	cancel := context.AfterFunc(ctx, func() { _ = e.file.Close() })
	defer func() {
		if cancel() {
			_ = e.file.Close()
		}
	}()
	for message := make([]byte, 1<<16); ; {
		_, err := e.file.Read(message)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return fmt.Errorf("link events: %w", err)
		}
		changed()
	}
}
