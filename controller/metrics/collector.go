// Package metrics shows the controller to Prometheus. It reads the same plain views that the
// API serves, at the moment of a scrape, and keeps nothing but the last sample of each port.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/controller/events"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/controller/weights"
)

// Source is the part of the controller's core that is measured.
type Source interface {
	Fabric() view.Fabric
	Switches() []view.Switch
}

// Options of a Collector. Source is required; what is nil is left out.
type Options struct {
	Source  Source
	Weights *weights.Registry
	Events  *events.Bus[view.Event]
	Samples *events.Bus[view.Sample]
}

// Collector implements prometheus.Collector. It is safe for concurrent use; it owns the last
// samples, under mu.
type Collector struct {
	Options
	mu   sync.Mutex
	last map[portKey]view.Sample
}

type portKey struct {
	node string
	port uint32
}

// NewCollector returns a collector. Run feeds it with samples.
func NewCollector(o Options) *Collector {
	return &Collector{Options: o, last: map[portKey]view.Sample{}}
}

// Run follows the sample bus until ctx ends or the bus is closed, which are not errors.
func (c *Collector) Run(ctx context.Context) error {
	if c.Samples == nil {
		return nil
	}
	sub := c.Samples.Subscribe(events.Options[view.Sample]{})
	defer sub.Close()
	for {
		list, _, err := sub.Next(ctx)
		switch {
		case errors.Is(err, events.ErrClosed) || ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for _, s := range list {
			c.Observe(s)
		}
	}
}

// Observe keeps a sample as the last of its port.
func (c *Collector) Observe(s view.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[portKey{s.Switch, s.Port}] = s
}

// samples returns the last samples of the switches that are configured, and forgets the rest.
func (c *Collector) samples(switches []view.Switch) []view.Sample {
	configured := map[string]bool{}
	for _, s := range switches {
		configured[s.Name] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]view.Sample, 0, len(c.last))
	for k, s := range c.last {
		if !configured[k.node] {
			delete(c.last, k)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	fabric := c.Source.Fabric()
	generation.send(ch, float64(fabric.Generation))
	for _, l := range fabric.Links {
		linkUp.send(ch, truth(l.Up), end(l.A), end(l.B))
	}
	switches := c.Source.Switches()
	for _, s := range switches {
		for state, name := range stateNames {
			switchState.send(ch, truth(s.State == state), s.Name, name)
		}
		switchEntries.send(ch, float64(s.Entries), s.Name)
		switchReconciles.send(ch, float64(s.Reconciles), s.Name)
		for _, p := range s.Ports {
			portUp.send(ch, truth(p.Up), s.Name, number(p.Number), p.Peer)
		}
		if s.Buffer != nil {
			buffer(ch, s.Name, s.Buffer)
		}
		if s.PACC != nil {
			paccLoop(ch, s.Name, s.PACC)
		}
	}
	for _, s := range c.samples(switches) {
		port := []string{s.Switch, number(s.Port), s.Peer}
		for q, b := range s.QueueBytes {
			portQueue.send(ch, float64(b), append(port[:3:3], strconv.Itoa(q))...)
		}
		portDelay.send(ch, s.QueueingDelay.Seconds(), port...)
		portBytes.send(ch, float64(s.DepartureBytes), port...)
		portPackets.send(ch, float64(s.DeparturePackets), port...)
		portDrops.send(ch, float64(s.Drops), port...)
		portSampled.send(ch, float64(s.Time.UnixMilli())/1000, port...)
	}
	if c.Weights != nil {
		for _, b := range c.Weights.Budgets() {
			weightFlows.send(ch, float64(b.Flows), b.Application)
			weightUsed.send(ch, b.Used.Float(), b.Application)
			if b.Limit != 0 {
				weightLimit.send(ch, b.Limit.Float(), b.Application)
			}
		}
		s := c.Weights.Stats()
		weightChanges.send(ch, float64(s.Changes))
		weightRefusals.send(ch, float64(s.Refusals))
		weightWatchers.send(ch, float64(s.Watchers))
	}
	if c.Events != nil {
		bus(ch, "events", c.Events.Stats())
	}
	if c.Samples != nil {
		bus(ch, "samples", c.Samples.Stats())
	}
}

func bus(ch chan<- prometheus.Metric, name string, s events.Stats) {
	busPublished.send(ch, float64(s.Published), name)
	busDropped.send(ch, float64(s.Dropped), name)
	busSubscribers.send(ch, float64(s.Subscribers), name)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// end names an end of a link: a host, or a switch with its port.
func end(e view.Endpoint) string {
	if e.Port == 0 {
		return e.Node
	}
	return fmt.Sprintf("%s:%d", e.Node, e.Port)
}

// send emits a value. A label that is not UTF-8 must not cost the scrape.
func (m metric) send(ch chan<- prometheus.Metric, value float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	v, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
	if err != nil {
		v = prometheus.NewInvalidMetric(m.desc, err)
	}
	ch <- v
}
