package dataplane

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// hashed returns the fields of a frame that a switch hashes. The transport header with the queue pair is at an
// offset of its payload; -1 for none.
func (f frame) hashed(by ecmp.Fields, transport int) ecmp.Flow {
	h := ecmp.Flow{Src: f.src, Dst: f.dst, Protocol: 17, SrcPort: f.srcPort, DstPort: f.dstPort, FlowLabel: f.flowLabel, By: by}
	if f.tcp {
		h.Protocol = 6
	}
	switch {
	case by == ecmp.QueuePair && transport < 0:
		h.By = ecmp.FiveTuple
	case by == ecmp.QueuePair:
		h.QueuePair = binary.BigEndian.Uint32(f.payload[transport+4:]) & 0xffffff
	}
	return h
}

// as changes the type of updates.
func as(kind p4v1.Update_Type, updates ...*p4v1.Update) []*p4v1.Update {
	for _, u := range updates {
		u.Type = kind
	}
	return updates
}

// testECMPHash: the switch takes the next hop that package ecmp computes, for any seed, flow, number of next hops
// and choice of hashed fields.
func testECMPHash(r *rig) {
	rng := rand.New(rand.NewPCG(40, 1))
	base := ecmpGroup(r, 1)
	for by, n := range []int{2, 3, 4} {
		by, seed := ecmp.Fields(by), rng.Uint32()
		r.write(hashSeed(seed)...)
		switch by {
		case ecmp.QueuePair:
			r.write(hashQueuePair(seed)...)
		case ecmp.FlowLabel:
			r.write(as(p4v1.Update_DELETE, hashQueuePair(seed)...)...)
			r.write(hashFlowLabel(seed))
		}
		group := make([]control.Weight, n)
		for i := range group {
			group[i] = control.Weight{Member: uint32(2 + i), Weight: 1}
		}
		r.write(as(p4v1.Update_MODIFY, control.Group(100, group...))...)
		var frames [][]byte
		var want []uint32
		for i := range 200 {
			f := base
			src := base.src.AsSlice()
			binary.BigEndian.PutUint16(src[len(src)-2:], uint16(rng.Uint32()))
			f.src, _ = netip.AddrFromSlice(src)
			f.srcPort, f.dstPort, f.flowLabel = uint16(1000+i), uint16(rng.Uint32())|0x8000, rng.Uint32()&0xfffff
			transport := -1
			switch i % 5 {
			case 0:
				f.tcp = true
			case 1: // RoCEv2
				f.dstPort, f.payload, transport = ids.UDPPortRoCE, make([]byte, 32), 0
			case 2: // the same behind a shim
				f, transport = f.shim(ids.MaxQDVersion, false, 0), 4
			case 3: // another partition key, so not one of our packets
				f = f.shim(ids.MaxQDVersion, false, 0)
				f.payload[7] = 1
			}
			if transport >= 0 {
				binary.BigEndian.PutUint32(f.payload[transport+4:], rng.Uint32()&0xffffff)
			}
			frames = append(frames, f.bytes(r.T))
			want = append(want, uint32(2+f.hashed(by, transport).Choose(seed, n)))
		}
		for i, port := range portsOf(r, frames) {
			if port != want[i] {
				r.Errorf("%d next hops, fields %d hashed: frame %d (%x) left by port %d, want %d", n, by, i, frames[i], port, want[i])
			}
		}
	}
	r.noDropsBut()
}

// testECMPTiers plays a leaf and then the two aggregation switches above it, with one or two links to each and as
// many cores above them. Each link carries its share of 1000 flows within 10 %.
func testECMPTiers(r *rig) {
	base := ecmpGroup(r, 1)
	base.src, base.dst, base.dstPort = netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("10.0.2.1"), ids.UDPPortRoCE
	base.payload = make([]byte, 20)
	r.write(control.Route(netip.MustParsePrefix("10.0.2.1/32"), 100))
	// through sends frames through a switch with n next hops and returns the frames that left by each.
	through := func(device uint64, links int, frames [][]byte) [][][]byte {
		group := make([]control.Weight, links)
		for i := range group {
			group[i] = control.Weight{Member: uint32(2 + i), Weight: 1}
		}
		r.write(append(hashSeed(ecmp.Seed(0, device)), as(p4v1.Update_MODIFY, control.Group(100, group...))...)...)
		by := make([][][]byte, links)
		for i, port := range portsOf(r, frames) {
			by[port-2] = append(by[port-2], frames[i])
		}
		return by
	}
	const flows = 1000
	var frames [][]byte
	for k := range flows {
		f := base
		f.srcPort = uint16(49152 + k*7%16384)
		frames = append(frames, f.bytes(r.T))
	}
	for _, parallel := range []int{1, 2} {
		leaf := through(1, 2*parallel, frames)
		above := make([][][]byte, 0, 4)
		for agg := range 2 {
			var arrive [][]byte
			for _, link := range leaf[agg*parallel : (agg+1)*parallel] {
				arrive = append(arrive, link...)
			}
			above = append(above, through(uint64(2+agg), 2, arrive)...)
		}
		for _, links := range [][][][]byte{leaf, above} {
			share := flows / len(links)
			for i, f := range links {
				if off := len(f) - share; off > share/10 || off < -share/10 {
					r.Errorf("%d links to each aggregation switch: link %d of %d carries %d flows, want %d by 10 %%", parallel, i, len(links), len(f), share)
				}
			}
		}
	}
}
