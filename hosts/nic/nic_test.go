package nic_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	mpacket "github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/nic"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

func config(t *testing.T, ifi string, ip string) nic.Config {
	t.Helper()
	unit, err := maxqd.NewUnit(units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	p := param.For[soze.Params](law.Flow{Rate: 20 * units.Mbps, MSS: 1000, Scale: 2000})
	p.Alpha, p.Beta = 20*units.Mbps, 200*units.Kbps
	return nic.Config{Interface: ifi, Agent: agent.Config{
		Name: ifi, IP: netip.MustParseAddr(ip), Rate: 20 * units.Mbps, Unit: unit,
		NewLaw: agent.Soze(p),
	}}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := nic.Open(config(t, "no-such-if", "10.0.0.1")); err == nil || !strings.Contains(err.Error(), "no-such-if") {
		t.Errorf("error %v", err)
	}
	cfg := config(t, "lo", "10.0.0.1")
	cfg.Agent.MSS = 70000
	if _, err := nic.Open(cfg); err == nil || !strings.Contains(err.Error(), "MTU") {
		t.Errorf("error %v", err)
	}
}

// pair makes a veth pair and returns the MAC addresses of its ends.
func pair(t *testing.T, a, b string) map[string]packet.MAC {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a veth pair and open packet sockets")
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Skipf("cannot make a veth pair here: %v", err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(veth); err != nil {
			t.Error(err)
		}
	})
	macs := map[string]packet.MAC{}
	for _, name := range []string{a, b} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		macs[name] = packet.MAC(link.Attrs().HardwareAddr)
	}
	return macs
}

// Two agents at the ends of a veth pair, over each version of IP.
func TestOverVeth(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { overVeth(t, "192.0.2.1", "192.0.2.2") })
	t.Run("IPv6", func(t *testing.T) { overVeth(t, "2001:db8::1", "2001:db8::2") })
}

func overVeth(t *testing.T, from, to string) {
	a, b := "hgnica", "hgnicb"
	macs := pair(t, a, b)
	setDown := func(down bool) {
		t.Helper()
		link, err := netlink.LinkByName(a)
		if err == nil && down {
			err = netlink.LinkSetDown(link)
		} else if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	setDown(true)
	if _, err := nic.Open(config(t, a, from)); err == nil || !strings.Contains(err.Error(), "is down") {
		t.Errorf("an interface that is down: %v", err)
	}
	setDown(false)
	alone, err := nic.Open(config(t, a, from))
	if err != nil {
		t.Fatalf("without a default route: %v", err)
	}
	short, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- alone.Run(short) }()
	err = alone.Do(short, func(ag *agent.Agent, _ units.Time) {
		if got := ag.Config().Gateway; got != packet.Gateway {
			t.Errorf("gateway %v without a default route, want %v", got, packet.Gateway)
		}
	})
	end()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	open := func(name, peer, ip string) *nic.NIC {
		cfg := config(t, name, ip)
		cfg.Agent.Gateway = macs[peer]
		n, err := nic.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := n.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	na, nb := open(a, b, from), open(b, a, to)
	for _, n := range []*nic.NIC{na, nb} { // the fabric's parameters, which hosts get when they run
		if err := n.Do(ctx, func(ag *agent.Agent, _ units.Time) {
			if err := ag.SetShimPort(4000); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	const size = 500_000
	var key agent.FlowKey
	if err := na.Do(ctx, func(ag *agent.Agent, now units.Time) {
		var err error
		if key, err = ag.StartFlow(now, agent.FlowSpec{Dst: netip.MustParseAddr(to), Size: size}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	var r agent.FlowReport
	for r.Finished == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		if err := na.Do(ctx, func(ag *agent.Agent, _ units.Time) { r = ag.Report()[0] }); err != nil {
			t.Fatal(err)
		}
	}
	took := (r.Finished - r.Started).Seconds()
	t.Logf("%v: %v in %.3f s, %.2f Mb/s, %+v", key, r.Acked, took, float64(r.Acked)*8/took/1e6, r.SenderStats)
	if r.Finished == 0 || r.Acked != size {
		t.Errorf("report %+v", r)
	}
	if rate := float64(size) * 8 / took / 1e6; rate > 20 {
		t.Errorf("%.2f Mb/s of payload through a NIC of 20 Mb/s", rate)
	}
	var st agent.Stats
	if err := nb.Do(ctx, func(ag *agent.Agent, _ units.Time) { st = ag.Stats() }); err != nil {
		t.Fatal(err)
	}
	if st.BytesDelivered != size || st.Malformed != 0 {
		t.Errorf("the receiver counts %+v", st)
	}
	cancel()
	wg.Wait()
	if err := na.Do(context.Background(), func(*agent.Agent, units.Time) {}); !errors.Is(err, nic.ErrClosed) {
		t.Errorf("Do after the end: %v", err)
	}
}

// A PFC frame on the wire stops a real host's flow until the RESUME.
func TestPFCOverVeth(t *testing.T) {
	a, b := "hgnicpfca", "hgnicpfcb"
	macs := pair(t, a, b)
	ifi, err := net.InterfaceByName(b)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := mpacket.Listen(ifi, mpacket.Raw, packet.EtherTypeMACControl, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	open := func(name, peer, ip string) *nic.NIC {
		cfg := config(t, name, ip)
		cfg.Agent.Gateway = macs[peer]
		n, err := nic.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := n.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	na := open(a, b, "192.0.2.1")
	open(b, a, "192.0.2.2")
	defer wg.Wait()
	defer cancel()
	look := func() (st agent.Stats) {
		if err := na.Do(ctx, func(ag *agent.Agent, _ units.Time) { st = ag.Stats() }); err != nil {
			t.Fatal(err)
		}
		return st
	}
	until := func(what string, ok func(agent.Stats) bool) agent.Stats {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if st := look(); ok(st) || time.Now().After(deadline) {
				if !ok(st) {
					t.Fatalf("%s: counted %+v", what, st)
				}
				return st
			}
		}
	}
	send := func(p packet.PFC) {
		to := packet.PFCAddress()
		if _, err := wire.WriteTo(p.Append(nil), &mpacket.Addr{HardwareAddr: to[:]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := na.Do(ctx, func(ag *agent.Agent, now units.Time) {
		if _, err := ag.StartFlow(now, agent.FlowSpec{Dst: netip.MustParseAddr("192.0.2.2")}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	until("a flow that sends", func(st agent.Stats) bool { return st.DataSent > 10 })
	send(packet.PFC{Src: macs[b], Enabled: 1, Quanta: [8]uint16{packet.MaxQuanta}}) // 1.7 s at 20 Mb/s
	before := until("a PAUSE", func(st agent.Stats) bool { return st.PFC.Frames == 1 })
	time.Sleep(200 * time.Millisecond)
	if st := look(); st.DataSent != before.DataSent || st.PFC.Classes[0].Count != 1 {
		t.Errorf("%d packets left in the pause", st.DataSent-before.DataSent)
	}
	send(packet.PFC{Src: macs[b], Enabled: 1})
	until("a RESUME", func(st agent.Stats) bool { return st.PFC.Frames == 2 && st.DataSent > before.DataSent+10 })
	if st := look().PFC; st.Classes[0].Time < 200*units.Millisecond || st.Classes[0].Time > 1600*units.Millisecond {
		t.Errorf("paused for %v, want a little more than 200ms", st.Classes[0].Time)
	}
}
