package p4src

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/headgate/headgate/p4src/ids"
)

// WithUDPPort returns JSON for another UDP port of packets with a maxQD shim than
// ids.UDPPortMaxQD, 1 … 65535 but not ids.UDPPortRoCE. The number is a constant of the parser,
// where P4 has value sets for what an operator sets, but BMv2's P4Runtime server has none. So the
// compiled program is changed in the places where the number stands; the error says which of them
// were not as they should be.
func WithUDPPort(port uint16) ([]byte, error) { return withUDPPort(JSON(), port) }

func withUDPPort(program []byte, port uint16) ([]byte, error) {
	switch port {
	case ids.UDPPortMaxQD:
		return program, nil
	case 0, ids.UDPPortRoCE:
		return nil, fmt.Errorf("UDP port %d: want 1 to 65535 but not %d, which is RoCEv2's", port, ids.UDPPortRoCE)
	}
	d := json.NewDecoder(bytes.NewReader(program))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("the compiled program: %w", err)
	}
	p := portPlaces{to: fmt.Sprintf("0x%04x", port)}
	p.walk(root)
	// The parser branches on the port, and Foreign judges what came on it.
	if p.branches != 1 || p.compared != 1 || p.constants != 2 {
		return nil, fmt.Errorf("the compiled program has UDP port %d in %d branches of its parser, %d conditions and %d constants of that value in all, want 1, 1 and 2",
			ids.UDPPortMaxQD, p.branches, p.compared, p.constants)
	}
	return json.Marshal(root)
}

// portPlaces finds and changes the constants of the shim's port in BMv2's JSON.
type portPlaces struct {
	to                 string
	branches, compared int
	constants          int // of the port's value, whatever they are for
}

func (p *portPlaces) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			p.walk(e)
		}
	case map[string]any:
		if p.isPort(v) {
			p.constants++
		}
		for _, e := range v {
			p.walk(e)
		}
		p.branch(v)
		p.compare(v)
	}
}

// branch changes the parser state v, where it selects by the destination port alone.
func (p *portPlaces) branch(v map[string]any) {
	key, _ := v["transition_key"].([]any)
	if len(key) != 1 || !isDestination(key[0]) {
		return
	}
	branches, _ := v["transitions"].([]any)
	for _, b := range branches {
		if b, _ := b.(map[string]any); b != nil && p.isPort(b) && b["mask"] == nil {
			b["value"] = p.to
			p.branches++
		}
	}
}

// compare changes the expression v, where it compares the destination port with a constant.
func (p *portPlaces) compare(v map[string]any) {
	right, _ := v["right"].(map[string]any)
	if v["op"] == "==" && isDestination(v["left"]) && p.isPort(right) {
		right["value"] = p.to
		p.compared++
	}
}

func (p *portPlaces) isPort(v map[string]any) bool {
	text, _ := v["value"].(string)
	n, err := strconv.ParseUint(text, 0, 64)
	return v["type"] == "hexstr" && err == nil && n == ids.UDPPortMaxQD
}

func isDestination(v any) bool {
	m, _ := v.(map[string]any)
	name, _ := m["value"].([]any)
	return m["type"] == "field" && len(name) == 2 && name[0] == "udp" && name[1] == "dst_port"
}
