package port

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// drawn is a TCP or UDP frame with a right checksum, by gopacket.
func drawn(t *rapid.T) []byte {
	var stack []gopacket.SerializableLayer
	eth := &layers.Ethernet{SrcMAC: bytes.Repeat([]byte{2}, 6), DstMAC: bytes.Repeat([]byte{4}, 6)}
	next := &eth.EthernetType
	stack = append(stack, eth)
	for range rapid.IntRange(0, 2).Draw(t, "tags") {
		tag := &layers.Dot1Q{VLANIdentifier: 7}
		*next = layers.EthernetTypeDot1Q
		next = &tag.Type
		stack = append(stack, tag)
	}
	udp := rapid.Bool().Draw(t, "udp")
	protocol := layers.IPProtocolTCP
	if udp {
		protocol = layers.IPProtocolUDP
	}
	var network gopacket.NetworkLayer
	if rapid.Bool().Draw(t, "IPv6") {
		*next = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: protocol, SrcIP: rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "from"), DstIP: rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "to")}
		network, stack = ip, append(stack, ip)
	} else {
		*next = layers.EthernetTypeIPv4
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 9, Id: rapid.Uint16().Draw(t, "id"), Protocol: protocol, SrcIP: rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "from"), DstIP: rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "to")}
		network, stack = ip, append(stack, ip)
	}
	if udp {
		u := &layers.UDP{SrcPort: 5, DstPort: 6}
		_ = u.SetNetworkLayerForChecksum(network)
		stack = append(stack, u)
	} else {
		c := &layers.TCP{SrcPort: 5, DstPort: 6, Seq: rapid.Uint32().Draw(t, "sequence"), ACK: true, PSH: true, FIN: rapid.Bool().Draw(t, "fin"), CWR: rapid.Bool().Draw(t, "cwr"),
			Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: make([]byte, 8)}}}
		_ = c.SetNetworkLayerForChecksum(network)
		stack = append(stack, c)
	}
	stack = append(stack, gopacket.Payload(rapid.SliceOfN(rapid.Byte(), 0, 9000).Draw(t, "payload")))
	out := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(out, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPartialChecksum: a frame with only the pseudo header's sum gets the checksum that gopacket
// computes. A frame with a complete checksum is not changed.
func TestPartialChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn(t)
		f := bytes.Clone(want)
		seg, ok := transportOf(f)
		if !ok {
			t.Fatalf("no segment in %x", f)
		}
		if seg.complete(f); !bytes.Equal(f, want) {
			t.Fatal("complete changes a complete frame")
		}
		binary.BigEndian.PutUint16(seg.checksum(f), fold(seg.pseudo(f)))
		if !seg.partial(f) {
			t.Fatal("a partial checksum is not seen")
		}
		if seg.complete(f); !bytes.Equal(f, want) {
			t.Fatalf("checksum %x, want %x", seg.checksum(f), seg.checksum(want))
		}
	})
}

// TestSplit: the parts of a long segment, or of merged datagrams, have the right lengths and
// checksums. Their data, joined, is the segment's.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawn(t)
		size := rapid.SampledFrom([]int{0, 1, 100, 1460}).Draw(t, "bytes of a segment")
		whole, _ := transportOf(f)
		parts, _ := whole.split(nil, nil, f, size)
		udp, header := whole.protocol == protocolUDP, whole.segment+32
		if udp {
			header = whole.segment + 8
		}
		if header == whole.end || size == 0 {
			if parts != nil {
				t.Fatal("a frame without data, or without a size, was split")
			}
			return
		}
		var data []byte
		for i, p := range parts {
			s, ok := transportOf(p)
			if !ok || s.end != len(p) || i < len(parts)-1 && len(p) != header+size {
				t.Fatalf("part %d: %+v, %v, %d bytes", i, s, ok, len(p))
			}
			if udp {
				if n := int(binary.BigEndian.Uint16(p[s.segment+4:])); n != s.end-s.segment {
					t.Fatalf("part %d: UDP length %d, want %d", i, n, s.end-s.segment)
				}
			} else {
				if at := binary.BigEndian.Uint32(p[s.segment+4:]) - binary.BigEndian.Uint32(f[s.segment+4:]); int(at) != len(data) {
					t.Fatalf("part %d: sequence %d, want %d", i, at, len(data))
				}
				last, flags := i == len(parts)-1, p[s.segment+13]
				if fin := f[s.segment+13]&1 != 0; last && (flags&1 != 0) != fin || !last && flags&0x09 != 0 || i > 0 && flags&0x80 != 0 {
					t.Fatalf("part %d of %d: flags %#x", i, len(parts), flags)
				}
			}
			data = append(data, p[header:]...)
			again := bytes.Clone(p)
			if s.complete(again); !bytes.Equal(again, p) {
				t.Fatalf("part %d: its checksum is wrong", i)
			}
			if p[s.network]>>4 == 4 && fold(sum(p[s.network:s.segment])) != 0xffff {
				t.Fatalf("part %d: its IPv4 checksum is wrong", i)
			}
		}
		if !bytes.Equal(data, f[header:whole.end]) {
			t.Fatal("the data differ")
		}
	})
}

// FuzzTransport: no bytes make the port read or write outside a frame.
func FuzzTransport(f *testing.F) {
	f.Add(make([]byte, 60), 1500)
	f.Add([]byte("\x02\x02\x02\x02\x02\x02\x04\x04\x04\x04\x04\x04\x08\x00\x45\x00\x00\x29\x00\x01\x00\x00\x40\x06\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02\x00\x05\x00\x06\x00\x00\x00\x01\x00\x00\x00\x01\x50\x18\x00\x00\x00\x00\x00\x00\x61"), 50)
	f.Fuzz(func(t *testing.T, frame []byte, size int) {
		s, ok := transportOf(frame)
		if !ok {
			return
		}
		_ = s.partial(frame)
		parts, _ := s.split(nil, nil, frame, size%2000)
		for _, p := range parts {
			if len(p) > len(frame) {
				t.Fatal("a part is longer than the whole")
			}
			if len(frame) > 1<<16 {
				break
			}
		}
		s.complete(frame)
	})
}

func BenchmarkPartial(b *testing.B) {
	frame := make([]byte, 1514)
	copy(frame[12:], []byte{0x08, 0x00, 0x45, 0, 0x05, 0xdc, 0, 1, 0, 0, 64, protocolTCP})
	frame[14+20+12] = 0x50
	for b.Loop() {
		if s, ok := transportOf(frame); ok {
			_ = s.partial(frame)
		}
	}
}
