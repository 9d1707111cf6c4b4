package standalone

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

const ms = units.Millisecond

// lawFlags are the flags that each law needs besides its name.
func lawFlags(name string) []string {
	args := []string{"--interface", "h1-eth0", "--ip", "10.0.1.1", "--law", name}
	flow := "dst=10.0.4.1"
	if name == "d2tcp" {
		flow += ",size=1MB,deadline=2s"
	}
	k, err := (&Options{Law: name}).lawKind()
	if err != nil {
		panic(err)
	}
	if k.Needs.BaseRTT {
		args = append(args, "--base-rtt", "9ms")
	}
	if k.Needs.Channel {
		args = append(args, "--priority", "2")
	}
	return append(args, "--flow", flow)
}

// Every law can be chosen, gives a flow that may send, and accepts acknowledgements.
func TestEveryLaw(t *testing.T) {
	for _, k := range kinds() {
		name := k.Name
		o, err := parse(t, lawFlags(name)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg, err := o.agentConfig()
		if err != nil {
			t.Fatal(err)
		}
		var sent int
		a, err := agent.New(cfg, func([]byte) { sent++ })
		if err != nil {
			t.Fatal(err)
		}
		spec, err := o.withChannel(o.Flows[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.StartFlow(0, spec); err != nil {
			t.Fatal(err)
		}
		for now := units.Time(0); now < 100*ms; now += ms {
			a.Wake(now)
		}
		if sent == 0 {
			t.Errorf("%s: nothing was sent", name)
		}
		l, err := cfg.NewLaw(spec)
		if err != nil {
			t.Fatal(err)
		}
		l.OnEvent(law.Start, 0)
		l.OnAck(&law.Ack{Now: 20 * ms, RTT: 20 * ms, Acked: 1000, AckedSeq: 1000, SentSeq: 4000, Inflight: 3000})
		if got := l.Allowance(); got.Rate < 0 || got.Rate > 20*units.Mbps && name != "none" {
			t.Errorf("%s: allowance %+v on a link of 20 Mb/s", name, got)
		}
	}
}

// A given parameter is used as it is; a missing one is the paper's, scaled.
func TestParam(t *testing.T) {
	o, err := parse(t, append(lawFlags("dcqcn"), "--param", "min_rate=3Mbps")...)
	if err != nil {
		t.Fatal(err)
	}
	create, err := o.flowLaw()
	if err != nil {
		t.Fatal(err)
	}
	l, err := create(o.Flows[0])
	if err != nil {
		t.Fatal(err)
	}
	l.OnEvent(law.Start, 0)
	l.OnEvent(law.CNP, 0)
	if at := l.Timer(); at != 110*ms { // 55 us at 40 Gb/s
		t.Errorf("the first timer is at %v, want 110ms", at)
	}
	for range 100 {
		l.OnEvent(law.CNP, 0)
	}
	if got := l.Allowance().Rate; got != 3*units.Mbps {
		t.Errorf("%v after many notifications, want the least rate, 3 Mb/s", got)
	}
}

func TestPrioPlusFlags(t *testing.T) {
	base := []string{"--interface", "h1-eth0", "--ip", "10.0.1.1", "--law", "prioplus", "--base-rtt", "9ms", "--flow"}
	for _, tt := range []struct {
		args string
		want channel.Channel
		wait bool
	}{
		// The paper's 3.2 us and 0.8 us, times 2000.
		{"dst=10.0.4.1 --priority 1", channel.Channel{Target: 17 * ms, Limit: 17*ms + 4800*units.Microsecond}, false},
		{"dst=10.0.4.1,priority=2 --priority 1", channel.Channel{Target: 25 * ms, Limit: 25*ms + 4800*units.Microsecond}, false},
		{"dst=10.0.4.1 --priority 3 --channels fluctuation=4ms,noise=1ms", channel.Channel{Target: 24 * ms, Limit: 27 * ms}, false},
		{"dst=10.0.4.1 --target 20ms --limit 22ms", channel.Channel{Target: 20 * ms, Limit: 22 * ms}, false},
		{"dst=10.0.4.1 --target 20ms", channel.Channel{Target: 20 * ms, Limit: prioplus.NoLimit}, false},
		{"dst=10.0.4.1 --priority 1 --controller 127.0.0.1:1", channel.Channel{Target: 17 * ms, Limit: 17*ms + 4800*units.Microsecond}, true},
		{"dst=10.0.4.1 --priority 1 --controller 127.0.0.1:1 --channels fluctuation=4ms", channel.Channel{Target: 13 * ms, Limit: 15 * ms}, false},
	} {
		o, err := parse(t, append(slices.Clone(base), strings.Fields(tt.args)...)...)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		f, err := o.withChannel(o.Flows[0])
		if err != nil || f.Channel != tt.want || f.AwaitChannel != tt.wait {
			t.Errorf("%s: channel %+v, waits %v, %v; want %+v, %v", tt.args, f.Channel, f.AwaitChannel, err, tt.want, tt.wait)
		}
	}
}

func TestLawFlagsRefuse(t *testing.T) {
	for _, tt := range []struct{ law, args, want string }{
		{"swift", "--base-rtt 0s", "--base-rtt 0s: --law swift wants the round trip of an empty path, more than 0"},
		{"swift", "--param", "flag needs an argument"},
		{"swift", "--param beta", `--param "beta": want NAME=VALUE`},
		{"swift", "--param beta=0.5 --param beta=0.6", `--param "beta=0.6": beta is given twice`},
		{"swift", "--param gamma=1", "--law swift: --param gamma 1: no such parameter, want base_rtt, target_above, target, hops, per_hop"},
		{"swift", "--param mss=1", "--law swift: --param mss 1: no such parameter, want base_rtt"},
		{"swift", "--param beta=2", "--law swift: beta 2: want more than 0 and at most 1"},
		{"swift", "--param beta=x", "--param beta x: want a finite number"},
		{"swift", "--param retx_reset=1.5", "--param retx_reset 1.5: want a whole number"},
		{"swift", "--param target=5", `--param target 5: "5" is not a time`},
		{"dcqcn", "--param keep_target=perhaps", "--param keep_target perhaps: want true or false"},
		{"soze", "--param beta=1Mbps", "--param beta=1Mbps: want --beta 1Mbps"},
		{"prioplus", "--param level=high", "--param level=high: want --level high"},
		{"prioplus", "--param target=5ms", "target 5ms: want none: the flow's channel has it"},
		{"prioplus", "--param filter=0", "filter 0: want 1 or more"},
		{"swift", "--param increase=0B", "increase 0B: want more than 0B"},
		{"d2tcp", "--flow dst=10.0.4.2,deadline=1s", "--law d2tcp: size 0B: want more than 0B"},
		{"soze", "--priority 2", "--priority: want --law prioplus-swift or prioplus-ledbat with it, not soze"},
		{"soze", "--target 2ms", "--target: want --law prioplus-swift"},
		{"soze", "--flow dst=10.0.4.1,priority=2", "--flow priority=2: want --law prioplus-swift"},
		{"prioplus", "--priority -1", "--priority -1: want 1 to 65536"},
		{"prioplus", "--priority 0", "--priority 0: --law prioplus wants 1 to 65536"},
		{"prioplus", "--target 20ms", "--target 20ms: want it or --priority and --channels, not both"},
		{"prioplus", "--priority 0 --target 5ms", "--target 5ms: want more than --base-rtt, 9ms"},
		{"prioplus", "--priority 0 --target 20ms --limit 15ms", "--limit 15ms: want more than --target, 20ms"},
		{"prioplus", "--priority 0 --target 20ms --controller x:1", "--target 20ms: want it or --controller"},
		{"prioplus", "--limit 15ms", "--limit 15ms: want --target with it"},
		{"prioplus", "--channels noise=1ms", "fluctuation 0s: want more than 0"},
		{"prioplus", "--channels width=1ms", `"width=1ms": want fluctuation=TIME,noise=TIME`},
		{"prioplus", "--level top", "--param level top: want low, middle or high"},
		{"prioplus", "--param under.beta=3", "--law prioplus: under.beta 3: want more than 0"},
		{"prioplus", "--param tolerance=20ms", "--law prioplus: target 25ms: want more than the base delay and its tolerance, 29ms"},
	} {
		_, err := parse(t, append(lawFlags(tt.law), strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want one with %q", tt.law, tt.args, err, tt.want)
		}
	}
}

func TestLawsHelp(t *testing.T) {
	text := LawsHelp()
	for _, want := range []string{
		"  dcqcn: DCQCN (SIGCOMM 2015)", "      alpha_timer=TIME: time without a notification after which alpha falls; more than 0s; default 55us",
		"      under.beta=NUMBER: ", "  prioplus: short", "      keep_target=TRUE OR FALSE: ", "default true",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the help does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "  hpcc: ") {
		t.Error("the help has a law that no frame carries the telemetry of")
	}
}

// TestPayloadRate: full packets with the shim have 62 B of headers over IPv4 and 82 over IPv6.
func TestPayloadRate(t *testing.T) {
	for ip, frame := range map[string]float64{"10.0.1.1": 1062, "fd00::1": 1082} {
		o := NewOptions()
		o.Rate, o.IP = 10*units.Mbps, netip.MustParseAddr(ip)
		if got, want := o.payloadRate(), units.Rate(10e6*1000/frame); got != want {
			t.Errorf("%s: %v, want %v", ip, got, want)
		}
	}
}
