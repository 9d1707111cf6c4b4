package softswitch

import (
	"context"
	"net"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/port"
)

// openConfig is the switch as gNMI shows it. It is one target and accepts any target name.
type openConfig struct{ *Switch }

// State implements gnmi.Source.
func (s openConfig) State(target string, wants gnmi.Wants) []gnmi.State {
	state := gnmi.State{Target: target}
	if len(wants) == 0 {
		return []gnmi.State{state}
	}
	add := func(is any, leaf *gnmi.Leaf, of ...string) {
		if !wants[leaf] {
			return
		}
		v := gnmi.Value{Leaf: leaf, Is: is}
		copy(v.Of[:], of)
		state.Values = append(state.Values, v)
	}
	var frames map[string]uint32
	if wants[gnmi.MTU] {
		frames = largestFrames()
	}
	for _, p := range s.PortStats() {
		if p.Port == s.cpu {
			continue
		}
		port, oper := strconv.FormatUint(uint64(p.Port), 10), gnmi.Down
		if p.Up {
			oper = gnmi.Up
		}
		dropped := p.Queues.Dropped().Packets
		add(gnmi.Ethernet, gnmi.Type, port)
		add(p.Name, gnmi.Description, port)
		if most, ok := frames[p.Name]; ok {
			add(most, gnmi.MTU, port)
		}
		if p.Port != 0 { // P4Runtime's model has no port 0
			add(p.Port, gnmi.ID, port)
		}
		add(gnmi.Up, gnmi.AdminStatus, port) // a port of the switch cannot be disabled
		add(oper, gnmi.OperStatus, port)
		add(p.RxBytes, gnmi.InOctets, port)
		add(p.RxFrames, gnmi.InPkts, port)
		add(p.Driver.RxOverruns, gnmi.InDiscards, port)
		add(p.Driver.RxTruncated, gnmi.InErrors, port)
		add(p.TxBytes, gnmi.OutOctets, port)
		add(p.TxFrames, gnmi.OutPkts, port)
		add(dropped+p.TxLost, gnmi.OutDiscards, port)
		add(p.Driver.TxErrors, gnmi.OutErrors, port)
		for why, n := range p.Lost() {
			add(n, gnmi.DropPackets, port, why)
		}
		for i := range p.Queues.Queues {
			q, n := &p.Queues.Queues[i], strconv.Itoa(i)
			add(uint64(q.MaxBytes), gnmi.MaxQueueLen, port, n)
			add(uint64(q.Bytes), gnmi.QueueLen, port, n)
			add(q.Dequeued.Packets, gnmi.TransmitPkts, port, n)
			add(uint64(q.Dequeued.Bytes), gnmi.TransmitOctets, port, n)
			add(q.Dropped.Packets, gnmi.DroppedPkts, port, n)
			add(uint64(q.Dropped.Bytes), gnmi.DroppedOctets, port, n)
			if s.dataplane.pfc != nil {
				add(q.Paused.Count, gnmi.QueuePauses, port, n)
				add(uint64(q.Paused.Time.Duration()), gnmi.QueuePausedTime, port, n)
			}
		}
		if s.dataplane.pfc == nil {
			continue
		}
		add(p.PFC.Frames+p.PFC.Malformed+p.PFC.Other, gnmi.InMACControl, port)
		add(p.PFC.Frames, gnmi.PFCInFrames, port)
		for c := range packet.PFCClasses {
			n := strconv.Itoa(c)
			add(p.PFC.Pauses[c], gnmi.InPauses, port, n)
			add(p.PFC.Resumes[c], gnmi.InResumes, port, n)
			add(p.PFC.Storming>>c&1 != 0, gnmi.Storm, port, n)
			add(p.PFC.Storms[c], gnmi.Storms, port, n)
			add(p.PFC.StormDropped[c], gnmi.StormDrops, port, n)
		}
	}
	return []gnmi.State{state}
}

// realtimePorts is the openConfig of a switch whose ports can change while it runs.
type realtimePorts struct {
	openConfig
	switched *Realtime
}

// SetPorts implements gnmi.Setter.
func (s realtimePorts) SetPorts(ctx context.Context, changes []gnmi.PortChange) error {
	for _, c := range changes {
		n, err := strconv.ParseUint(c.Port, 10, 32)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "interface[name=%s]: want the number of a port", c.Port)
		}
		if c.Interface == "" {
			err = s.switched.Detach(ctx, uint32(n))
		} else {
			err = s.switched.Attach(ctx, port.Named{Number: uint32(n), Name: c.Interface})
		}
		if err != nil {
			return status.Error(codes.FailedPrecondition, err.Error())
		}
	}
	return nil
}

// largestFrames returns the largest frame of each interface as OpenConfig counts it, with the
// Ethernet header that the kernel's MTU leaves out. It has no entry for an interface outside this
// network namespace.
func largestFrames() map[string]uint32 {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	by := map[string]uint32{}
	for _, i := range list {
		by[i.Name] = uint32(min(max(i.MTU, 0)+gnmi.EthernetHeader, 65535)) // the OpenConfig leaf has 16 bits
	}
	return by
}

// Changed implements gnmi.Source. The channel receives when the state of a port changes.
func (s openConfig) Changed(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	s.followers.Store(c, nil)
	context.AfterFunc(ctx, func() { s.followers.Delete(c) })
	return c
}

// tellFollowers wakes gNMI's streams.
func (s *Switch) tellFollowers() {
	s.followers.Range(func(c, _ any) bool {
		signal(c.(chan struct{}))
		return true
	})
}
