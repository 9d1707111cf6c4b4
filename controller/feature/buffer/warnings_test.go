package buffer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/units"
)

// warned is a fabric with three hosts at a switch.
const warned = `
name: f
scale: 1000
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:22011", target: embedded}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.1.2}
  - {name: h3, ipv4: 10.0.1.3}
links:
  - {a: "s1:1", b: h1, rate: 100Mbps, delay: 200ns}
  - {a: "s1:2", b: h2, rate: 100Mbps, delay: 200ns}
  - {a: "s1:3", b: h3, rate: 400Mbps, delay: 200ns}
`

func TestWarnings(t *testing.T) {
	const classes = "qos: {classes: [{dscp: 26, class: 3, queue: 3}, {dscp: 48, class: 6, queue: 6}]"
	for name, tc := range map[string]struct{ sections, want string }{
		"the standard's headroom": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}", ""},
		"less": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3], headroom: 40KB}",
			"buffer.headroom is 40KB, which makes 40000 B of headroom at port 3 (400Gbps), and what the response time of IEEE 802.3 Annex 31B.3.7 requires is 83092 B: "},
		"the papers' method": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3], headroom_method: dsh}",
			"buffer.headroom_method is dsh, which makes 29012 B of headroom at port 3 (400Gbps), and what the response time of IEEE 802.3 Annex 31B.3.7 requires is 83092 B; so at 2 ports more: "},
		"the file knows its peers": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3], headroom_method: dsh, peer_response: 60}", ""},
		"a vendor's profile": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3], headroom: 90KB, headroom_profiles: [{rate: 400Gbps, delay: 1us, headroom: 300KB}, {rate: 400Gbps, delay: 200ns, headroom: 100KB}]}",
			"buffer.headroom is 90KB, which makes 90000 B of headroom at port 3 (400Gbps), and the vendor's in headroom_profiles is 100000 B: "},
		"a vendor's profile in force": {classes + "}\nbuffer: {policy: sih, size: 4MB, lossless: [3], headroom_profiles: [{rate: 400Gbps, delay: 200ns, headroom: 70KB}]}",
			"buffer.headroom_profiles is a list of 1, which makes 70000 B of headroom at port 3 (400Gbps), and what the response"},
		"kmin below PFC's threshold": {classes + ", ecn: [{queue: 3, kmin: 90KB, kmax: 2MB, pmax: 0.05}]}\nbuffer: {policy: static, size: 4MB, lossless: [3], threshold: 100KB}", ""},
		"kmin above PFC's threshold": {classes + ", ecn: [{queue: 3, kmin: 1MB, kmax: 2MB, pmax: 0.05}]}\nbuffer: {policy: static, size: 4MB, lossless: [3], threshold: 100KB}",
			"qos.ecn[0].kmin is 1MB, on s1 not below buffer.threshold 100KB: a single sender is paused before the queue marks anything"},
		"kmin above the pool's share": {classes + ", ecn: [{queue: 3, kmin: 500KB, kmax: 2MB, pmax: 0.05}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3], alpha: 1/16}",
			"qos.ecn[0].kmin is 500KB, on s1 not below 2"},
		"kmin above the buffer":   {classes + ", ecn: [{queue: 3, kmin: 5MB, kmax: 5MB, pmax: 1}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}", "qos.ecn[0].kmin is 5MB, and all memory of s1 is 4MB: nothing is ever marked"},
		"of another rate's ports": {classes + ", ecn: [{queue: 3, rate: 400Gbps, kmin: 5MB, kmax: 5MB, pmax: 1}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}", "qos.ecn[0].kmin is 5MB"},
		"a queue without DSCP":    {classes + ", ecn: [{queue: 1, kmin: 100KB, kmax: 400KB, pmax: 0.2}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}", "qos.ecn[0].queue is 1: no DSCP of qos.classes leads to this queue"},
		"CNPs behind data": {"qos: {classes: [{dscp: 26, class: 3, queue: 7}, {dscp: 48, class: 6, queue: 1}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}",
			"qos.classes[1].queue is 1, below that of qos.classes[0], 7, which is lossless on s1: CNPs and ACKs (DSCP 48) are served after"},
		"CNPs without a class": {"qos: {classes: [{dscp: 26, class: 3, queue: 3}], ecn: [{queue: 3, kmin: 10KB, kmax: 400KB, pmax: 0.2}]}\nbuffer: {policy: sih, size: 4MB, lossless: [3]}",
			"qos.classes has no DSCP 48, which then has queue 0, below that of"},
	} {
		c := parsed(t, warned+tc.sections+"\n")
		got := Warnings(c, c.Switch("s1"))
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestHeadroomByPort: a port has the headroom that the file gives it, independently of the rest of the file. Errors and
// warnings name the port.
func TestHeadroomByPort(t *testing.T) {
	const on = "qos: {classes: [{dscp: 26, class: 3}, {dscp: 48, class: 6}]}\nbuffer: {policy: %s, size: 4MB, lossless: [3], headroom: 100KB, headroom_profiles: [{rate: 400Gbps, delay: 1us, headroom: 90KB}]}\n"
	for _, tt := range []struct {
		policy, headroom, want string
		phi                    units.Bytes
	}{
		{"sih", "200KB", "", 200 * units.KB},
		{"dsh", "200KB", "", 200 * units.KB},
		{"oversubscribed", "200KB", "", 160 * units.KB},
		{"adaptive", "200KB", "", 200 * units.KB},
		{"sih", "70KB", "switches[0].ports[0].headroom is 70KB, which makes 70000 B of headroom at port 3 (400Gbps), and what the response", 70 * units.KB},
		{"sih", "20KB", "switches[0].ports[0].headroom: on port 3 has headroom 20000 B on the switch \"s1\", want", 0},
		{"\"off\"", "70KB", "switches[0].ports[0].headroom: is given without a buffer.policy", 0},
	} {
		text := strings.Replace(warned, "target: embedded}", "target: embedded, ports: [{number: 3, headroom: "+tt.headroom+"}]}", 1) + fmt.Sprintf(on, tt.policy)
		c, err := config.Parse("f.yaml", []byte(text), nil, New(nil).Section, qos.New(nil).Section)
		if tt.phi == 0 {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s %s: %v, want %s", tt.policy, tt.headroom, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		h, ports, _ := Headroom(c, c.Switch("s1"))
		if l, err := h.Layout(); err != nil || ports[2] != 3 || l.Phi[2] != tt.phi {
			t.Errorf("%s %s: Φ = %v, %v, want %v at port 3", tt.policy, tt.headroom, l.Phi, err, tt.phi)
		}
		if got := strings.Join(LowHeadroom(c, c.Switch("s1")), "\n"); tt.want == "" && tt.policy != "oversubscribed" && strings.Contains(got, "port 3") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.policy, tt.headroom, got, tt.want)
		}
	}
}

func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("f.yaml", []byte(text), nil, New(nil).Section, qos.New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
