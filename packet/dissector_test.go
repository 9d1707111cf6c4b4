package packet_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// dissector loads Headgate's dissector into tshark.
var dissector = []string{"-X", "lua_script:../deploy/wireshark/headgate.lua"}

// The dissector reads the shim, on the port in the fabric file, and lets Wireshark's own dissector read the BTH
// behind it. It leaves other packets on that port alone.
func TestDissectorReadsShim(t *testing.T) {
	for _, port := range []uint16{0, 40000} {
		t.Run(fmt.Sprint(port), func(t *testing.T) {
			first, answer, long := data(), ack(), data()
			args := dissector
			if port != 0 {
				first.DstPort, first.ShimPort = port, port
				answer.DstPort, answer.ShimPort = port, port
				long.DstPort, long.ShimPort = port, port
				args = append(args[:2:2], "-o", fmt.Sprintf("headgate.udp_port:%d", port))
			}
			first.Shim.MaxQD, answer.Shim.MaxQD, answer.Shim.Echo, long.Shim.MaxQD = 517, 12, true, 0xffff
			foreign := first.Append(nil)
			foreign[42] = 0x20 // version 2
			got := tsharkOf(t, layers.LinkTypeEthernet, [][]byte{first.Append(nil), answer.Append(nil), long.Append(nil), foreign}, args,
				"headgate.max_qd", "headgate.echo", "headgate.next_header", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
				"_ws.expert.message", "_ws.malformed")
			compareLines(t, got, []string{
				"517|0|1|1|0x123456|11259375||",
				"12|1|1|17|0x000007|9||",
				"65535|0|1|1|0x123456|11259375|The queueing delay is this long or longer|",
				"|||||||",
			})
		})
	}
}

// The dissector reads the TCP option behind any other options, and leaves foreign options to Wireshark.
func TestDissectorReadsOption(t *testing.T) {
	eth := layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}
	ip := layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	segment := func(options []byte) []byte {
		tcp := make([]byte, 20, 60)
		tcp[12], tcp[13] = byte(5+len(options)/4)<<4, 0x10
		buf := gopacket.NewSerializeBuffer()
		err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
			&eth, &ip, gopacket.Payload(append(tcp, options...)))
		if err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	timestamps := []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	long := append(timestamps, 254, 8, 0x48, 0x47, 0xff, 0xff, 0, 9)
	foreign := append(timestamps, 254, 8, 0xe2, 0xd4, 0, 0, 0, 0)
	got := tsharkOf(t, layers.LinkTypeEthernet, [][]byte{segment([]byte{254, 4, 0x48, 0x47}), segment([]byte{254, 8, 0x48, 0x47, 0, 3, 2, 5}),
		segment(long), segment(foreign), segment(nil)},
		append(dissector[:2:2], "-o", "tcp.analyze_sequence_numbers:FALSE"), // no warning about the values
		"headgate_tcp.max_qd", "headgate_tcp.echo", "tcp.options.timestamp.tsval", "_ws.expert.message", "_ws.malformed")
	compareLines(t, got, []string{
		"|||The sender offers maxQD|",
		"3|517|||",
		"65535|9|1|The queueing delay is this long or longer|",
		"||1||",
		"||||",
	})
}

// The dissector and pollreport.Parse agree on reports of every layout.
func TestDissectorReadsPollReports(t *testing.T) {
	golden := pollreport.Report{
		Port: 7, LastDelay: 0xabcd, Time: 0x010203040506, DepartedBytes: 0x0a0b0c0d0e0f, DepartedPackets: 0x112233445566, AdmissionDrops: 8,
		QueueBytes: [8]uint32{0, 1, 2, 3, 4, 5, 6, 0xffffffff},
	}
	whole, alone := golden, golden
	whole.Buffer = pollreport.Buffer{
		Victim: true, PausedQueues: 0x88, LastPause: 0x0405060708ff, PortShared: 160, Insured: 161,
		Private: [8]uint32{16, 17, 18, 19, 20, 21, 22, 23}, Shared: [8]uint32{32, 33, 34, 35, 36, 37, 38, 39},
		Headroom: [8]uint32{48, 49, 50, 51, 52, 53, 54, 55},
		Used:     pollreport.Pools{Private: 64, Shared: 65, Headroom: 66, Insurance: 67},
		Peak:     pollreport.Pools{Private: 80, Shared: 81, Headroom: 82, Insurance: 83},
	}
	alone.PortOnly = true

	in := func(r pollreport.Report) []byte {
		return append(r.Append([]byte{0xff, 0x70 | ids.PacketInPoll}), 0xc0, 0xff, 0xee)
	}
	short := in(whole)[:100] // no guessing from a part
	got := tsharkOf(t, layers.LinkType(161), [][]byte{in(whole), in(alone), short}, dissector,
		"headgate_in.port", "headgate_in.queue", "headgate_in.reason", "headgate_report.port", "headgate_report.last_delay",
		"headgate_report.time", "headgate_report.departed_bytes", "headgate_report.departed_packets", "headgate_report.admission_drops",
		"headgate_report.queue_7", "headgate_report.victim", "headgate_report.port_paused", "headgate_report.paused_queues",
		"headgate_report.last_pause", "headgate_report.insured", "headgate_report.private_0", "headgate_report.shared_7",
		"headgate_report.headroom_7", "headgate_report.used_insurance", "headgate_report.peak_private", "headgate_report.peak_insurance",
		"data.data", "_ws.malformed")
	port := fmt.Sprintf("510|7|1|7|%d|%d|%d|%d|8|4294967295|", golden.LastDelay, golden.Time, golden.DepartedBytes, golden.DepartedPackets)
	compareLines(t, got, []string{
		port + fmt.Sprintf("1|0|0x88|%d|161|16|39|55|67|80|83|c0ffee|", whole.Buffer.LastPause),
		port + strings.Repeat("|", 11) + "c0ffee|",
		"510|7|1" + strings.Repeat("|", 19) + fmt.Sprintf("%x|", short[2:]),
	})
}

// A packet-out of the controller is dissected up to the Ethernet frame in it.
func TestDissectorReadsPacketOut(t *testing.T) {
	f := data()
	out := f.Append(binary.BigEndian.AppendUint16(nil, 3<<7|5<<4|ids.PacketOutPipeline))
	got := tsharkOf(t, layers.LinkType(162), [][]byte{out}, dissector, "headgate_out.port", "headgate_out.queue", "headgate_out.mode", "ip.dst", "headgate.max_qd", "_ws.malformed")
	compareLines(t, got, []string{fmt.Sprintf("3|5|1|%s|%d|", f.Dst, f.Shim.MaxQD)})
}
