package lldp

import (
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/headgate/headgate/controller/topology"
)

func TestProbe(t *testing.T) {
	p := probe{fabric: "leaf-spine", node: "leaf1", port: 3, ttl: 3 * time.Second}
	frame := p.encode(topology.MAC{2, 0, 0, 1, 0, 3})
	got, ok := decode(frame)
	if !ok || got != p {
		t.Errorf("decode = %+v, %v, want %+v", got, ok, p)
	}
	if len(frame) < 60 {
		t.Errorf("the frame has %d bytes", len(frame))
	}
}

// TestOthersReadIt decodes the frame with another implementation.
func TestOthersReadIt(t *testing.T) {
	frame := probe{fabric: "f", node: "leaf1", port: 3, ttl: 2500 * time.Millisecond}.encode(topology.MAC{2})
	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	lldp, ok := packet.Layer(layers.LayerTypeLinkLayerDiscovery).(*layers.LinkLayerDiscovery)
	if !ok {
		t.Fatalf("no LLDP in %v", packet)
	}
	if lldp.ChassisID.Subtype != layers.LLDPChassisIDSubTypeLocal || string(lldp.ChassisID.ID) != "leaf1" {
		t.Errorf("chassis id = %+v", lldp.ChassisID)
	}
	if lldp.PortID.Subtype != layers.LLDPPortIDSubtypeLocal || string(lldp.PortID.ID) != "3" || lldp.TTL != 3 {
		t.Errorf("port id = %+v, TTL %d", lldp.PortID, lldp.TTL)
	}
}

func TestDecodeErrors(t *testing.T) {
	good := probe{fabric: "f", node: "n", port: 1, ttl: time.Second}.encode(topology.MAC{2})
	tests := []struct {
		name  string
		frame []byte
	}{
		{"empty", nil},
		{"another EtherType", append(append([]byte{}, good[:12]...), 8, 0)},
		{"no TLV", good[:14]},
		{"cut inside a TLV", good[:17]},
		{"no port", append(append([]byte{}, good[:18]...), 0, 0)},
		{"port is a word", append(append([]byte{}, good[:18]...), 4, 2, 7, 'x', 0, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p, ok := decode(tt.frame); ok {
				t.Errorf("it is taken for %+v", p)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(probe{fabric: "leaf-spine", node: "leaf1", port: 3, ttl: 3 * time.Second}.encode(topology.MAC{2}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		p, ok := decode(frame)
		if !ok {
			return
		}
		if len(p.node) > 500 || len(p.fabric) > 500 || p.ttl == 0 {
			return // larger than a TLV can be
		}
		again, ok := decode(p.encode(topology.MAC{2}))
		if !ok || again != p {
			t.Fatalf("%+v became %+v, %v", p, again, ok)
		}
	})
}
