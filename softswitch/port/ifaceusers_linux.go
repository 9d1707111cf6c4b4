package port

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// IfaceUsers tell what else uses the interfaces of a network namespace, which AF_XDP would take their frames
// away from: that of the thread that opened them. One goroutine at a time may use them.
type IfaceUsers struct {
	netlink *netlink.Handle
	packets *os.File // /proc/net/packet

	links     map[int]string  // of each interface that something uses, what
	peers     map[int]peer    // of each veth interface
	tagged    map[int]string  // of each interface that may send frames with a VLAN tag beside them, why
	listeners map[int]string  // of each interface, 0 for all of them
	own       map[uint64]bool // inodes of the packet sockets of ports
	text      bytes.Buffer
}

// peer is the other end of a veth pair.
type peer struct {
	index int
	here  bool // in the same network namespace
}

// OpenIfaceUsers looks for users a first time.
func OpenIfaceUsers() (*IfaceUsers, error) {
	packets, err := os.Open("/proc/thread-self/net/packet")
	if err != nil {
		return nil, fmt.Errorf("who listens on interfaces: %w", err)
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

// Look looks again: for packet sockets, which no event tells of, and at all if there was an event
// (LinkEvents).
func (u *IfaceUsers) Look(event bool) error {
	if event {
		if err := u.look(); err != nil {
			return fmt.Errorf("who uses interfaces: %w", err)
		}
	}
	return u.listen()
}

// look lists interfaces above others, addresses and queueing disciplines.
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
		if !a.IP.IsLinkLocalUnicast() || a.IP.To4() != nil { // the kernel gives every interface one of IPv6
			u.links[a.LinkIndex] = fmt.Sprintf("it has the address %v", a.IPNet)
		}
	}
	disciplines, err := u.netlink.QdiscList(nil)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	for _, d := range disciplines {
		if a := d.Attrs(); a.Handle != 0 { // those that the kernel chose have none
			uses(a.LinkIndex, fmt.Sprintf("it has the queueing discipline %s", d.Type()))
		}
	}
	return nil
}

// listen reads which packet sockets there are. Its lines are: address, references, type, protocol,
// interface, running, memory, user, inode.
func (u *IfaceUsers) listen() error {
	if _, err := u.packets.Seek(0, 0); err != nil {
		return fmt.Errorf("who listens on interfaces: %w", err)
	}
	u.text.Reset()
	if _, err := u.text.ReadFrom(u.packets); err != nil {
		return fmt.Errorf("who listens on interfaces: %w", err)
	}
	u.listeners = parseListeners(u.text.Bytes(), u.own)
	return nil
}

// parseListeners returns, for each interface that packet sockets other than own ones receive from, a
// sentence that says so; 0 stands for all interfaces. It ignores lines that it does not understand.
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

// of says what else uses an interface; empty for nothing.
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

// disregard does not count a packet socket as a user.
func (u *IfaceUsers) disregard(socket int) error {
	var st unix.Stat_t
	if err := unix.Fstat(socket, &st); err != nil {
		return fmt.Errorf("inode of a packet socket: %w", err)
	}
	u.own[st.Ino] = true
	return nil
}

// never says why AF_XDP is not for an interface, whatever uses it; empty if it is. To attach a program to
// hardware resets it. A sender in another namespace may leave VLAN tags to the interface, and an XDP
// program would not see them: only the kernel's own interfaces and queueing disciplines do so, not
// packet sockets.
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

// Close ends the look-out.
func (u *IfaceUsers) Close() error {
	u.netlink.Close()
	return u.packets.Close()
}
