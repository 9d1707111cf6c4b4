package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/tests/switchtest"
)

// shows is a switch that reports the largest frame of ports 1, 2 and so on; 0 stands for a port without
// an interface.
type shows []uint32

func (s shows) State(string, gnmi.Wants) []gnmi.State {
	state := gnmi.State{}
	for i, most := range s {
		of := [2]string{fmt.Sprint(i + 1)}
		state.Values = append(state.Values, gnmi.Value{Leaf: gnmi.OperStatus, Of: of, Is: gnmi.Up})
		if most > 0 {
			state.Values = append(state.Values, gnmi.Value{Leaf: gnmi.MTU, Of: of, Is: most})
		}
	}
	return []gnmi.State{state}
}

func (shows) Changed(context.Context) <-chan struct{} { return nil }

// serve serves a switch and returns its address.
func (s shows) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", switchtest.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	gnmi.Register(g, s, t.Context())
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return l.Addr().String()
}

func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		s1, s2 shows
		more   string
		want   []string // expected findings of s1, s2 and the link; the last only if the link is at fault
	}{
		"as they should be":      {shows{1514, 1514}, shows{1514, 1514}, "", []string{"ok: the interfaces of all ports take frames of buffer.mtu, 1.5KB", "ok"}},
		"mtu with its header":    {shows{9216, 9216}, shows{9230, 9230}, ", mtu: 9216B", []string{"ok", "ok", "WARN: s1:1 takes frames of 9216 B, and s2:1 of 9230 B"}},
		"short ones":             {shows{1514, 9000}, shows{1514, 9230}, ", mtu: 9216B", []string{"WARN: buffer.mtu is 9216 B, and the interface of port 1 takes 1514 B, of port 2 takes 9000 B: longer frames are lost", "WARN"}},
		"long ones":              {shows{9014, 1514}, shows{9014, 1514}, "", []string{"WARN: buffer.mtu is 1500 B, and the interface of port 1 takes 9014 B: the headroom is too small", "WARN"}},
		"no interface":           {shows{1514, 0}, shows{0, 0}, "", []string{"not checked: no interface is known of ports 2", "not checked: no interface is known of ports 1, 2"}},
		"no policy":              {shows{1514, 1514}, shows{1514, 1514}, "-", []string{"not checked: without a buffer policy", "not checked: without"}},
		"another target":         {shows{1514, 1514}, nil, "", []string{"ok", "not checked: the target bmv2 does not show its interfaces"}},
		"one that does not hear": {nil, shows{1514, 1514}, "", []string{"not checked: its interfaces were not shown: ", "ok"}},
	} {
		address := func(s shows) string {
			if s == nil {
				return "127.0.0.1:1"
			}
			return s.serve(t)
		}
		target := "embedded"
		if c.s2 == nil {
			target = "bmv2"
		}
		text := fmt.Sprintf("name: f\nswitches: [{name: s1, device_id: 1, address: %q, target: embedded}, {name: s2, device_id: 2, address: %q, target: %s}]\n"+
			"hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]\n"+
			"links: [{a: \"s1:1\", b: \"s2:1\", rate: 1Gbps}, {a: \"s1:2\", b: h1, rate: 1Gbps}, {a: \"s2:2\", b: h2, rate: 1Gbps}]\n", address(c.s1), address(c.s2), target)
		if c.more != "-" {
			text += "qos: {classes: [{dscp: 24, class: 3}]}\nbuffer: {policy: sih, size: 16MB, lossless: [3]" + c.more + "}\n"
		}
		cfg, err := config.Parse("f.yaml", []byte(text), nil, controller.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(lines(t, Frames(t.Context(), cfg, nil)...), "\n")
		if last := len(got) - 1; last != len(c.want) || !strings.HasPrefix(got[last], "not checked: hosts do not report") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}
