package symbolic

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/tests/race"
)

// cpuPorts are the controller's ports in the chips' programs.
var cpuPorts = map[string]uint32{"tofino1": 320, "tofino2": 0}

// beyondChips returns the reason why a case does not hold for the chips' program, "" if it does:
// docs/targets/tofino.md, "Differences in behaviour".
func (c *testCase) beyondChips(frame []byte) string {
	if slices.Contains([]string{"admission", "source", "buffer", "punt_limit"}, c.Drop) {
		return "a table that chips do not have"
	}
	if strings.HasSuffix(c.Name, "/members") {
		return "which of several next hops"
	}
	if c.Port == ids.CPUPort {
		if mode := frame[1] & 15; mode == ids.PacketOutRefresh || mode == ids.PacketOutForget {
			return "a packet-out about PAUSE"
		}
		frame = frame[controllerBytes:]
	}
	const ethernet, ip, udp, shim, bth = 14, 20, 8, 4, 12
	if len(frame) < ethernet+ip || binary.BigEndian.Uint16(frame[12:]) != ids.EtherTypeIPv4 {
		return ""
	}
	h := frame[ethernet:]
	if int(binary.BigEndian.Uint16(h[2:])) > len(h) {
		return "a frame that is too short for its packet"
	}
	if h[0] != 0x45 || h[9] != ids.IPProtocolUDP || len(h) < ip+udp || binary.BigEndian.Uint16(h[6:])&0x3fff != 0 ||
		binary.BigEndian.Uint16(h[ip+2:]) != ids.UDPPortMaxQD || c.Drop == "ipv4_header" {
		return ""
	}
	u := h[ip:]
	need := udp + shim
	if len(u) >= need && u[udp]>>4 == ids.MaxQDVersion && u[udp+1] == ids.MaxQDNextBTH {
		need += bth
	}
	if len(u) < need || u[udp]>>4 != ids.MaxQDVersion || binary.BigEndian.Uint16(u[4:]) < udp+shim {
		return "what has no shim on its port"
	}
	return ""
}

// TestChips plays the kept cases on the source of the chips' program.
func TestChips(t *testing.T) {
	race.SkipSequential(t)
	for _, name := range p4src.Chips() {
		chip, err := Load(os.DirFS(sources), name)
		if err != nil {
			t.Fatal(err)
		}
		played, left := 0, map[string]int{}
		for _, c := range selection(t) {
			frame, err := hex.DecodeString(c.Frame)
			if err != nil {
				t.Fatal(err)
			}
			if why := c.beyondChips(frame); why != "" {
				left[why]++
				continue
			}
			played++
			if diff := c.check(c.onChip(t, chip, cpuPorts[name], frame)); diff != "" {
				t.Errorf("%s, %s: %s", name, c.Name, diff)
			}
		}
		t.Logf("%s: %d cases as on v1model; not comparable: %v", name, played, left)
	}
}

// onChip plays a case on a newly started chip. The result has v1model's number for the controller's port.
func (c *testCase) onChip(t *testing.T, chip *Chip, cpu uint32, frame []byte) (o outcome) {
	t.Helper()
	chip.Restart()
	entities, err := c.entities()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entities {
		if te := e.GetTableEntry(); te != nil && chip.Has(te.GetTableId()) {
			if err := chip.Insert(te); err != nil {
				t.Fatal(err)
			}
		}
	}
	port := c.Port
	if port == ids.CPUPort {
		port = cpu
	}
	a, err := chip.Ingress(port, frame)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	for i := range uint64(ids.DropReasonCells) {
		for range chip.Counter(ids.CounterDropsName, i).Packets {
			o.drops = append(o.drops, ids.DropReason(int(i)))
		}
	}
	if a.Dropped {
		return o
	}
	l, err := chip.Egress(a, Departure{})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	if l.Frame != nil {
		out := a.Port
		if out == cpu {
			out = ids.CPUPort
			if h := binary.BigEndian.Uint16(l.Frame); uint32(h>>7) == cpu {
				binary.BigEndian.PutUint16(l.Frame, ids.CPUPort<<7|h&0x7f)
			}
		}
		o.frames = append(o.frames, target.Frame{Port: out, Data: l.Frame})
	}
	return o
}
