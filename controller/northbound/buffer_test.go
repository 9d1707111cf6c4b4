package northbound

import (
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/view"
)

func TestBufferToProto(t *testing.T) {
	if switchToProto(view.Switch{Name: "s1"}).Buffer != nil {
		t.Error("a switch of which nothing is known has a buffer")
	}
	b := switchToProto(view.Switch{Name: "s1", Buffer: &view.Buffer{
		Policy: "spfc", Time: clock, Size: view.Pools{Shared: 100, Insurance: 9}, Used: view.Pools{Private: 1, Headroom: 2}, Peak: view.Pools{Shared: 50}, Threshold: 60,
		Ports: []view.PortBuffer{{
			Number: 3, Peer: "h1\xff", Victim: true, Turns: 4, Paused: 1 << 3, PortPaused: true, PausedTime: [8]time.Duration{3: time.Second},
			Pauses: 5, Resumes: 6, Refreshes: 7, Late: time.Millisecond, MostLate: 2 * time.Millisecond,
			Private: [8]uint64{3: 1}, Shared: [8]uint64{3: 2}, Headroom: [8]uint64{3: 3}, Insured: 4, Departed: 8, LosslessDrops: [8]uint64{3: 9},
		}},
		Alarms: []view.Alarm{
			{Kind: view.StormAlarm, Port: 3, Class: -1, Since: clock, Text: "port 3"},
			{Kind: view.StuckAlarm, Port: 3, Class: 0, Since: clock},
		},
	}}).Buffer
	if b.GetPolicy() != "spfc" || !b.GetTime().AsTime().Equal(clock) || b.GetThresholdBytes() != 60 || b.GetSize().GetInsuranceBytes() != 9 ||
		b.GetUsed().GetHeadroomBytes() != 2 || b.GetPeak().GetSharedBytes() != 50 {
		t.Errorf("buffer = %v", b)
	}
	p := b.GetPorts()[0]
	if p.GetPort() != 3 || p.GetPeer() != "h1\uFFFD" || !p.GetVictim() || p.GetVictimTurns() != 4 || p.GetPausedClasses() != 8 || !p.GetPortPaused() ||
		len(p.GetPausedNs()) != 8 || p.GetPausedNs()[3] != 1e9 || p.GetPauseFrames() != 5 || p.GetResumeFrames() != 6 || p.GetRefreshFrames() != 7 ||
		p.GetRefreshLateNs() != 1e6 || p.GetRefreshMostLateNs() != 2e6 || p.GetPrivateBytes()[3] != 1 || p.GetSharedBytes()[3] != 2 ||
		p.GetHeadroomBytes()[3] != 3 || p.GetInsuredBytes() != 4 || p.GetDepartedBytes() != 8 || p.GetLosslessDrops()[3] != 9 {
		t.Errorf("port = %v", p)
	}
	storm, stuck := b.GetAlarms()[0], b.GetAlarms()[1]
	if storm.GetKind() != "pfc.storm" || storm.Class != nil || storm.GetText() != "port 3" || !storm.GetSince().AsTime().Equal(clock) {
		t.Errorf("alarm = %v", storm)
	}
	if stuck.Class == nil || stuck.GetClass() != 0 {
		t.Errorf("alarm of class 0 = %v", stuck)
	}
}

func TestEventOfPort(t *testing.T) {
	class := uint8(0)
	e := eventToProto(view.Event{Time: clock, Severity: view.Error, Subject: "s1", Kind: "pfc.stuck_over", Port: 3, Class: &class, Since: clock.Add(-time.Second)})
	if e.GetPort() != 3 || e.Class == nil || e.GetClass() != 0 || !e.GetSince().AsTime().Equal(clock.Add(-time.Second)) || e.GetSeverity() != pb.Event_SEVERITY_ERROR {
		t.Errorf("event = %v", e)
	}
	if e := eventToProto(view.Event{Kind: "link.up"}); e.Class != nil || e.GetSince() != nil {
		t.Errorf("event = %v", e)
	}
}
