package softswitch

import (
	"context"
	"net/netip"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

func exactBytes(field uint32, v ...byte) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: field, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: v}}}
}

// watch returns the update that makes PACC watch queue 0 of a port, with a threshold of 1 B.
func watch(kind p4v1.Update_Type, port byte, metadata []byte) *p4v1.Update {
	return &p4v1.Update{Type: kind, Entity: p4rtmsg.Entity(&p4v1.TableEntry{
		TableId:  ids.TableWatchedQueue,
		Match:    []*p4v1.FieldMatch{exactBytes(ids.FieldWatchedQueueEgressPort, port), exactBytes(ids.FieldWatchedQueueQueue, 0)},
		Metadata: metadata,
		Action: p4rtmsg.Call(&p4v1.Action{
			ActionId: ids.ActionWatch, Params: []*p4v1.Action_Param{{ParamId: ids.ParamWatchThreshold, Value: []byte{1}}}}),
	})}
}

// apply writes entries as if by P4Runtime.
func apply(t *testing.T, s *Switch, updates ...*p4v1.Update) {
	t.Helper()
	var err error
	done := s.server.TryControl(func(st *entity.State, _ *engine.Instance) {
		for _, u := range updates {
			if err = st.Apply(u); err != nil {
				return
			}
		}
	})
	if !done || err != nil {
		t.Fatalf("apply: %v, %v", done, err)
	}
}

// learned returns the number of entries in PACC's two flow tables.
func learned(t *testing.T, s *Switch) int {
	t.Helper()
	return entriesOf(t, s, ids.TableFlow) + entriesOf(t, s, ids.TableCongestedFlow)
}

// entriesOf returns the number of entries in a table.
func entriesOf(t *testing.T, s *Switch, table uint32) int {
	t.Helper()
	n := 0
	s.server.TryControl(func(st *entity.State, _ *engine.Instance) {
		err := st.Read(p4rtmsg.Entity(&p4v1.TableEntry{TableId: table}), func(entity.Found) { n++ })
		if err != nil {
			t.Fatal(err)
		}
	})
	return n
}

func paccSettings(period units.Time, ageing time.Duration) []byte {
	p := cnpgen.ParamsFor(25*units.Gbps, 80*units.Microsecond).Stretch(float64(period) / float64(80*units.Microsecond))
	p.MaxFlows = 100
	return cnpgen.Settings{Params: p, MaxFlows: 100, DSCP: 48, Ageing: ageing}.Marshal()
}

// frameTo returns an IPv4 packet of protocol 253 from 10.0.1.src to a host behind port 2.
func frameTo(src byte) []byte {
	b := make([]byte, 100)
	b[12], b[13] = 8, 0
	ip := b[14:]
	copy(ip, []byte{0x45, 0, 0, 86, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 1, src, 10, 0, 2, 1})
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	ip[10], ip[11] = byte(^sum>>8), byte(^sum)
	return b
}

// route returns the update that sends 10.0.2.0/24 out of port 2.
func route() []*p4v1.Update {
	mac := []byte{2, 0, 0, 0, 0, 1}
	next := &p4v1.Action{ActionId: ids.ActionSetNextHop, Params: []*p4v1.Action_Param{
		{ParamId: 1, Value: []byte{2}}, {ParamId: 2, Value: mac}, {ParamId: 3, Value: mac}}}
	prefix := netip.MustParsePrefix("10.0.2.0/24")
	return []*p4v1.Update{
		{Type: p4v1.Update_INSERT, Entity: p4rtmsg.Entity(&p4v1.ActionProfileMember{
			ActionProfileId: ids.ProfileECMP, MemberId: 1, Action: next})},
		{Type: p4v1.Update_INSERT, Entity: p4rtmsg.Entity(&p4v1.TableEntry{
			TableId: ids.TableIPv4LPM,
			Match: []*p4v1.FieldMatch{{FieldId: ids.FieldIPv4LPMDstAddr, FieldMatchType: &p4v1.FieldMatch_Lpm{
				Lpm: &p4v1.FieldMatch_LPM{Value: prefix.Addr().AsSlice(), PrefixLen: int32(prefix.Bits())}}}},
			Action: &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}},
		})},
	}
}

// The agent wakes when an entry brings settings, learns flows, ages them, follows changed
// settings, and sleeps when the settings are deleted. All times are virtual.
func TestAgentFollowsTheTable(t *testing.T) {
	loop := clock.NewLoop()
	s, err := NewOnLoop(loop, Config{Name: "s", CPUPort: ids.CPUPort, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ports [3]*Port
	for n := 1; n <= 2; n++ {
		if ports[n], err = s.AddPort(uint32(n), 0); err != nil {
			t.Fatal(err)
		}
	}
	load := func() {
		t.Helper()
		if err := s.Server().LoadPipeline(p4src.P4Info, p4src.JSON()); err != nil {
			t.Fatal(err)
		}
	}
	load()
	loop.RunUntil(units.Millisecond)
	apply(t, s, route()...)
	apply(t, s, watch(p4v1.Update_INSERT, 2, []byte("somebody's own")))
	loop.RunUntil(200 * units.Millisecond)
	if _, _, awake := s.PACC(); awake {
		t.Fatal("the agent wakes without settings")
	}
	// Another PACC loop left this flow in the table. The agent must not learn it again.
	foreign := &p4v1.TableEntry{TableId: ids.TableFlow, Match: []*p4v1.FieldMatch{
		exactBytes(ids.FieldFlowSrcAddr, 10, 0, 1, 1), exactBytes(ids.FieldFlowDstAddr, 10, 0, 2, 1), exactBytes(ids.FieldFlowEgressPort, 2),
	}, Action: p4rtmsg.Call(&p4v1.Action{ActionId: ids.ActionCountFlow})}
	apply(t, s, p4rtmsg.Insert(foreign))
	const period = units.Millisecond
	apply(t, s, watch(p4v1.Update_MODIFY, 2, paccSettings(period, 500*time.Millisecond)))
	loop.RunUntil(400 * units.Millisecond)
	for i := range byte(5) {
		ports[1].Receive(frameTo(1+i), loop.Now())
	}
	loop.RunUntil(410 * units.Millisecond)
	st, pl, awake := s.PACC()
	if !awake || st.Flows != 5 || st.Learned != 5 || st.Ticks < 100 || st.Late != 0 || len(pl) != 1 || pl[0].Port != 2 {
		t.Fatalf("awake %v, %+v, %+v", awake, st, pl)
	}
	if n := learned(t, s); n != 10 {
		t.Errorf("%d entries for 5 flows, want 10", n)
	}
	// Changed settings keep the learned flows.
	apply(t, s, watch(p4v1.Update_MODIFY, 2, paccSettings(2*period, 500*time.Millisecond)))
	loop.RunUntil(600 * units.Millisecond)
	if st, _, _ := s.PACC(); st.Flows != 5 || st.Ticks > 100 {
		t.Errorf("after a change: %+v", st)
	}
	// Idle flows are removed.
	loop.RunUntil(1200 * units.Millisecond)
	if st, _, _ := s.PACC(); st.Aged != 5 || st.Flows != 0 || learned(t, s) != 0 {
		t.Errorf("after the ageing time: %+v, %d entries", st, learned(t, s))
	}
	// Bad settings put the agent to sleep and remove its flows.
	ports[1].Receive(frameTo(9), loop.Now())
	loop.RunUntil(1250 * units.Millisecond)
	if n := learned(t, s); n != 2 {
		t.Errorf("%d entries for a flow, want 2", n)
	}
	apply(t, s, watch(p4v1.Update_MODIFY, 2, []byte("{}")))
	loop.RunUntil(1400 * units.Millisecond)
	if _, _, awake := s.PACC(); awake || learned(t, s) != 0 {
		t.Errorf("with bad settings: awake %v, %d entries", awake, learned(t, s))
	}
	apply(t, s, watch(p4v1.Update_MODIFY, 2, paccSettings(period, time.Second)))
	loop.RunUntil(1600 * units.Millisecond)
	if _, _, awake := s.PACC(); !awake {
		t.Error("good settings do not wake it again")
	}
	// Another pipeline starts without flows. It has the same settings from its first moment.
	load()
	apply(t, s, watch(p4v1.Update_INSERT, 2, paccSettings(period, time.Second)))
	loop.RunUntil(1800 * units.Millisecond)
	if st, _, awake := s.PACC(); !awake || st.Ticks > 150 {
		t.Errorf("with another pipeline: awake %v, %+v", awake, st)
	}
	apply(t, s, watch(p4v1.Update_DELETE, 2, nil))
	loop.RunUntil(2000 * units.Millisecond)
	if _, _, awake := s.PACC(); awake {
		t.Error("the agent does not sleep without settings")
	}
}

// In real time, the agent keeps a period that no loop over a network could keep.
func TestAgentRealtime(t *testing.T) {
	s, err := NewRealtime(Config{Name: "s", CPUPort: ids.CPUPort, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Server().LoadPipeline(p4src.P4Info, p4src.JSON()); err != nil {
		t.Fatal(err)
	}
	apply(t, s.Switch, watch(p4v1.Update_INSERT, 2, paccSettings(units.Millisecond, time.Second)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for end := time.Now().Add(hang); ; time.Sleep(10 * time.Millisecond) {
		st, _, _ := s.PACC()
		if st.Ticks >= 500 {
			t.Logf("%d ticks of 1 ms: %d late, %d missed, %v late on average, %v at worst",
				st.Ticks, st.Late, st.Missed, st.Lateness/units.Time(st.Ticks), st.WorstLateness)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d ticks in 30 s", st.Ticks)
		}
	}
}
