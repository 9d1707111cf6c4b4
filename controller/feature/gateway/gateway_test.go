package gateway

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headgate/headgate/controller/internal/testenv"
)

func TestDesired(t *testing.T) {
	f := New(nil)
	lines := func(sw, section string) []string {
		list := testenv.Lines(t, f, testenv.New(t, "../../..", func(s string) string {
			from, to := strings.Index(s, "\ngateway:"), strings.Index(s, "\nprioplus:")
			return s[:from] + "\n" + section + s[to:]
		}, f), sw)
		slices.Sort(list)
		return list
	}
	for _, tt := range []struct {
		name, sw, section string
		want              []string
	}{
		{"by default", "leaf1", "", []string{
			"ingress.gateway.gateway_ipv4 addr=169.254.1.1/32 → own_ipv4(mac=02:00:00:00:00:fe)",
			"ingress.gateway.gateway_ipv4 → proxy_ipv4(mac=02:00:00:00:00:fe)",
			"ingress.gateway.gateway_ipv6 addr=fe80::1/128 → own_ipv6(mac=02:00:00:00:00:fe)",
			"ingress.gateway.gateway_ipv6 → proxy_ipv6(mac=02:00:00:00:00:fe)",
		}},
		{"a spine", "spine1", "", nil},
		{"one address", "leaf1", `gateway: {ipv4: 10.0.1.254, ipv6: "off", proxy: false}`, []string{
			"ingress.gateway.gateway_ipv4 addr=10.0.1.254/32 → own_ipv4(mac=02:00:00:00:00:fe)",
		}},
	} {
		if diff := cmp.Diff(tt.want, lines(tt.sw, tt.section), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
