package symbolic

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// The chip's program hashes a flow as internal/ecmp does, for every choice of fields in the configuration: UDP,
// RoCE, and RoCE behind a shim, over both IP versions.
func TestChoice(t *testing.T) {
	const seed = 0xdeadbeef
	for _, p := range profiles {
		chip := load(t, os.DirFS(p4), p.name)
		for _, by := range []ecmp.Fields{ecmp.FiveTuple, ecmp.QueuePair, ecmp.FlowLabel} {
			b := newBoth(t, chip, p, compiled(t), 1)
			six := uint32(ids.ActionHashFiveTupleIPv6)
			if by == ecmp.FlowLabel {
				six = ids.ActionHashFlowLabel
			}
			b.write(t, route(1), routeIPv6(1), control.SetDefault(ids.TableECMPHash, p4rtmsg.Do(ids.ActionHashFiveTuple, seed)),
				control.SetDefault(ids.TableECMPHashIPv6, p4rtmsg.Do(six, seed)))
			if by == ecmp.QueuePair {
				b.write(t, p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECMPHash, 0, p4rtmsg.Do(ids.ActionHashQueuePair, seed), p4rtmsg.Exact(ids.FieldECMPHashRoCE, 1))),
					p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECMPHashIPv6, 0, p4rtmsg.Do(ids.ActionHashQueuePairIPv6, seed), p4rtmsg.Exact(ids.FieldECMPHashIPv6RoCE, 1))))
			}
			for n := range uint32(120) {
				flow := ecmp.Flow{Src: host(2, n), Dst: host(1, 7*n%256), Protocol: ids.IPProtocolUDP, SrcPort: uint16(40_000 + n), QueuePair: 0x123400 + n}
				f := make([]byte, 160)
				ip := f[14:]
				udp := ip[20:]
				if n%2 == 0 {
					flow.Src, flow.Dst, flow.FlowLabel = hostIPv6(2, n), hostIPv6(1, 7*n%256), 0x54300+n
					binary.BigEndian.PutUint16(f[12:], ids.EtherTypeIPv6)
					udp = ip[40:]
					binary.BigEndian.PutUint32(ip, 6<<28|flow.FlowLabel)
					copy(ip[4:], []byte{0, byte(len(udp)), ids.IPProtocolUDP, 9})
					copy(ip[8:], flow.Src.AsSlice())
					copy(ip[24:], flow.Dst.AsSlice())
				} else {
					binary.BigEndian.PutUint16(f[12:], ids.EtherTypeIPv4)
					copy(ip, []byte{0x45, 0, 0, byte(len(ip)), 0, 0, 0, 0, 9, ids.IPProtocolUDP})
					copy(ip[12:], flow.Src.AsSlice())
					copy(ip[16:], flow.Dst.AsSlice())
					binary.BigEndian.PutUint16(ip[10:], internet(ip[:20]))
				}
				bth := udp[8:]
				if by == ecmp.FlowLabel {
					flow.By = by
				}
				switch n % 3 {
				case 0:
					flow.DstPort = 53
				case 1:
					flow.DstPort, flow.By = ids.UDPPortRoCE, by // for IPv4, flow-label means the five-tuple
				case 2:
					flow.DstPort, flow.By = ids.UDPPortMaxQD, by
					copy(bth, []byte{ids.MaxQDVersion << 4, ids.MaxQDNextBTH})
					bth = bth[4:]
				}
				copy(bth[2:], []byte{0xff, 0xff, 0, 0x12, 0x34, byte(n)})
				binary.BigEndian.PutUint16(udp, flow.SrcPort)
				binary.BigEndian.PutUint16(udp[2:], flow.DstPort)
				binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
				a, err := chip.Ingress(2, f)
				if err != nil || a.Dropped {
					t.Fatalf("%s: %v, dropped %v", p.name, err, a.Dropped)
				}
				if want := flow.Hash(seed); a.Choice != want {
					t.Errorf("%s, by %d, %+v: hash %#x, want %#x", p.name, by, flow, a.Choice, want)
				}
			}
		}
	}
}
