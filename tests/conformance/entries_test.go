package conformance

import (
	"encoding/binary"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
)

// ipv4 is a frame of testdata/route.p4.
func ipv4(addr uint32) []byte { return binary.BigEndian.AppendUint32(nil, addr) }

const (
	network = 0x0a000000 // 10.0.0.0/16
	inside  = 0x0a000203
	outside = 0x0a010203
	nextHop = 0x0a000001
)

// A written entry is read back unchanged, alone and with all others. It forwards while it is there, and is gone
// after it is deleted.
func testEntries(r *rig) {
	p := r.load("route")
	entry := p.entry("routes", lpm(network, 16), 0, p.do("forward", nextHop, 3))
	key := p.entry("routes", lpm(network, 16), 0, nil)
	all := &p4v1.TableEntry{TableId: p.table("routes")}

	r.reads(key)
	r.passes(1, ipv4(inside), 1, ipv4(inside))
	r.write(insert(entry))
	r.reads(key, entry)
	r.reads(all, entry)
	r.passes(1, ipv4(inside), 3, ipv4(nextHop))
	r.passes(1, ipv4(outside), 1, ipv4(outside))
	r.refused(codes.AlreadyExists, insert(entry))

	entry.Action = p.do("forward", nextHop, 4)
	r.write(modify(entry))
	r.reads(key, entry)
	r.passes(1, ipv4(inside), 4, ipv4(nextHop))

	r.write(remove(key))
	r.reads(key)
	r.reads(all)
	r.passes(1, ipv4(inside), 1, ipv4(inside))
	r.refused(codes.NotFound, remove(key))
	r.refused(codes.NotFound, modify(entry))
}

// The default entry is the program's until it is modified, and again after it is reset.
func testDefaultEntry(r *rig) {
	p := r.load("route")
	entry := func(a *p4v1.TableAction) *p4v1.TableEntry {
		return &p4v1.TableEntry{TableId: p.table("routes"), IsDefaultAction: true, Action: a}
	}
	r.reads(entry(nil), entry(p.do("NoAction")))
	r.passes(1, ipv4(outside), 1, ipv4(outside))

	r.write(modify(entry(p.do("forward", nextHop, 5))))
	r.reads(entry(nil), entry(p.do("forward", nextHop, 5)))
	r.passes(1, ipv4(outside), 5, ipv4(nextHop))

	r.write(modify(entry(p.do("discard"))), insert(p.entry("routes", lpm(network, 16), 0, p.do("NoAction"))))
	r.reads(entry(nil), entry(p.do("discard")))
	r.send(1, ipv4(outside))
	r.passes(1, ipv4(inside), 1, ipv4(inside)) // and nothing before it

	r.write(modify(entry(nil)))
	r.reads(entry(nil), entry(p.do("NoAction")))
	r.passes(1, ipv4(outside), 1, ipv4(outside))
}

// tag is a frame of testdata/choose.p4.
func tag(table byte, value uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{table}, value)
}

const (
	byMask   = 0
	byOption = 1
)

func testTernaryRead(r *rig) {
	p := r.load("choose")
	entry := p.entry("by_mask", ternary(0xaabb, 0xffff), 128, p.do("send", 2))
	key := p.entry("by_mask", ternary(0xaabb, 0xffff), 128, nil)
	r.write(insert(entry))
	r.reads(key, entry)
	r.reads(p.entry("by_mask", ternary(0xaabb, 0xffff), 127, nil)) // another entry, which does not exist
}

// The higher priority wins.
func testTernaryPriority(r *rig) {
	p := r.load("choose")
	low := p.entry("by_mask", ternary(0xaabb, 0xffff), 128, p.do("send", 1))
	high := p.entry("by_mask", ternary(0xaa0b, 0xff0f), 333, p.do("send", 2))
	f := tag(byMask, 0xaabb)
	r.write(insert(low))
	r.passes(3, f, 1, f)
	r.write(insert(high))
	r.passes(3, f, 2, f)
	other := tag(byMask, 0xaacb) // matches the mask only
	r.passes(3, other, 2, other)
	r.write(remove(high))
	r.passes(3, f, 1, f)
	r.passes(3, other, 3, other)
}

// Priority 0 is refused if entries can overlap.
func testTernaryPriorityZero(r *rig) {
	p := r.load("choose")
	r.refused(codes.InvalidArgument, insert(p.entry("by_mask", ternary(0xaabb, 0xffff), 0, p.do("send", 1))))
	r.reads(&p4v1.TableEntry{TableId: p.table("by_mask")})
}

func testOptionalRead(r *rig) {
	p := r.load("choose")
	entry := p.entry("by_option", optional(0xaabb), 128, p.do("send", 2))
	any := p.entry("by_option", nil, 1, p.do("send", 3))
	r.write(insert(entry), insert(any))
	r.reads(p.entry("by_option", optional(0xaabb), 128, nil), entry)
}

// An entry for all values can exist beside one for a single value.
func testOptionalBoth(r *rig) {
	p := r.load("choose")
	all := p.entry("by_option", nil, 128, p.do("send", 1))
	one := p.entry("by_option", optional(0xaabb), 333, p.do("send", 2))
	f, other := tag(byOption, 0xaabb), tag(byOption, 0xaabc)
	r.write(insert(all), insert(one))
	r.passes(3, f, 2, f)
	r.passes(3, other, 1, other)
	r.write(remove(one))
	r.passes(3, f, 1, f)
}

func testOptionalPriorityZero(r *rig) {
	p := r.load("choose")
	r.refused(codes.InvalidArgument, insert(p.entry("by_option", optional(0xaabb), 0, p.do("send", 1))))
	r.refused(codes.InvalidArgument, insert(p.entry("by_option", nil, 0, p.do("send", 1))))
	r.reads(&p4v1.TableEntry{TableId: p.table("by_option")})
}
