package pipeline

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
)

func TestOverflows(t *testing.T) {
	p := load(t)
	var list []*p4v1.Entity
	add := func(e *p4v1.Entity, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	route := func(i int) {
		add(p.Entry(ids.TableIPv4LPMName).LPM("dst_addr", binary.BigEndian.AppendUint32(nil, 0x0a000000+uint32(i)), 32).Group(1).Entity())
	}
	for i := range ids.RouteEntries {
		route(i)
	}
	for g := range uint32(ids.ECMPMembers / 8) {
		add(p.Group(ids.ProfileECMPName, g+1, []uint32{1, 2, 3, 4, 5, 6, 7, 8}))
	}
	add(p.Default(ids.TableQueueLimitName).Action(ids.ActionSetQueueLimitName, Arg{"bytes", p4rtmsg.Uint(1)}).Entity())
	if got := p.Overflows(UsageOf(slices.Values(list))); got != nil {
		t.Errorf("full tables: %v", got)
	}
	route(1 << 20)
	add(p.Group(ids.ProfileECMPName, 1000, []uint32{1}))
	want := "[{ingress.routing.ipv4_lpm 16385 entries of table ingress.routing.ipv4_lpm, which holds 16384} " +
		"{ingress.routing.ecmp 257 groups with 2049 next hops together of action profile ingress.routing.ecmp, which holds 2048}]"
	if got := fmt.Sprint(p.Overflows(UsageOf(slices.Values(list)))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	list = list[:3]
	add(p.Member(ids.ProfileECMPName, 1, ids.ActionSetNextHopName, Arg{"port", p4rtmsg.Uint(1)}, Arg{"src_mac", p4rtmsg.Uint(2)}, Arg{"dst_mac", p4rtmsg.Uint(3)}))
	got := ""
	for _, u := range p.Uses(UsageOf(slices.Values(list))) {
		got += fmt.Sprintf("{%s %d %d}", u.Name, u.Entries, u.Size)
	}
	if want := "{ingress.routing.ipv4_lpm 3 16384}{ingress.routing.ecmp 1 2048}"; got != want {
		t.Errorf("uses %s, want %s", got, want)
	}
}
