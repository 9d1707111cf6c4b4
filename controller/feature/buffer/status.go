package buffer

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
)

// State returns the state of a switch's buffer, nil if it is unknown.
func (f *feat) State(sw string) *State {
	s, _ := f.latest.Get(sw)
	return s
}

// Status implements feature.Monitor. Without a policy there is nothing but that.
func (f *feat) Status(sw string, out *pb.FeatureStatus) {
	s := f.State(sw)
	if s == nil {
		return
	}
	b := &pb.BufferStatus{Switch: &pb.BufferSwitch{Policy: s.Policy}}
	out.Buffer = b
	if len(s.Ports) == 0 {
		return
	}
	b.Switch.ThresholdBytes, b.Switch.Polled = &s.Threshold, view.Stamp(s.Time)
	pool := func(name string, size, used, peak uint32) {
		b.Pools = append(b.Pools, &pb.BufferPool{Policy: s.Policy, Pool: name, SizeBytes: uint64(size), UsedBytes: uint64(used), PeakBytes: uint64(peak)})
	}
	pool("private", s.Size.Private, s.Used.Private, s.Peak.Private)
	pool("shared", s.Size.Shared, s.Used.Shared, s.Peak.Shared)
	pool("headroom", s.Size.Headroom, s.Used.Headroom, s.Peak.Headroom)
	pool("insurance", s.Size.Insurance, s.Used.Insurance, s.Peak.Insurance)
	for i := range s.Ports {
		s.Ports[i].status(b)
	}
	on := map[string]uint64{}
	for _, a := range s.Alarms {
		on[a.Kind]++
		alarm := &pb.BufferAlarm{Alarm: a.Kind, Port: a.Port, Since: view.Stamp(a.Since), Detail: a.Text}
		if a.Class >= 0 {
			alarm.Class = proto.Uint32(uint32(a.Class))
		}
		b.Alarms = append(b.Alarms, alarm)
	}
	for _, kind := range alarmKinds {
		b.Watchdog = append(b.Watchdog, &pb.BufferAlarmCount{Kind: kind, On: on[kind]})
	}
}

var _ feature.Monitor = (*feat)(nil)

// status adds the port and its classes, except lossy classes that hold nothing.
func (p *PortState) status(b *pb.BufferStatus) {
	var paused []string
	for c := range headroom.Classes {
		lossless, stopped := p.Lossless>>c&1 != 0, p.Paused>>c&1 != 0
		if stopped {
			paused = append(paused, strconv.Itoa(c))
		}
		if !lossless && p.Private[c]+p.Shared[c] == 0 {
			continue
		}
		class := &pb.BufferClass{
			Port: p.Number, Peer: p.Peer, Class: uint32(c),
			PrivateBytes: uint64(p.Private[c]), SharedBytes: uint64(p.Shared[c]), HeadroomBytes: uint64(p.Headroom[c]),
		}
		if lossless {
			class.Paused, class.PausedNs, class.LosslessDrops = &stopped, proto.Uint64(view.Nanoseconds(p.PausedTime[c])), &p.LosslessDrops[c]
		}
		b.Classes = append(b.Classes, class)
	}
	if p.PortPaused {
		paused = []string{"port"}
	}
	b.Ports = append(b.Ports, &pb.BufferPort{
		Port: p.Number, Peer: p.Peer, Paused: strings.Join(paused, ","), Pauses: p.Pauses, Resumes: p.Resumes, Refreshes: p.Refreshes,
		LateNs: view.Nanoseconds(p.Late), MostLateNs: view.Nanoseconds(p.MostLate), DepartedBytes: p.Departed, Victim: p.Victim, Turns: p.Turns,
	})
}
