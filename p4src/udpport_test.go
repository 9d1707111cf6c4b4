package p4src

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/p4src/ids"
)

// TestWithUDPPort: the port changes where it stands, and nothing else does.
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

// TestWithUDPPortRefuses: a program that is not as expected is not changed in part.
func TestWithUDPPortRefuses(t *testing.T) {
	const branch = `{"transition_key": [{"type": "field", "value": ["udp", "dst_port"]}], "transitions": [{"type": "hexstr", "value": "0xc3e7", "mask": null}]}`
	const compared = `{"op": "==", "left": {"type": "field", "value": ["udp", "dst_port"]}, "right": {"type": "hexstr", "value": "0xC3E7"}}`
	for _, tt := range []struct {
		name, program string
		port          uint16
		want          string // of the error; "" for none
	}{
		{"as expected", branch + "," + compared, 1, ""},
		{"no port", branch + "," + compared, 0, "UDP port 0: want 1 to 65535 but not 4791"},
		{"RoCEv2's port", branch + "," + compared, 4791, "which is RoCEv2's"},
		{"no condition", branch, 1, "1 branches of its parser, 0 conditions and 1 constants of that value in all, want 1, 1 and 2"},
		{"no branch", compared, 1, "0 branches of its parser, 1 conditions and 1"},
		{"two branches", branch + "," + branch + "," + compared, 1, "2 branches of its parser, 1 conditions and 3"},
		{"the number elsewhere", branch + "," + compared + `,{"type": "hexstr", "value": "0x00c3e7"}`, 1, "and 3 constants"},
		{"with a mask", strings.Replace(branch, "null", `"0xff00"`, 1) + "," + compared, 1, "0 branches"},
		{"the source port", branch + "," + strings.Replace(compared, "dst", "src", 1), 1, "0 conditions"},
		{"two fields", strings.Replace(branch, `]}]`, `]}, {"type": "field", "value": ["udp", "dst_port"]}]`, 1) + "," + compared, 1, "0 branches"},
		{"no JSON", "{", 1, "the compiled program: invalid character"},
	} {
		got, err := withUDPPort([]byte("["+tt.program+"]"), tt.port)
		switch {
		case tt.want == "" && (err != nil || bytes.Count(got, []byte("0x0001")) != 2):
			t.Errorf("%s: %s, %v", tt.name, got, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}
