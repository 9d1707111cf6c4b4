package packet

import (
	"errors"
	"net/netip"
)

// CNPReserved is the length of a CNP's payload, which is zero (annex A17.9.3).
const CNPReserved = 16

// CNPLen is the length of a CNP frame over IPv4, in bytes; IPv6Extra more over IPv6.
const CNPLen = ethernetLen + ipv4Len + udpLen + BTHLen + CNPReserved + ICRCLen

// Errors of frames that are no CNP as the annex prescribes, to be tested with errors.Is.
var (
	ErrNotCNP      = errors.New("CNP: opcode is not 0x81 or the port is not RoCEv2's")
	ErrCNPBECN     = errors.New("CNP: BECN is not set")
	ErrCNPReserved = errors.New("CNP: payload is not 16 bytes of 0")
)

var cnpReserved [CNPReserved]byte

// Notification is a RoCEv2 congestion notification packet (CNP, annex A17.9.3) about a flow. Its addresses are
// those of a packet from the flow's destination to its source, even if a switch sends it. A Notification that is
// used again encodes and decodes without allocating.
//
//	Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 to port 4791 | BTH 12, opcode 0x81, BECN | 0 16 | ICRC 4
type Notification struct {
	DstMAC, SrcMAC   MAC
	FlowSrc, FlowDst netip.Addr // both IPv4 or both IPv6; the CNP goes from FlowDst to FlowSrc
	DSCP             uint8      // 0 to 63; NICs use 48, the highest priority
	TTL              uint8
	SrcPort          uint16 // UDP source port and IPv6 flow label, by which switches choose the path
	// DestQP is the source's queue pair. A switch that knows flows only by their addresses leaves it 0; the CNP
	// is then about all flows between the two.
	DestQP uint32

	frame Frame // scratch
}

// Append appends the CNP's wire form, CNPLen bytes. It is not ECN-capable: a mark on a
// notification would be lost.
func (n *Notification) Append(b []byte) []byte {
	f := &n.frame
	f.DstMAC, f.SrcMAC = n.DstMAC, n.SrcMAC
	f.Src, f.Dst = n.FlowDst, n.FlowSrc
	f.DSCP, f.ECN, f.TTL = n.DSCP, NotECT, n.TTL
	f.SrcPort, f.DstPort, f.FlowLabel = n.SrcPort, RoCEv2Port, 0
	if n.FlowSrc.Is6() {
		f.FlowLabel = uint32(n.SrcPort)
	}
	f.BTH = BTH{Opcode: CNP, PKey: DefaultPKey, BECN: true, DestQP: n.DestQP}
	f.Payload = cnpReserved[:]
	return f.Append(b)
}

// Decode reads a CNP and checks checksum and ICRC.
func (n *Notification) Decode(b []byte) error {
	f := &n.frame
	if err := f.Decode(b); err != nil {
		return err
	}
	if err := f.CheckCNP(); err != nil {
		return err
	}
	n.DstMAC, n.SrcMAC = f.DstMAC, f.SrcMAC
	n.FlowDst, n.FlowSrc = f.Src, f.Dst
	n.DSCP, n.TTL, n.SrcPort, n.DestQP = f.DSCP, f.TTL, f.SrcPort, f.BTH.DestQP
	return nil
}

// CheckCNP returns an error if a decoded frame is not a CNP as the annex prescribes.
func (f *Frame) CheckCNP() error {
	switch {
	case f.BTH.Opcode != CNP || f.DstPort != RoCEv2Port:
		return ErrNotCNP
	case !f.BTH.BECN:
		return ErrCNPBECN
	case string(f.Payload) != string(cnpReserved[:]):
		return ErrCNPReserved
	}
	return nil
}
