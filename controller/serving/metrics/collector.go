// Package metrics shows the controller to Prometheus. It reads the same plain views that the
// API serves, at the moment of a scrape, and keeps nothing.
package metrics

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/serving/tables"
	"github.com/headgate/headgate/internal/clients"
)

// Source is the part of the controller's core that is measured.
type Source interface {
	Fabric() *pb.GetFabricResponse
	Switches() []*pb.SwitchStatus
}

// Options of a Collector. Source is required; metrics of a nil field are left out.
type Options struct {
	Source  Source
	Weights *weights.Registry
	Events  *events.Bus[*pb.Event]
	Samples *events.Bus[feature.Sample]
	// HostAlarms returns how often each alarm about a host began.
	HostAlarms func() map[conduct.HostAlarm]uint64
}

// Collector implements prometheus.Collector. It is safe for concurrent use.
type Collector struct {
	Options
	tables map[*tables.Table][]metric // never changed
}

// NewCollector returns a collector.
func NewCollector(o Options) *Collector {
	c := &Collector{Options: o, tables: map[*tables.Table][]metric{}}
	for _, t := range tables.All {
		c.tables[t] = families(t)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		ch <- m.desc
	}
	for _, list := range c.tables {
		for _, m := range list {
			if m.desc != nil {
				ch <- m.desc
			}
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	fabric := c.Source.Fabric()
	generation.send(ch, float64(fabric.Generation))
	var links, ports []series
	for _, l := range fabric.Links {
		if l.State != pb.PortStatus_STATE_UNKNOWN {
			links = append(links, one(truth(l.State == pb.PortStatus_STATE_UP), end(l.A), end(l.B)))
		}
	}
	rows := map[*tables.Table][]series{}
	for _, s := range c.Source.Switches() {
		for state := pb.SwitchStatus_STATE_DISCONNECTED; state <= pb.SwitchStatus_STATE_DEGRADED; state++ {
			switchState.send(ch, truth(s.State == state), s.Name, pb.Word(state))
		}
		switchEntries.send(ch, float64(s.Entries), s.Name)
		switchReconciles.send(ch, float64(s.Reconciles), s.Name)
		switchDropped.send(ch, float64(s.GetDroppedMessages()), s.GetName())
		for _, p := range s.Ports {
			if p.State == pb.PortStatus_STATE_UNKNOWN {
				continue
			}
			ports = append(ports, one(truth(p.State == pb.PortStatus_STATE_UP), s.Name, number(p.GetPort()), p.Peer))
		}
		for _, t := range tables.All {
			for _, r := range t.Rows(s.GetFeatures()) {
				rows[t] = append(rows[t], row(s.Name, r))
			}
		}
	}
	saved := linkUp.sendAll(ch, links, 0, 1) + portUp.sendAll(ch, ports, 1, 2)
	for t, list := range rows {
		saved += c.status(ch, t, list)
	}
	merged.send(ch, float64(saved))
	if c.Weights != nil {
		// Hosts choose the names of applications without a budget, so these share one series.
		other := weights.Budget{Application: "(other)"}
		for _, b := range c.Weights.Budgets() {
			if !b.Named() && b.Application != weights.DefaultApplication {
				other.Flows += b.Flows
				other.Used += b.Used
				continue
			}
			weightFlows.send(ch, float64(b.Flows), b.Application)
			weightUsed.send(ch, b.Used.Float(), b.Application)
			if b.Limit != 0 {
				weightLimit.send(ch, b.Limit.Float(), b.Application)
			}
		}
		weightFlows.send(ch, float64(other.Flows), other.Application)
		weightUsed.send(ch, other.Used.Float(), other.Application)
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
	budget(ch, clients.Process.Stats())
	if c.HostAlarms != nil {
		for a, n := range c.HostAlarms() {
			hostAlarms.send(ch, float64(n), a.Host, a.Alarm)
		}
	}
}

// status sends a feature's metrics of all switches, and returns how many series merging saved.
func (c *Collector) status(ch chan<- prometheus.Metric, t *tables.Table, list []series) int {
	columns, kinds := 0, make([]kind, len(t.Columns))
	for i, m := range c.tables[t] {
		if kinds[i] = kindOf(t.Columns[i]); m.desc != nil {
			columns++
		}
	}
	list, saved := bounded(list, kinds, columns, ofPort(t))
	for i, m := range c.tables[t] {
		for _, s := range list {
			if m.desc != nil && s.known[i] {
				m.send(ch, s.values[i], s.labels...)
			}
		}
	}
	return saved
}

// row is a row of a table of a switch.
func row(sw string, r tables.Row) series {
	s := series{labels: append([]string{sw}, r.Keys...), values: make([]float64, len(r.Values)), known: make([]bool, len(r.Values))}
	for i, v := range r.Values {
		s.values[i], s.known[i] = tables.Number(v)
	}
	return s
}

// one returns a series of a single value.
func one(value float64, labels ...string) series {
	return series{labels: labels, values: []float64{value}, known: []bool{true}}
}

// sendAll emits whether things are up. The labels with the indices at are the port's.
func (m metric) sendAll(ch chan<- prometheus.Metric, list []series, at ...int) int {
	list, saved := bounded(list, []kind{least}, 1, at)
	for _, s := range list {
		m.send(ch, s.values[0], s.labels...)
	}
	return saved
}

func bus(ch chan<- prometheus.Metric, name string, s events.Stats) {
	busPublished.send(ch, float64(s.Published), name)
	busDropped.send(ch, float64(s.Dropped), name)
	busSubscribers.send(ch, float64(s.Subscribers), name)
}

func budget(ch chan<- prometheus.Metric, s clients.Stats) {
	waitingBytes.send(ch, float64(s.Bytes))
	waitingLimit.send(ch, float64(s.Limit))
	receiving.send(ch, float64(s.Receiving))
	clientCalls.send(ch, float64(s.Calls))
	unreadStreams.send(ch, float64(s.Unread))
	unreadConns.send(ch, float64(s.Closed))
	refusedCalls.send(ch, float64(s.Refused))
	for _, l := range s.Listeners {
		openConns.send(ch, float64(l.Open), l.Name)
		refusedConns.send(ch, float64(l.Refused), l.Name)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// end names an end of a link: a host, or a switch with its port.
func end(e *pb.Endpoint) string {
	if e.Port == 0 {
		return e.Node
	}
	return fmt.Sprintf("%s:%d", e.Node, e.Port)
}

// send emits a value. It replaces invalid UTF-8 in labels, which would make the whole scrape fail.
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
