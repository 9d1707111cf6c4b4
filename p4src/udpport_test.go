package p4src

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/p4src/ids"
)

// TestWithUDPPort: only the port's constants change.
func TestWithUDPPort(t *testing.T) {
	if ids.UDPPortMaxQD != maxqd.Port {
		t.Errorf("the program was compiled for UDP port %d, hosts have %d by default", ids.UDPPortMaxQD, maxqd.Port)
	}
	if same, err := WithUDPPort(maxqd.Port); err != nil || !bytes.Equal(same, JSON()) {
		t.Errorf("the port that was compiled changes the program, %v", err)
	}
	got, err := WithUDPPort(4000)
	if err != nil {
		t.Fatal(err)
	}
	var back, want any
	if err := json.Unmarshal(bytes.ReplaceAll(got, []byte(`"0x0fa0"`), fmt.Appendf(nil, `"0x%04x"`, maxqd.Port)), &back); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(JSON(), &want); err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(back), fmt.Sprint(want); a != b || bytes.Count(got, []byte(`"0x0fa0"`)) != 2 {
		t.Errorf("more than the two places changed, or fewer: %d", bytes.Count(got, []byte(`"0x0fa0"`)))
	}
}

// TestPlacesOfUDPPort: the program uses the port where it branches on it and where it checks packets to it. The number
// occurs nowhere else.
func TestPlacesOfUDPPort(t *testing.T) {
	var root any
	if err := json.Unmarshal(JSON(), &root); err != nil {
		t.Fatal(err)
	}
	var p places
	p.walk(root)
	if n := bytes.Count(JSON(), constant(ids.UDPPortMaxQD)); p.branches != 1 || p.compared != 1 || p.constants != 2 || n != 2 {
		t.Errorf("the compiled program has UDP port %d in %d branches of its parser, %d conditions and %d constants, %d of them as they are replaced; want 1, 1, 2 and 2",
			ids.UDPPortMaxQD, p.branches, p.compared, p.constants, n)
	}
}

// TestWithUDPPortRefuses: invalid ports, and ports of other protocols.
func TestWithUDPPortRefuses(t *testing.T) {
	for port, want := range map[uint16]string{0: "UDP port 0: want 1 to 65535 but not 4791", ids.UDPPortRoCE: "which is RoCEv2's"} {
		if _, err := WithUDPPort(port); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("port %d: error %v, want %q", port, err, want)
		}
	}
}

// places counts the constants of the shim's port in BMv2's JSON.
type places struct {
	branches, compared int
	constants          int // with the port's value, whatever their purpose
}

func (p *places) walk(v any) {
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

// branch examines the parser state v, which may select by the destination port only.
func (p *places) branch(v map[string]any) {
	key, _ := v["transition_key"].([]any)
	if len(key) != 1 || !isDestination(key[0]) {
		return
	}
	branches, _ := v["transitions"].([]any)
	for _, b := range branches {
		if b, _ := b.(map[string]any); b != nil && p.isPort(b) && b["mask"] == nil {
			p.branches++
		}
	}
}

// compare examines the expression v, which may compare the destination port with a constant.
func (p *places) compare(v map[string]any) {
	right, _ := v["right"].(map[string]any)
	if v["op"] == "==" && isDestination(v["left"]) && p.isPort(right) {
		p.compared++
	}
}

func (p *places) isPort(v map[string]any) bool {
	text, _ := v["value"].(string)
	n, err := strconv.ParseUint(text, 0, 64)
	return v["type"] == "hexstr" && err == nil && n == ids.UDPPortMaxQD
}

func isDestination(v any) bool {
	m, _ := v.(map[string]any)
	name, _ := m["value"].([]any)
	return m["type"] == "field" && len(name) == 2 && name[0] == "udp" && name[1] == "dst_port"
}
