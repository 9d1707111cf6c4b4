// Package pacc runs PACC's loop (package cnpgen) in the process of an embedded switch. It reads
// counters and queues from the switch's memory, and sends CNPs straight into the switch's
// pipeline. So the loop's period can be as short as the machine's timers allow. Start reading at
// Agent.
package pacc

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/units"
)

// Host is the switch around an agent.
type Host interface {
	// TryControl calls use with the entities and the engine of the running pipeline. It returns
	// false at once when no pipeline runs or a client is writing.
	TryControl(use func(*entity.State, *engine.Instance)) bool
	// Inject processes a frame as if it arrived on the CPU port now, and then returns.
	Inject(frame []byte, now units.Time)
}

// Agent is the agent of one switch. It sleeps until the pipeline's table of watched queues
// has entries that carry cnpgen.Settings in their metadata. Sweep, Next and Run belong to the goroutine that runs
// the switch; Digest and Stats may be called from any.
type Agent struct {
	host Host
	log  *slog.Logger

	mu         sync.Mutex   // guards the fields below
	loop       *cnpgen.Loop // nil while asleep
	data       *data
	watched    []flowtable.Watched // the entries that loop runs with
	lastLogged string
	ran        units.Time

	newMu sync.Mutex
	fresh *fresh // learned since the last Run; nil while asleep
}

// fresh holds the flows and queue pairs that the pipeline has reported and the agent has not
// learned yet.
type fresh struct {
	flows      map[cnpgen.Flow]bool
	queuePairs map[cnpgen.QueuePair]bool
}

func newFresh() *fresh {
	return &fresh{flows: map[cnpgen.Flow]bool{}, queuePairs: map[cnpgen.QueuePair]bool{}}
}

func equal(a, b flowtable.Watched) bool {
	return a.Port == b.Port && a.Queue == b.Queue && bytes.Equal(a.Settings, b.Settings)
}

// New returns an agent that sleeps.
func New(host Host, log *slog.Logger) *Agent { return &Agent{host: host, log: log} }

// freshMost bounds the flows that wait to be learned, and the queue pairs.
const freshMost = 4096

// Digest receives a learning message of the data plane. It stores the flow or queue pair in it and
// ignores other messages.
func (a *Agent) Digest(name string, fields [][]byte) {
	a.newMu.Lock()
	defer a.newMu.Unlock()
	if a.fresh == nil {
		return
	}
	for _, of := range flowtable.Families() {
		switch name {
		case of.FlowDigestName:
			if f, ok := of.ReadFlowDigest(fields); ok && len(a.fresh.flows) < freshMost {
				a.fresh.flows[f] = true
			}
		case of.QueuePairDigestName:
			if q, ok := of.ReadQueuePairDigest(fields); ok && len(a.fresh.queuePairs) < freshMost {
				a.fresh.queuePairs[q] = true
			}
		}
	}
}

// Sweep looks for new settings and for idle flows. The switch calls it several times a
// second.
func (a *Agent) Sweep(now units.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []flowtable.Watched
	var in *engine.Instance
	var err error
	if !a.host.TryControl(func(st *entity.State, instance *engine.Instance) {
		list, in = readWatched(st), instance
		if a.data == nil && len(list) > 0 {
			err = purge(st) // another loop may have left entries
		}
	}) {
		return
	}
	if err != nil {
		a.logOnce(err)
	}
	if a.data != nil && (a.data.in != in || a.loop == nil) {
		// Another pipeline runs, whose tables are empty, or the tables could not be cleared. The
		// new settings may equal the old ones.
		a.stop()
		a.watched = nil
	}
	if !slices.EqualFunc(list, a.watched, equal) {
		a.watched = list
		a.configure(in)
	}
	if a.loop != nil {
		a.loop.Aged(a.data.idleFlows(now)...)
		a.loop.AgedQueuePairs(a.data.idleQueuePairs(now)...)
	}
}

// readWatched returns the entries that carry settings, by port.
func readWatched(st *entity.State) []flowtable.Watched {
	t, ok := st.Schema().Tables.ID(ids.TableWatchedQueue)
	if !ok || t.Name != ids.TableWatchedQueueName {
		return nil
	}
	var list []flowtable.Watched
	request := p4rtmsg.Entity(&p4v1.TableEntry{TableId: ids.TableWatchedQueue})
	// A table that cannot be read has no settings.
	_ = st.Read(request, func(f entity.Found) {
		w := flowtable.ReadWatched(f.Message().GetTableEntry())
		if _, ours, _ := cnpgen.ParseSettings(w.Settings); ours {
			list = append(list, w)
		}
	})
	slices.SortFunc(list, func(a, b flowtable.Watched) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Queue, b.Queue))
	})
	return list
}

func purge(st *entity.State) error {
	var errs error
	for _, table := range slices.Concat(flowtable.IPv4.Learned(), flowtable.IPv6.Learned()) {
		var updates []*p4v1.Update
		err := st.Read(p4rtmsg.Entity(&p4v1.TableEntry{TableId: table}), func(f entity.Found) {
			updates = append(updates, &p4v1.Update{Type: p4v1.Update_DELETE, Entity: f.Message()})
		})
		errs = errors.Join(errs, err)
		for _, u := range updates {
			errs = errors.Join(errs, st.Apply(u))
		}
	}
	return errs
}

// configure starts, changes or stops the loop to match the watched queues.
func (a *Agent) configure(in *engine.Instance) {
	if len(a.watched) == 0 {
		a.stop()
		return
	}
	c, first, err := config(a.watched)
	if err != nil {
		a.logOnce(err)
		a.stop()
		return
	}
	d := a.data
	if d == nil {
		d = newData(a.host, in)
	}
	d.configure(a.watched, first)
	c.QueuePairs = d
	loop, err := cnpgen.NewLoop(c, d)
	if err != nil {
		a.logOnce(err)
		a.stop()
		return
	}
	d.polled = loop.Polled
	a.loop, a.data, a.lastLogged = loop, d, ""
	a.newMu.Lock()
	a.fresh = newFresh()
	a.newMu.Unlock()
	a.log.Info("PACC runs in the switch", "ports", len(c.Ports), "period", first.Params.Interval)
}

// config returns the configuration of a loop for all watched queues.
func config(list []flowtable.Watched) (cnpgen.LoopConfig, cnpgen.Settings, error) {
	var c cnpgen.LoopConfig
	var first cnpgen.Settings
	for i, w := range list {
		s, _, err := cnpgen.ParseSettings(w.Settings)
		if err != nil {
			return c, first, err
		}
		if i == 0 {
			first = s
		}
		c.MaxFlows = first.MaxFlows
		c.Ports = append(c.Ports, cnpgen.PortConfig{Port: w.Port, Params: s.Params})
	}
	c.Phases = cnpgen.Phases(first.Params.Interval, len(c.Ports), phases)
	return c, first, nil
}

// phases is the largest number of groups in which ports tick. Reading counters is cheap here, because
// they are in memory.
const phases = 16

// stop puts the agent to sleep and removes the flows that it has learned from the tables.
func (a *Agent) stop() {
	a.newMu.Lock()
	a.fresh = nil
	a.newMu.Unlock()
	if a.loop != nil {
		a.loop = nil
		a.log.Info("PACC in the switch stops")
	}
	if a.data == nil {
		return
	}
	switch err := a.data.clear(); {
	case errors.Is(err, cnpgen.ErrBusy):
		return // the next Sweep tries again
	case err != nil:
		a.logOnce(err)
	}
	a.data = nil
}

// logOnce logs a fault unless it is the same as the last logged one.
func (a *Agent) logOnce(err error) {
	if text := err.Error(); text != a.lastLogged {
		a.lastLogged = text
		a.log.Warn("PACC in the switch", "err", err)
	}
}

// Next returns when Run is due, or units.MaxTime while the agent sleeps.
func (a *Agent) Next() units.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return units.MaxTime
	}
	a.newMu.Lock()
	defer a.newMu.Unlock()
	if len(a.fresh.flows)+len(a.fresh.queuePairs) > 0 || a.loop.Pending() {
		return min(a.loop.Next(), a.ran+learnEvery)
	}
	return a.loop.Next()
}

// learnEvery is the interval between writes of learned flows. Packets are processed in between.
const learnEvery = units.Millisecond

// Run learns what the pipeline has reported and runs the loop.
func (a *Agent) Run(now units.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return
	}
	a.newMu.Lock()
	for f := range a.fresh.flows {
		a.loop.Learned(f)
	}
	for q := range a.fresh.queuePairs {
		a.loop.LearnedQueuePairs(q)
	}
	clear(a.fresh.flows)
	clear(a.fresh.queuePairs)
	a.newMu.Unlock()
	a.data.now, a.ran = now, now
	if err := a.loop.Run(now); err != nil {
		a.logOnce(err)
	}
}

// Stats returns the loop's counters. It returns false while the agent sleeps.
func (a *Agent) Stats() (cnpgen.LoopStats, []cnpgen.PortStats, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return cnpgen.LoopStats{}, nil, false
	}
	return a.loop.Stats(), a.loop.Ports(), true
}
