// Package ecmp computes the hash by which a switch chooses among the next hops of a route, as
// p4src/v1model/routing.p4 does. It is for packages that predict a switch's choice.
//
//	h     = CRC-32 of the flow's fields
//	index = CRC-32 of (h + seed, h − seed)   mod   next hops
//
// A CRC is linear: a seed that is hashed with the fields, or XORed into the result, changes the results of
// all flows by the same bits. Of two switches in a row, the second would then send all flows that come from
// the first by one link. With an addition, the carries depend on the flow. One sum leaves some pairs of seeds
// dependent; with sum and difference, tests find no dependent pair. Neither needs a multiplier, which Tofino
// does not have.
package ecmp

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// Flow is the hashed part of a packet.
type Flow struct {
	Src, Dst         netip.Addr
	Protocol         uint8
	SrcPort, DstPort uint16 // ports of TCP or UDP; 0 for other protocols and for fragments
	// QueuePair is the destination's of RoCE, 24 bits.
	QueuePair uint32
	// FlowLabel is IPv6's, 20 bits.
	FlowLabel uint32
	By        Fields
}

// Fields are the fields that a switch hashes.
type Fields uint8

// The values of Fields.
const (
	FiveTuple Fields = iota
	QueuePair        // hash the five-tuple, and the queue pair of RoCE packets
	FlowLabel        // hash only addresses and flow label of IPv6 packets
)

// Hash returns the hash of a flow at a switch with a seed.
func (f Flow) Hash(seed uint32) uint32 {
	b := append(append(make([]byte, 0, 48), f.Src.AsSlice()...), f.Dst.AsSlice()...)
	if f.By == FlowLabel && f.Src.Is6() {
		b = append(b, byte(f.FlowLabel>>12), byte(f.FlowLabel>>4), byte(f.FlowLabel<<4))
	} else {
		b = append(b, f.Protocol)
		b = binary.BigEndian.AppendUint16(b, f.SrcPort)
		b = binary.BigEndian.AppendUint16(b, f.DstPort)
		if f.By == QueuePair {
			b = append(b, byte(f.QueuePair>>16), byte(f.QueuePair>>8), byte(f.QueuePair))
		}
	}
	h := crc32.ChecksumIEEE(b)
	b = binary.BigEndian.AppendUint32(b[:0], h+seed)
	return crc32.ChecksumIEEE(binary.BigEndian.AppendUint32(b, h-seed))
}

// Choose returns the index of the next hop that the flow takes. Next hops are in the order of their
// ports.
func (f Flow) Choose(seed uint32, nextHops int) int { return int(f.Hash(seed) % uint32(nextHops)) }

// Seed returns the seed of a switch: 32 bits that look random, because seeds that differ in a few bits
// have sums with the same carries. Two switches with the same number have different seeds too.
func Seed(number uint32, deviceID uint64) uint32 {
	// A step of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
	x := (uint64(number)<<32 ^ deviceID) + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return uint32(x ^ x>>31)
}
