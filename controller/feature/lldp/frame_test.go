package lldp

import (
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/headgate/headgate/controller/topology"
)

func TestProbe(t *testing.T) {
	p := probe{fabric: "leaf-spine", node: "leaf1", port: 3, ttl: 3 * time.Second}
	frame := p.encode(topology.MAC{2, 0, 0, 1, 0, 3})
	got, err := decode(frame)
	if err != nil || got != p {
		t.Errorf("decode = %+v, %v, want %+v", got, err, p)
	}
	if len(frame) < 60 {
		t.Errorf("the frame has %d bytes", len(frame))
	}
}

// TestOthersReadIt holds the frame to what another implementation makes of it.
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
		want  string
	}{
		{"empty", nil, "not an LLDP frame"},
		{"another EtherType", append(append([]byte{}, good[:12]...), 8, 0), "not an LLDP frame"},
		{"no TLV", good[:14], "without an end TLV"},
		{"cut inside a TLV", good[:17], "TLV 1 has 2 bytes, 1 are left"},
		{"no port", append(append([]byte{}, good[:18]...), 0, 0), "is missing"},
		{"port is a word", append(append([]byte{}, good[:18]...), 4, 2, 7, 'x', 0, 0), "not a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := decode(tt.frame); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(probe{fabric: "leaf-spine", node: "leaf1", port: 3, ttl: 3 * time.Second}.encode(topology.MAC{2}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		p, err := decode(frame)
		if err != nil {
			return
		}
		if len(p.node) > 500 || len(p.fabric) > 500 || p.ttl == 0 {
			return // more than a TLV of ours holds
		}
		again, err := decode(p.encode(topology.MAC{2}))
		if err != nil || again != p {
			t.Fatalf("%+v became %+v, %v", p, again, err)
		}
	})
}
