package northbound

import (
	"context"
	"fmt"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/internal/gnmi"
)

// openConfig is the gNMI source of the fabric: each switch is a target.
type openConfig struct{ Options }

// operStatus is OpenConfig's name of a port's state.
var operStatus = map[pb.PortStatus_State]string{pb.PortStatus_STATE_UP: gnmi.Up, pb.PortStatus_STATE_DOWN: gnmi.Down, pb.PortStatus_STATE_UNKNOWN: gnmi.Unknown}

// ofPorts are the leaves that need no feature.
var ofPorts = []*gnmi.Leaf{gnmi.Type, gnmi.Description, gnmi.ID, gnmi.AdminStatus, gnmi.OperStatus}

// State implements gnmi.Source.
func (o openConfig) State(target string, wants gnmi.Wants) []gnmi.State {
	var states []gnmi.State
	needed := 0
	for _, leaf := range ofPorts {
		if wants[leaf] {
			needed++
		}
	}
	for _, s := range o.Backend.SwitchSummaries(target, len(wants) > needed) {
		v := values{wants: wants}
		for _, p := range s.Ports {
			v.addPort(p)
		}
		v.addFeatures(s.GetFeatures())
		states = append(states, gnmi.State{Target: s.GetName(), Values: v.list})
	}
	return states
}

// values collects the requested values of a switch.
type values struct {
	wants gnmi.Wants
	list  []gnmi.Value
}

// add adds the leaf's value if it was requested. of holds the keys of the lists in its path.
func (v *values) add(leaf *gnmi.Leaf, is any, of ...any) {
	if !v.wants[leaf] {
		return
	}
	value := gnmi.Value{Leaf: leaf, Is: is}
	for i, key := range of {
		value.Of[i] = fmt.Sprint(key)
	}
	v.list = append(v.list, value)
}

// addPort adds a port's own leaves.
func (v *values) addPort(p *pb.PortStatus) {
	admin := gnmi.Up
	if p.GetOutOfService() {
		admin = gnmi.Down
	}
	v.add(gnmi.Type, gnmi.Ethernet, p.GetPort())
	v.add(gnmi.Description, p.GetPeer(), p.GetPort())
	v.add(gnmi.ID, p.GetPort(), p.GetPort())
	v.add(gnmi.AdminStatus, admin, p.GetPort())
	v.add(gnmi.OperStatus, operStatus[p.GetState()], p.GetPort())
}

// addFeatures adds the features' values. Unknown values are left out.
func (v *values) addFeatures(s *pb.FeatureStatus) {
	for _, p := range s.GetTelemetry().GetPorts() {
		v.add(gnmi.OutOctets, p.GetTransmittedBytes(), p.GetPort())
		v.add(gnmi.OutPkts, p.GetTransmittedPackets(), p.GetPort())
		v.add(gnmi.OutDiscards, p.GetRefusedPackets(), p.GetPort())
		v.add(gnmi.QueueingDelay, pb.Nanoseconds(p.GetDelay()), p.GetPort())
	}
	for _, q := range s.GetTelemetry().GetQueues() {
		v.add(gnmi.QueueLen, q.GetHeldBytes(), q.GetPort(), q.GetQueue())
	}
	b := s.GetBuffer()
	if t := b.GetSwitch(); t != nil && t.ThresholdBytes != nil {
		v.add(gnmi.Threshold, t.GetThresholdBytes())
	}
	for _, p := range b.GetPools() {
		v.add(gnmi.PoolSize, p.GetSizeBytes(), p.GetPool())
		v.add(gnmi.PoolUsed, p.GetUsedBytes(), p.GetPool())
		v.add(gnmi.PoolPeak, p.GetPeakBytes(), p.GetPool())
	}
	for _, p := range b.GetPorts() {
		v.add(gnmi.PFCPauseFrames, p.GetPauses(), p.GetPort())
		v.add(gnmi.PFCResumeFrames, p.GetResumes(), p.GetPort())
		v.add(gnmi.PFCRefreshFrames, p.GetRefreshes(), p.GetPort())
		v.add(gnmi.Departed, p.GetDepartedBytes(), p.GetPort())
		v.add(gnmi.Victim, p.GetVictim(), p.GetPort())
		v.add(gnmi.VictimTurns, p.GetTurns(), p.GetPort())
	}
	for _, c := range b.GetClasses() {
		if c.Paused != nil {
			v.add(gnmi.PeerPaused, c.GetPaused(), c.GetPort(), c.GetClass())
			v.add(gnmi.PeerPausedTime, pb.Nanoseconds(c.GetPausedTime()), c.GetPort(), c.GetClass())
			v.add(gnmi.LosslessDrops, c.GetLosslessDrops(), c.GetPort(), c.GetClass())
		}
		v.add(gnmi.ClassPrivate, c.GetPrivateBytes(), c.GetPort(), c.GetClass())
		v.add(gnmi.ClassShared, c.GetSharedBytes(), c.GetPort(), c.GetClass())
		v.add(gnmi.ClassHeadroom, c.GetHeadroomBytes(), c.GetPort(), c.GetClass())
	}
	for _, c := range s.GetPfcwatchdog().GetClasses() {
		v.add(gnmi.Storm, c.GetStorm(), c.GetPort(), c.GetClass())
		v.add(gnmi.Storms, c.GetStorms(), c.GetPort(), c.GetClass())
		v.add(gnmi.StormDrops, c.GetDropped(), c.GetPort(), c.GetClass())
	}
}

// Changed implements gnmi.Source.
func (o openConfig) Changed(ctx context.Context) <-chan struct{} {
	sub, changed := o.Events.Subscribe(events.Options[*pb.Event]{Buffer: 1}), make(chan struct{}, 1)
	go func() {
		defer sub.Close()
		for {
			if _, _, err := sub.Next(ctx); err != nil {
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed
}
