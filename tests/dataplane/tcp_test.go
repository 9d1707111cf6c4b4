package dataplane

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// timestamps and sack are TCP options with two NOPs in front, as Linux writes them.
func timestamps() []byte { return []byte{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8} }

// sack has the bytes of a maxQD option in its last block.
func sack(blocks int) []byte {
	b := append([]byte{1, 1, 5, byte(2 + 8*blocks)}, make([]byte, 8*(blocks-1))...)
	return tcpOption{Echo: 5}.Append(b)
}

// segment turns the frame into TCP with options and a correct checksum.
func (r *rig) segment(f frame, options ...[]byte) []byte {
	r.Helper()
	all := bytes.Join(options, nil)
	f.tcp, f.payload = true, append(all, f.payload...)
	b := f.bytes(r.T)
	tcp := b[l4(b):]
	tcp[12], tcp[13] = byte(20+len(all))/4<<4, 0x10
	tcp[16], tcp[17] = 0, 0
	binary.BigEndian.PutUint16(tcp[16:], ^segmentSum(b))
	return b
}

// segmentSum is the sum of a TCP segment of even length and its pseudo header; 0xffff if its checksum is correct.
func segmentSum(b []byte) uint16 {
	at, addresses := l4(b), 8
	if at != 34 {
		addresses = 32
	}
	length := len(b) - at
	pseudo := []byte{0, 6, byte(length >> 8), byte(length)}
	return sum(slices.Concat(b[at-addresses:at], pseudo, b[at:]))
}

// testMaxQDTCP sends segments with the option through a queue. Wherever Linux puts the option, maxQD is raised,
// the checksum stays correct, and all other bytes stay unchanged.
func testMaxQDTCP(r *rig) {
	option := tcpOption{Echo: 0xfffe}.Append(nil)
	last := tcpOption{MaxQD: ids.Saturated16}.Append(nil)
	f := r.frame(1, 2)
	frames := [][]byte{r.segment(f, last), r.segment(f, timestamps(), last)}
	kept := len(frames)
	for _, before := range [][]byte{
		nil, timestamps(), sack(1), sack(2), sack(3),
		append(timestamps(), sack(1)...), append(timestamps(), sack(2)...),
	} {
		frames = append(frames, r.segment(f, before, option))
	}
	p := burstWithShims(r, 2, frames)
	var o tcpOption
	for i, got := range p.frames {
		at := l4(got.data)
		options := got.data[at+20 : at+int(got.data[at+12]>>4)*4]
		must(r.T, o.Decode(options[len(options)-maxqd.OptionLen:]))
		want := bytes.Clone(frames[i][at:])
		if i >= kept && !(stampOption(want, o.MaxQD) && p.plausible(o.MaxQD, 0, 0)) {
			r.Errorf("segment %d is stamped with %d µs, want about %d", i, o.MaxQD, i*shimGap)
		}
		if !bytes.Equal(got.data[at:], want) || segmentSum(got.data) != 0xffff {
			r.Errorf("segment %d left as %x with sum %#x, want %x with 0xffff", i, got.data[at:], segmentSum(got.data), want)
		}
	}
	if report := r.poll(2); report.LastDelay != o.MaxQD {
		r.Errorf("the last stamp is %d, the poll's last delay %d", o.MaxQD, report.LastDelay)
	}
	r.noDropsBut()
}

// testMaxQDTCPForeign sends TCP without the option, or with bytes that only look like one, through a queue: each
// leaves unchanged.
func testMaxQDTCPForeign(r *rig) {
	option := tcpOption{}.Append(nil)
	f := r.frame(1, 2)
	frames := [][]byte{r.segment(f), r.segment(f, timestamps())}
	add := func(options ...[]byte) { frames = append(frames, r.segment(f, options...)) }
	// Options of every length; the last bytes are SACK's.
	for blocks := 1; blocks <= 4; blocks++ {
		add(sack(blocks))
		if blocks < 4 {
			add(timestamps(), sack(blocks))
		}
	}
	add(appendOffer(nil))
	add(option, timestamps())
	add(timestamps(), []byte{254, 8, 0x48, 0x48, 0, 0, 0, 0})
	add(timestamps(), []byte{254, 6, 0x48, 0x47, 0, 0, 0, 0})
	add([]byte{19, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, option)
	add([]byte{1, 1, 8, 20, 0, 0, 0, 0, 0, 0, 0, 0}, option) // a malformed option reaches into our option
	add(sack(1)[:4], make([]byte, 16), option)               // lengths that do not fit the data offset
	for offset := range byte(16) {
		if b := r.segment(f, timestamps(), option); offset != 10 {
			b[l4(b)+12] = offset << 4
			frames = append(frames, b)
		}
	}
	// The header is longer than the packet, which ends in Ethernet's padding or at once.
	for _, cut := range []int{4, 8, 12} {
		bare := f
		bare.payload = nil
		b := r.segment(bare, option)
		if r.six {
			binary.BigEndian.PutUint16(b[18:], uint16(len(b)-54-cut))
		} else {
			binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14-cut))
			fixChecksum(b)
		}
		frames = append(frames, b, b[:len(b)-cut])
	}
	if !r.six { // the first fragment
		b := r.segment(f, option)
		b[20] = 0x20
		fixChecksum(b)
		frames = append(frames, b)
	}
	frames = append([][]byte{r.segment(f)}, frames...) // it leaves at once, the others wait
	for i, got := range burstWithShims(r, 2, frames).frames {
		if at := l4(got.data); i > 0 && !bytes.Equal(got.data[at:], frames[i][at:]) && at+12 < len(frames[i]) {
			r.Errorf("segment %d changed from %x to %x", i, frames[i][at:], got.data[at:])
		}
	}
	r.noDropsBut()
}

// testMaxQDTCPPause pauses a class by segments with the option: the PFC frame contains nothing of them.
func testMaxQDTCPPause(r *rig) {
	b := newBufferRig(r)
	c := bufferConfig(headroom.Static)
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 10 * units.Kbps // nothing is refreshed
	}
	b.run(c)
	b.slow()
	f := r.frame(3, slowPort)
	f.dscp, f.payload = 5, make([]byte, bufferBytes-100)
	for range 4 {
		b.send(3, r.segment(f, timestamps(), sack(2), tcpOption{}.Append(nil)))
	}
	if got := b.signal(3); got.classes != 1<<5 {
		r.Errorf("PFC frame for classes %#x, want %#x", got.classes, 1<<5)
	}
	b.receive(slowPort, 4)
	b.signal(3)
	b.quiet()
}
