package config

import (
	"strings"
	"testing"
)

// TestNICs: each invalid setting of a host with several links gives an error with field, value and
// allowed values.
func TestNICs(t *testing.T) {
	const switches = "name: f\nswitches: [{name: s1, device_id: 1, address: 'h:1'}, {name: s2, device_id: 2, address: 'h:2'}, " +
		"{name: s3, device_id: 3, address: 'h:3'}, {name: s4, device_id: 4, address: 'h:4'}, {name: s5, device_id: 5, address: 'h:5'}]\n"
	const between = "links:\n- {a: 's1:9', b: 's2:9', rate: 1Gbps}\n- {a: 's2:10', b: 's3:9', rate: 1Gbps}\n- {a: 's3:10', b: 's4:9', rate: 1Gbps}\n- {a: 's4:10', b: 's5:9', rate: 1Gbps}\n"
	link := func(at, more string) string { return "- {a: '" + at + "', b: h1, rate: 1Gbps" + more + "}\n" }
	for _, tt := range []struct{ name, host, links, want string }{
		{"two leaves", "", link("s1:1", "") + link("s2:1", ""), ""},
		{"two NICs at one switch", "", link("s1:1", "") + link("s1:2", ", mac: '06:00:00:00:00:09'"), ""},
		{"LAG", ", bond: lag", link("s1:1", "") + link("s1:2", ""), ""},
		{"LAG over switches", ", bond: mlag", link("s1:1", "") + link("s2:2", ""), ""},
		{"four leaves", "", link("s1:1", "") + link("s2:1", "") + link("s3:1", "") + link("s4:1", ""), ""},
		{"five leaves", "", link("s1:1", "") + link("s2:1", "") + link("s3:1", "") + link("s4:1", "") + link("s5:1", ""),
			`hosts[0]: is the host "h1" with links to 5 switches, want at most 4`},
		{"LAG members at two switches", ", bond: lag", link("s1:1", "") + link("s2:1", ""),
			`hosts[0].bond: is "lag", but the links of the host "h1" lead to s1, s2: want one switch, or mlag for a static LAG with members at several`},
		{"mlag at one switch", ", bond: mlag", link("s1:1", "") + link("s1:2", ""),
			`hosts[0].bond: is "mlag", but all links of the host "h1" lead to s1: want two to 4 switches, or lag`},
		{"no such bond", ", bond: lacp", link("s1:1", ""), `hosts[0].bond: is "lacp", want one of none, lag, mlag`},
		{"two NICs with one MAC", ", mac: '06:00:00:00:00:01'", link("s1:1", "") + link("s2:1", ", mac: '06:00:00:00:00:01'"),
			`links[5].mac: is the MAC address 060000000001, which hosts[0].mac in line 5 already is`},
		{"two links with one MAC", "", link("s1:1", ", mac: '06:00:00:00:00:01'") + link("s2:1", ", mac: '06:00:00:00:00:01'"),
			`links[5].mac: is the MAC address 060000000001, which links[4].mac in line 11 already is`},
		{"the host's MAC is the second NIC's default", ", mac: '06:01:0a:00:00:01'", link("s1:1", "") + link("s2:1", ""),
			`links[5]: is the MAC address 06010a000001, which hosts[0].mac in line 5 already is`},
		{"a member with a MAC", ", bond: lag", link("s1:1", "") + link("s1:2", ", mac: '06:00:00:00:00:01'"),
			`links[5].mac: is 060000000001, but the members of the host "h1"'s bond share one MAC address, want mac in the host's own entry`},
		{"a MAC without a host", "", link("s1:1", "") + "- {a: 's1:3', b: 's2:3', rate: 1Gbps, mac: '06:00:00:00:00:01'}\n",
			`links[5].mac: is 060000000001, but no host is at the link "s1:3-s2:3", want mac only at links to hosts`},
	} {
		_, err := Parse("f", []byte(switches+"hosts:\n# h1\n- {name: h1, ipv4: 10.0.0.1"+tt.host+"}\n"+between+tt.links), nil)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestIPv6Only: a host may have an address of only one IP version, and its MAC addresses follow
// from it.
func TestIPv6Only(t *testing.T) {
	file := func(host string) string {
		return "name: f\nswitches: [{name: s, device_id: 1, address: \"h:1\"}]\nhosts: [{name: h, " + host + "}]\nlinks: [{a: \"s:1\", b: h, rate: 1Gbps}, {a: \"s:2\", b: h, rate: 1Gbps}]\n"
	}
	for host, want := range map[string][2][6]byte{
		"ipv4: 10.0.0.1":                        {{6, 0, 10, 0, 0, 1}, {6, 1, 10, 0, 0, 1}},
		"ipv4: 10.0.0.1, ipv6: \"fd00::1:2:3\"": {{6, 0, 10, 0, 0, 1}, {6, 1, 10, 0, 0, 1}},
		"ipv6: \"fd00::1:203:405\"":             {{6, 0x80, 2, 3, 4, 5}, {6, 0x81, 2, 3, 4, 5}},
	} {
		c, err := Parse("f", []byte(file(host)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if h := c.Host("h"); h.MAC != want[0] || c.Links[0].MAC != want[0] || c.Links[1].MAC != want[1] || len(h.Addresses()) != strings.Count(host, "ipv") {
			t.Errorf("%s: MAC %x, links %x and %x, addresses %v", host, h.MAC, c.Links[0].MAC, c.Links[1].MAC, h.Addresses())
		}
	}
	if _, err := Parse("f", []byte(file("mac: \"06:00:00:00:00:01\"")), nil); err == nil || !strings.Contains(err.Error(), "hosts[0].ipv4: is missing, want ipv4, ipv6 or both") {
		t.Errorf("%v", err)
	}
}
