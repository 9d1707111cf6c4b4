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
	now     units.Time // time of the last Report
}

// flow is a connection that the kernel governs.
type flow struct {
	kernel.Flow
	order   kernel.Order
	changed units.Time // when Acked last changed
}

func (a *Agent) look(now units.Time) error {
	list, err := a.kernel.Flows()
	if err != nil {
		return fmt.Errorf("the kernel's connections: %w", err)
	}
	before := a.flows
	a.now, a.flows = now, make(map[agent.FlowKey]*flow, len(list))
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

// Report returns the connections that are sending.
func (a *Agent) Report() []agent.FlowReport {
	list := make([]agent.FlowReport, 0, len(a.flows))
	for key, f := range a.flows {
		if f.Acked < reportFrom || a.now-f.changed > quiet {
			continue
		}
		var c Class // class that the connection began with
		if int(f.Class) < len(a.classes) {
			c = a.classes[f.Class]
		}
		r := agent.FlowReport{Key: key, App: c.App, Law: f.Law.String(), Weight: f.order.Weight, Allowed: f.Rate, Priority: c.Priority, Crowded: f.Crowded}
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

// Stats returns zeros. None of the flows completes, because the size of an application's transfer is unknown.
func (a *Agent) Stats() agent.Stats { return agent.Stats{} }

// SetWeight implements remote.Agent.
func (a *Agent) SetWeight(_ units.Time, key agent.FlowKey, w float64) error {
	if err := soze.CheckWeight(w); err != nil {
		return err
	}
	return a.change(key, func(o *kernel.Order) { o.Weight = w })
}

// Hold implements remote.Agent.
func (a *Agent) Hold(_ units.Time, key agent.FlowKey, held bool) error {
	return a.change(key, func(o *kernel.Order) { o.Held = held })
}

// SetChannel implements remote.Agent.
func (a *Agent) SetChannel(_ units.Time, key agent.FlowKey, c channel.Channel) error {
	return a.change(key, func(o *kernel.Order) { o.Channel, o.Held = c, false })
}

// DropChannel implements remote.Agent.
func (a *Agent) DropChannel(now units.Time, key agent.FlowKey) error { return a.Hold(now, key, true) }
