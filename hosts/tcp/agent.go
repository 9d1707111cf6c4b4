//go:build linux

package tcp

import (
	"fmt"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/units"
)

// A connection is a flow of the host while it sends. It becomes one once reportFrom bytes are
// acknowledged, and stops being one when nothing was acknowledged for quiet. Idle connections
// would otherwise take shares of budgets that they do not use.
const (
	reportFrom = 64 * units.KB
	quiet      = 10 * units.Second
)

// connections is the part of *kernel.Kernel that Agent uses.
type connections interface {
	Flows() ([]kernel.Flow, error)
	Tell(key kernel.Key, o kernel.Order) error
}

// Agent presents connections as flows of a host. It implements remote.Agent. Only one goroutine at
// a time may call it.
type Agent struct {
	kernel  connections
	classes []Class
	flows   map[agent.FlowKey]*flow
}

// flow is a connection that the kernel knows.
type flow struct {
	kernel.Flow
	order   kernel.Order
	changed units.Time // when Acked last changed
}

// look reads the kernel's connections into flows.
func (a *Agent) look(now units.Time) error {
	list, err := a.kernel.Flows()
	if err != nil {
		return fmt.Errorf("the kernel's connections: %w", err)
	}
	before := a.flows
	a.flows = make(map[agent.FlowKey]*flow, len(list))
	for _, k := range list {
		key := agent.FlowKey{Src: k.Key.Src.Addr(), Dst: k.Key.Dst.Addr(), SrcPort: k.Key.Src.Port(), DstPort: k.Key.Dst.Port()}
		f := before[key]
		if f == nil || f.Started != k.Started {
			f = &flow{order: kernel.Order{Weight: k.Weight, Channel: k.Channel, Held: k.Held}, changed: now}
		}
		if f.Acked != k.Acked {
			f.changed = now
		}
		f.Flow = k
		a.flows[key] = f
	}
	return nil
}

// class returns the class that a connection got when it began.
func (a *Agent) class(f *flow) Class {
	if int(f.Class) < len(a.classes) {
		return a.classes[f.Class]
	}
	return Class{}
}

// report returns the connections that are sending.
func (a *Agent) report(now units.Time) []agent.FlowReport {
	list := make([]agent.FlowReport, 0, len(a.flows))
	for key, f := range a.flows {
		if f.Acked < reportFrom || now-f.changed > quiet {
			continue
		}
		c := a.class(f)
		r := agent.FlowReport{Key: key, App: c.App, Weight: f.order.Weight, Allowed: f.Rate, Priority: c.Priority, Crowded: f.Crowded}
		r.Started = units.FromDuration(f.Started)
		r.Acked, r.SRTT, r.LeastRTT, r.MaxQD, r.Retransmits = f.Acked, f.RTT, f.LeastRTT, f.MaxQD, uint64(f.Retransmits)
		list = append(list, r)
	}
	return list
}

// change applies change to a connection's order, and tells the connection if the order changed.
func (a *Agent) change(key agent.FlowKey, change func(o *kernel.Order)) error {
	f := a.flows[key]
	if f == nil {
		return fmt.Errorf("%v: %w", key, agent.ErrNoFlow)
	}
	o := f.order
	change(&o)
	if o == f.order {
		return nil
	}
	if err := a.kernel.Tell(f.Key, o); err != nil {
		return fmt.Errorf("%v: %w", key, err)
	}
	f.order = o
	return nil
}

// view is an Agent at time now, the form that remote.Agent needs.
type view struct {
	*Agent
	now units.Time
}

func (v view) Report() []agent.FlowReport { return v.report(v.now) }

// Stats returns zeros. None of the flows completes, because nobody knows the size of what an
// application sends.
func (v view) Stats() agent.Stats { return agent.Stats{} }

func (v view) SetWeight(_ units.Time, key agent.FlowKey, w float64) error {
	if err := soze.CheckWeight(w); err != nil {
		return err
	}
	return v.change(key, func(o *kernel.Order) { o.Weight = w })
}

func (v view) Hold(_ units.Time, key agent.FlowKey, held bool) error {
	return v.change(key, func(o *kernel.Order) { o.Held = held })
}

func (v view) SetChannel(_ units.Time, key agent.FlowKey, c channel.Channel) error {
	return v.change(key, func(o *kernel.Order) { o.Channel, o.Held = c, false })
}

func (v view) DropChannel(_ units.Time, key agent.FlowKey) error { return v.Hold(v.now, key, true) }
