package mininet

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// hostile is the single switch under DSH. Its edge ports accept IPv4 only from the host's own address.
func hostile(t *testing.T) []byte {
	t.Helper()
	return append(fabric(t, "single.yaml"), `
buffer: {policy: dsh, size: 2MB, lossless: [0], private: 3KB, lossy_private: 3KB, headroom: 60KB, alpha: 1/8}
source_check: {edge_ports: true}
`...)
}

// TestIgnoresPFC: one of five senders ignores the PAUSEs of an incast. Only that host's packets are lost.
func TestIgnoresPFC(t *testing.T) {
	each(t, "a host ignores PFC", again(func(t *testing.T, kind string) (o outcome) {
		n := begin(t, hostile(t), kind, 4)
		start := func(host string, args ...string) *agent {
			return n.host(host, append(args, "--law", "none", "--rate", "2Mbps", "--scale", "50000", "--ack-dscp", "56", "--pfc-class", "0=0")...)
		}
		late := n.late()
		receiver := start("h8", "--listen-only")
		var senders []*agent
		for _, host := range []string{"h2", "h3", "h4", "h5", "h6"} {
			args := []string{"--flow", "dst=" + n.hosts["h8"].IP.String()}
			if host == "h2" {
				args = append(args, "--ignore-pfc")
			}
			senders = append(senders, start(host, args...))
		}
		time.Sleep(20 * time.Second)
		var paused uint64
		for _, a := range senders {
			paused += n.stop(a).PFC.Frames
		}
		o.bear(late(), prompt(2*units.Mbps, 60*units.KB).most, "the headrooms have")
		time.Sleep(12 * time.Second) // for 2 MB to leave
		n.stop(receiver)
		by := n.losslessBy()
		own := by["s1:2"]
		n.right()
		o.figure = fmt.Sprintf("%d packets of h2 lost, %d of the others; %d PFC frames", own, n.lossless()-own, paused)
		if own == 0 || n.lossless() != own || paused == 0 {
			o.missed = append(o.missed, o.figure)
		}
		n.end()
		return o
	}))
}

// forge is a program that sends a frame, given in hexadecimal, from an interface a hundred times a second.
const forge = `
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
while True:
    for frame in sys.argv[2:]:
        out.send(bytes.fromhex(frame))
    time.sleep(0.01)
`

// TestForges: h3 sends notifications as if h8 had marked h1's flow, and PAUSEs of all classes. The source check
// drops the notifications; the PAUSEs affect only h3.
func TestForges(t *testing.T) {
	each(t, "a host forges CNPs and PFC", again(func(t *testing.T, kind string) (o outcome) {
		n := begin(t, hostile(t), kind, 4)
		start := func(host string, args ...string) *agent {
			return n.host(host, append(args, "--law", "dcqcn-vendor", "--rate", "2Mbps", "--scale", "1000", "--ack-dscp", "56", "--pfc-class", "0=0", "--warm-up", "5s")...)
		}
		late := n.late()
		receiver := start("h8", "--listen-only")
		sender := start("h1", "--flow", "dst="+n.hosts["h8"].IP.String())
		cnp := packet.Notification{
			DstMAC: packet.Gateway, SrcMAC: packet.Gateway, DSCP: 56, TTL: 64, SrcPort: 4791,
			FlowSrc: n.hosts["h1"].IP, FlowDst: n.hosts["h8"].IP,
		}
		pfc := packet.PFC{Src: packet.Gateway, Enabled: 0xff}
		for class := range pfc.Quanta {
			pfc.Quanta[class] = packet.MaxQuanta
		}
		forger := n.in("h3", python, "-c", forge, n.hosts["h3"].Interface, hex.EncodeToString(cnp.Append(nil)), hex.EncodeToString(pfc.Append(nil)))
		var said strings.Builder
		forger.Stderr = &said
		if err := forger.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		n.kill(forger)
		if said.Len() > 0 {
			t.Fatal(said.String())
		}
		s := n.stop(sender)
		o.bear(late(), time.Second, "a tenth of the ten measured seconds has")
		time.Sleep(2 * time.Second) // for the queue to empty
		got := n.stop(receiver).Received.Packets
		n.right()
		f := s.Flows[0]
		o.figure = fmt.Sprintf("the flow has %.2f of 1.89 Mb/s, was given %d CNPs and %d PFC frames, lost %d packets", f.Goodput/1e6, f.CNPs, s.PFC.Frames, f.Sent-min(f.Sent, got))
		if f.Goodput < 0.9*1.89e6 || f.CNPs > 0 || s.PFC.Frames > 0 {
			o.missed = append(o.missed, o.figure)
		}
		n.end()
		return o
	}))
}
