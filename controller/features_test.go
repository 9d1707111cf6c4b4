package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// TestOrderOfFeatures: features produce the same entries and the same actions in any order of
// construction and of messages.
func TestOrderOfFeatures(t *testing.T) {
	text, err := os.ReadFile("../examples/lossless.yaml")
	if err != nil {
		t.Fatal(err)
	}
	env := testenv.New(t, "..", func(string) string {
		return string(text) + "\npacc: {enabled: true, cnp_dscp: 48, force: true}\n"
	}, constructed()...)
	all := features()
	want := ""
	for round := range uint64(20) {
		order := slices.Clone(all)
		if round > 0 {
			r := rand.New(rand.NewPCG(round, 0))
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		got := runFeatures(t, env, order)
		switch {
		case round == 0:
			want = got
			for _, part := range []string{"ingress.pacc.watched_queue", "buffer_policy", "sample", "seen leaf1", "packet", "written"} {
				if !strings.Contains(got, part) {
					t.Fatalf("the features do nothing about %q:\n%s", part, got)
				}
			}
		case got != want:
			t.Fatalf("round %d: got\n%s\nwant\n%s", round, got, want)
		}
	}
}

// constructed returns all features, without a hub.
func constructed() []*feature.Feature {
	var list []*feature.Feature
	for _, construct := range features() {
		list = append(list, construct(nil))
	}
	return list
}

// runFeatures asks features for a switch's desired state and passes one message of each kind to
// their loops. It returns everything that they did, sorted.
func runFeatures(t *testing.T, env *feature.Env, list []feature.Constructor) string {
	t.Helper()
	hub, sw := &testenv.Callbacks{}, &testenv.Switch{Switch: "leaf1"}
	var lines []string
	var loops []feature.Loop
	for _, construct := range list {
		f := construct(hub)
		lines = append(lines, testenv.Lines(t, f, env, "leaf1")...)
		if f.Attach == nil {
			continue
		}
		if l := f.Attach(env, sw); l != nil {
			loops = append(loops, l)
		}
	}
	now := time.Now().Add(time.Second)
	field := func(b ...byte) *p4v1.P4Data { return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}} }
	flow := &p4v1.P4StructLike{Members: []*p4v1.P4Data{field(10, 0, 1, 1), field(10, 0, 2, 1), field(0, 3)}}
	tick := func() {
		for _, l := range loops {
			if err := l.Tick(context.Background(), now); err != nil {
				t.Fatal(err)
			}
		}
	}
	tick()
	for _, m := range []feature.Message{
		{Report: &feature.Report{Report: pollreport.Report{Port: 3, DepartedBytes: 5}, Asked: now}},
		{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": 2, "ingress_port": 1}, Payload: []byte("x")}},
		{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": 2, "ingress_port": 4}, Payload: lldpFrom(t, env)}},
		{Digest: &p4v1.DigestList{DigestId: ids.DigestFlowDigestT, Data: []*p4v1.P4Data{{Data: &p4v1.P4Data_Struct{Struct: flow}}}}},
		{Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{{TableId: 1}}}},
	} {
		for _, l := range loops {
			l.Receive(now, m)
		}
	}
	now = now.Add(time.Second)
	tick()
	for _, s := range hub.Samples {
		lines = append(lines, fmt.Sprintf("sample of port %d: %d B", s.Port, s.DepartureBytes))
	}
	for _, s := range hub.Seen {
		lines = append(lines, "seen "+s)
	}
	for _, e := range hub.Events {
		lines = append(lines, "event "+e.Kind+": "+e.Message)
	}
	for _, o := range sw.Out {
		lines = append(lines, fmt.Sprintf("packet %v", o.GetMetadata()))
	}
	for _, u := range sw.Written {
		lines = append(lines, "written "+env.Pipeline.Describe(u.GetEntity()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// lldpFrom returns leaf2's probe to leaf1.
func lldpFrom(t *testing.T, env *feature.Env) []byte {
	t.Helper()
	peer := &testenv.Switch{Switch: "leaf2"}
	for _, construct := range features() {
		f := construct(&testenv.Callbacks{})
		if f.Name == "linkprobe" {
			if err := f.Attach(testenv.AtSwitch(env, peer.Name()), peer).Tick(context.Background(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(peer.Out) == 0 {
		t.Fatal("leaf2 sends no probe")
	}
	return peer.Out[0].GetPayload()
}
