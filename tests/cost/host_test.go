package cost_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	mpacket "github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/tests/race"
)

// TestHostUnderLoad: a flood of data of invented flows does not make a host agent exceed its memory bound, and the
// agent ends within a second during the flood. It needs root.
func TestHostUnderLoad(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	pair := veth.New(t, 1)[0]
	link, err := net.InterfaceByName(pair.Switch)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := mpacket.Listen(link, mpacket.Raw, unix.ETH_P_LOOPBACK, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	v := start(t, address(t), "host", "--interface", pair.Host, "--ip", "10.0.0.1", "--rate", "10Gbps", "--listen-only", "--udp-port", "50151", "--interval", "100ms")
	f := packet.Frame{
		DstMAC: packet.Gateway, SrcMAC: packet.Gateway, Dst: netip.AddrFrom4([4]byte{10, 0, 0, 1}), TTL: 64, ECN: packet.CE, SrcPort: 1, DstPort: maxqd.Port, ShimPort: maxqd.Port,
		Payload: make([]byte, 100), BTH: packet.BTH{Opcode: packet.SendOnly, PKey: packet.DefaultPKey},
	}
	to, sent, frame := &mpacket.Addr{HardwareAddr: packet.Gateway[:]}, uint32(0), []byte(nil)
	flood := func(until <-chan time.Time, done <-chan struct{}) {
		for {
			select {
			case <-until:
				return
			case <-done:
				return
			default:
			}
			sent++
			f.Src = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 11<<24|sent)))
			f.BTH.DestQP = 1 + sent&0xffff
			frame = f.Append(frame[:0])
			_, _ = conn.WriteTo(frame, to) // the interface's queue may be full
		}
	}
	flood(time.After(4*time.Second), nil)
	ended, flooded := make(chan struct{}), make(chan struct{})
	go func() { defer close(flooded); flood(nil, ended) }()
	v.check("host")
	close(ended)
	<-flooded
	if out := v.log.String(); !strings.Contains(out, "received") || sent < 100_000 {
		t.Errorf("%d frames were sent, and the host shows none:\n%s", sent, out)
	}
}
