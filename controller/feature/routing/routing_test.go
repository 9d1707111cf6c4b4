package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/p4src/ids"
)

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	// One hash per IP version, 4 ports, a prefix and a group for each of 3 other leaves, 2 hosts.
	if len(lines) != 2+4+3*2+2 {
		t.Errorf("%d entries: %v", len(lines), lines)
	}
	for _, want := range []string{
		"ingress.routing.ecmp member 4 → set_next_hop(port=4, src_mac=02:00:00:02:00:04, dst_mac=02:00:00:06:00:02)",
		"ingress.routing.ecmp group 1 → members 3, 4, while their ports are up",
		"ingress.routing.ipv4_lpm dst_addr=10.0.1.0/30 → group 1",
		"ingress.routing.ipv4_lpm dst_addr=10.0.2.2/32 → member 2",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in %v", want, lines)
		}
	}
}

// TestIPv6: routes of IPv6 use the groups and members of IPv4. A switch whose program lacks IPv6 refuses hosts with
// IPv6.
func TestIPv6(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, "ipv4: 10.0.1.1}", "ipv4: 10.0.1.1, ipv6: \"2001:db8:1::1\"}", 1)
		s = strings.Replace(s, "ipv4: 10.0.1.2}", "ipv4: 10.0.1.2, ipv6: \"2001:db8:1::2\"}", 1)
		return strings.Replace(s, "ipv4: 10.0.2.2}", "ipv4: 10.0.2.2, ipv6: \"2001:db8:2::2\"}", 1)
	}, New(nil))
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	for _, want := range []string{
		"ingress.routing.ipv6_lpm dst_addr=2001:db8:1::/126 → group 1",
		"ingress.routing.ipv6_lpm dst_addr=2001:db8:2::2/128 → member 2",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in %v", want, lines)
		}
	}
	chip := testenv.Lines(t, New(nil), testenv.WithPipeline(env, testenv.Tofino(t, "tofino2")), "leaf2")
	for _, profile := range []string{ids.ProfileECMPName, ids.ProfileECMPIPv6Name} {
		if !slices.ContainsFunc(chip, func(line string) bool { return strings.Contains(line, profile+" ") }) {
			t.Errorf("a chip has no next hops in %s: %q", profile, chip)
		}
	}
}

// TestHashIPv6: flow labels are hashed if the section asks for it.
func TestHashIPv6(t *testing.T) {
	for hash, want := range map[string][]string{
		"five-tuple": {"default → hash_five_tuple_ipv6"},
		"flow-label": {"default → hash_flow_label"},
	} {
		env := testenv.New(t, "../../..", func(s string) string { return s + "\necmp: {hash: " + hash + "}" }, New(nil))
		var got []string
		for _, line := range testenv.Lines(t, New(nil), env, "leaf1") {
			if rest, ok := strings.CutPrefix(line, ids.TableECMPHashIPv6Name+" "); ok {
				text, _, _ := strings.Cut(rest, "(")
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", hash, diff)
		}
	}
}

// TestHash: switches have different seeds by default. The queue pair is hashed if the section, or a switch's
// own section, asks for it.
func TestHash(t *testing.T) {
	hash := func(keys, own string) (all []string) {
		env := testenv.New(t, "../../..", func(s string) string {
			return strings.Replace(s, "name: leaf2,", "name: leaf2, "+own, 1) + "\n" + keys
		}, New(nil))
		for _, sw := range []string{"leaf1", "leaf2"} {
			for _, line := range testenv.Lines(t, New(nil), env, sw) {
				if rest, ok := strings.CutPrefix(line, ids.TableECMPHashName+" "); ok {
					all = append(all, sw+" "+rest)
				}
			}
		}
		return all
	}
	five := func(sw string, seed uint32) string {
		return fmt.Sprintf("%s default → hash_five_tuple(seed=%d)", sw, seed)
	}
	pair := func(sw string, seed uint32) string {
		return fmt.Sprintf("%s roce=1 → hash_queue_pair(seed=%d)", sw, seed)
	}
	for _, tt := range []struct {
		keys, own string
		want      []string
	}{
		{"", "", []string{five("leaf1", ecmp.Seed(0, 1)), five("leaf2", ecmp.Seed(0, 2))}},
		{"ecmp: {seed: 9}", "ecmp: {seed: 7, hash: queue-pair}, ", []string{five("leaf1", ecmp.Seed(9, 1)), five("leaf2", ecmp.Seed(7, 2)), pair("leaf2", ecmp.Seed(7, 2))}},
		{"ecmp: {hash: queue-pair}", "ecmp: {hash: five-tuple}, ", []string{five("leaf1", ecmp.Seed(0, 1)), pair("leaf1", ecmp.Seed(0, 1)), five("leaf2", ecmp.Seed(0, 2))}},
	} {
		if diff := cmp.Diff(tt.want, hash(tt.keys, tt.own)); diff != "" {
			t.Errorf("%q, %q: %s", tt.keys, tt.own, diff)
		}
	}
	env := testenv.New(t, "../../..", func(s string) string {
		return strings.Replace(s, "target: embedded", "target: tofino2", 1) + "\necmp: {hash: queue-pair}"
	}, New(nil))
	list, err := New(nil).Desired(testenv.WithPipeline(env, testenv.Tofino(t, "tofino2")))
	var got []uint32
	for _, e := range list {
		if te := e.GetTableEntry(); te.GetTableId() == ids.TableECMPHash {
			got = append(got, te.GetAction().GetAction().GetActionId())
		}
	}
	if want := []uint32{ids.ActionHashFiveTuple, ids.ActionHashQueuePair}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the queue pair on a chip: actions %#x, %v, want %#x", got, err, want)
	}
}

// TestSeveralLinks: a host at several leaves has a group of those leaves. A host with a LAG has a group of its
// members at their leaf. Host routes are counted.
func TestSeveralLinks(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, "{name: h3, ipv4: 10.0.2.1}", "{name: h3, ipv4: 10.0.2.1, bond: lag}", 1)
		return strings.Replace(s, "\nqos:", "  - {a: \"leaf2:5\", b: h3, rate: 50Mbps}\n  - {a: \"leaf1:5\", b: h7, rate: 50Mbps}\n\nqos:", 1)
	})
	for sw, want := range map[string][]string{
		"leaf2":  {"group 12 → members 1, 5, while their ports are up", "group 11 → members 3, 4, while their ports are up", "dst_addr=10.0.2.1/32 → group 12", "dst_addr=10.0.4.1/32 → group 11"},
		"spine1": {"group 11 → members 1, 4, while their ports are up", "dst_addr=10.0.4.1/32 → group 11", "dst_addr=10.0.4.2/32 → group 4"},
		"leaf4":  {"dst_addr=10.0.4.1/32 → member 1"},
	} {
		lines := strings.Join(testenv.Lines(t, New(nil), env, sw), "\n")
		for _, line := range want {
			if !strings.Contains(lines, line+"\n") && !strings.HasSuffix(lines, line) {
				t.Errorf("%s: no %q in\n%s", sw, line, lines)
			}
		}
	}
	if notes := advise(env, nil); len(notes) != 1 || !strings.HasPrefix(notes[0], "1 of 5 routes to all racks are host routes") {
		t.Errorf("%q", notes)
	}
}

// TestBMv2: simple_switch_grpc crashes if all members of a group have lost their ports.
func TestBMv2(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string { return strings.ReplaceAll(s, "target: embedded", "target: bmv2") })
	lines := testenv.Lines(t, New(nil), env, "leaf2")
	if !slices.Contains(lines, "ingress.routing.ecmp group 1 → members 3, 4") {
		t.Errorf("groups watch ports: %v", lines)
	}
}

// TestOneGroupChanges: a lost link changes only one group, so it is cheap.
func TestOneGroupChanges(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	before := testenv.Lines(t, New(nil), env, "leaf1")
	after := testenv.RouteLines(t, New(nil), env, "leaf1", topology.State{DownLinks: map[string]bool{"leaf2:3-spine1:2": true}})
	var changed []string
	for _, line := range after {
		if !slices.Contains(before, line) {
			changed = append(changed, line)
		}
	}
	if diff := cmp.Diff([]string{"ingress.routing.ecmp group 2 → members 4, while their ports are up"}, changed); diff != "" {
		t.Error(diff)
	}
}
