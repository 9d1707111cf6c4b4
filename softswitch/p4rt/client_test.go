package p4rt

import (
	"testing"
	"time"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

// A public client, written by others, works against the server.
func TestPublicClient(t *testing.T) {
	r := newRig(t)
	c := client.NewClient(r.client, deviceID, id(1))
	stop, primary, messages := make(chan struct{}), make(chan bool, 1), make(chan *p4v1.StreamMessageResponse, 100)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(stop, primary, messages) }()
	select {
	case ok := <-primary:
		if !ok {
			t.Fatal("not the primary")
		}
	case <-time.After(wait):
		t.Fatal("no arbitration")
	}
	next := func() *p4v1.StreamMessageResponse {
		t.Helper()
		select {
		case m := <-messages:
			return m
		case <-time.After(wait):
			t.Fatal("no message")
		}
		return nil
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := r.ctx
	_, err := c.SetFwdPipeFromBytes(ctx, p4test.JSON, p4test.PlainText(), 42)
	check(err)
	cfg, err := c.GetFwdPipe(ctx, client.GetFwdPipeAll)
	check(err)
	if cfg.Cookie != 42 || cfg.P4Info == nil {
		t.Errorf("cookie %d", cfg.Cookie)
	}

	mac := []byte{0, 0, 0, 0, 0, 7}
	l2Match := map[string]client.MatchInterface{"hdr.ethernet.dst": &client.ExactMatch{Value: mac}}
	entry := c.NewTableEntry("ingress.l2", l2Match, c.NewTableActionDirect("ingress.forward", [][]byte{{0, 3}}), &client.TableEntryOptions{IdleTimeout: time.Second})
	check(c.InsertTableEntry(ctx, entry))
	check(c.ModifyTableEntry(ctx, entry))
	got, err := c.ReadTableEntry(ctx, "ingress.l2", []client.MatchInterface{&client.ExactMatch{Value: mac}})
	check(err)
	if got.IdleTimeoutNs != int64(time.Second) {
		t.Errorf("entry %v", got)
	}
	check(c.ModifyTableEntry(ctx, c.NewTableEntry("ingress.l2", nil, c.NewTableActionDirect("ingress.flood", [][]byte{{1}}), nil)))

	aclMatch := map[string]client.MatchInterface{
		"hdr.ethernet.ether_type": &client.TernaryMatch{Value: []byte{0x08, 0x00}, Mask: []byte{0xff, 0xff}},
		"hdr.ipv4.ttl":            &client.RangeMatch{Low: []byte{1}, High: []byte{5}},
		"hdr.ipv4.dst":            &client.OptionalMatch{Value: []byte{10, 0, 0, 1}},
		"hdr.ipv4.src":            &client.LpmMatch{Value: []byte{10, 1, 2, 3}, PLen: 8},
	}
	check(c.InsertTableEntry(ctx, c.NewTableEntry("ingress.acl", aclMatch, c.NewTableActionDirect("ingress.acl_set", [][]byte{{1}}), &client.TableEntryOptions{Priority: 7})))
	list, err := c.ReadTableEntryWildcard(ctx, "ingress.acl")
	check(err)
	if len(list) != 1 || len(list[0].Match) != 4 || list[0].Priority != 7 {
		t.Errorf("entries %v", list)
	}

	set := c.NewActionProfileActionSet()
	set.AddAction("ingress.next_hop", [][]byte{{1}, mac}, 2, client.NewPortFromInt(1))
	set.AddAction("ingress.next_hop", [][]byte{{2}, mac}, 1, client.NewPortFromInt(2))
	routeMatch := map[string]client.MatchInterface{"meta.vrf": &client.ExactMatch{Value: []byte{0, 0}}, "hdr.ipv4.dst": &client.LpmMatch{Value: []byte{10, 0, 0, 0}, PLen: 16}}
	check(c.InsertTableEntry(ctx, c.NewTableEntry("ingress.routes", routeMatch, set.TableAction(), nil)))
	member := c.NewActionProfileMember("ingress.tunnels", 4, "ingress.forward", [][]byte{{9}})
	check(c.InsertActionProfileMember(ctx, member))
	tunnelMatch := map[string]client.MatchInterface{"hdr.ipv4.protocol": &client.ExactMatch{Value: []byte{17}}}
	check(c.InsertTableEntry(ctx, c.NewTableEntry("ingress.tunnel", tunnelMatch, c.NewTableActionMember(4), nil)))

	check(c.InsertMulticastGroup(ctx, 1, []uint32{1, 2, 3}))
	check(c.InsertCloneSession(ctx, 5, []uint32{cpuPort}, client.CloneSessionOptions{PacketLenBytes: 64, ClassOfService: 1}))
	check(c.ModifyCounterEntry(ctx, "ingress.hits", 3, &p4v1.CounterData{PacketCount: 5}))
	count, err := c.ReadCounterEntry(ctx, "ingress.hits", 3)
	check(err)
	counts, err := c.ReadCounterEntryWildcard(ctx, "ingress.hits")
	check(err)
	if count.PacketCount != 5 || len(counts) != 16 {
		t.Errorf("counters %v, %v", count, counts)
	}
	meters, err := c.ReadMeterEntryWildcard(ctx, "ingress.rates")
	check(err)
	if len(meters) != 8 {
		t.Errorf("%d meters", len(meters))
	}

	// The digest of a packet from port 3, and the clone of it that the program makes.
	check(c.EnableDigest(ctx, "learn_t", &p4v1.DigestEntry_Config{AckTimeoutNs: 1e9}))
	r.dev.inject(3, frame(7, 0xaa))
	seen := map[string]bool{}
	for range 2 {
		switch m := next(); {
		case m.GetDigest() != nil:
			seen["digest"] = true
			check(c.AckDigestList(ctx, m.GetDigest()))
		case m.GetPacket() != nil:
			seen["clone"] = true
		}
	}
	if !seen["digest"] || !seen["clone"] {
		t.Errorf("seen %v", seen)
	}
	check(c.SendPacketOut(ctx, packetOut(cpuPort, 0, "hello, switch").GetPacket()))
	if m := next(); string(m.GetPacket().GetPayload()) == "" {
		t.Errorf("got %v", m)
	}

	check(c.DisableDigest(ctx, "learn_t"))
	check(c.DeleteCloneSession(ctx, 5))
	check(c.DeleteMulticastGroup(ctx, 1))
	check(c.DeleteTableEntry(ctx, c.NewTableEntry("ingress.tunnel", tunnelMatch, nil, nil)))
	check(c.DeleteActionProfileMember(ctx, member))
	check(c.DeleteTableEntry(ctx, entry))
	_, err = c.SaveFwdPipeFromBytes(ctx, p4test.JSON, p4test.PlainText(), 43)
	check(err)
	_, err = c.CommitFwdPipe(ctx)
	check(err)
	// Stopped by its channel the client leaves a goroutine behind; so the server ends first.
	r.Close()
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Errorf("the client ended with %v", err)
	}
}
