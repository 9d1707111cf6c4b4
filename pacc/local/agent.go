package local

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/units"
)

// Host is the switch around an agent.
type Host interface {
	// TryControl gives the running pipeline's entities and engine to use, and false at once
	// when there is none or a client is writing.
	TryControl(use func(*entity.State, *engine.Instance)) bool
	// Inject has a frame arrive on the CPU port now, before it returns.
	Inject(frame []byte, now units.Time)
}

// Agent is the agent of one switch. Sweep, Next and Run belong to the goroutine that runs
// the switch; Digest and Stats may be called from any.
type Agent struct {
	host Host
	log  *slog.Logger

	mu   sync.Mutex // guards what follows
	loop *pacc.Loop // nil while asleep
	data *data
	have []watched // what loop was made of
	told string    // the last complaint
	ran  units.Time

	newMu sync.Mutex
	fresh map[pacc.Flow]bool // learned since the last Run; nil while asleep
}

// watched is an entry of the table of watched queues.
type watched struct {
	port     uint32
	queue    uint8
	settings []byte
}

func (w watched) equal(o watched) bool {
	return w.port == o.port && w.queue == o.queue && bytes.Equal(w.settings, o.settings)
}

// New returns an agent that sleeps.
func New(host Host, log *slog.Logger) *Agent { return &Agent{host: host, log: log} }

// freshMost bounds the flows that wait to be learned.
const freshMost = 4096

// Digest takes a learning message of the data plane and keeps it when it is a flow's.
func (a *Agent) Digest(name string, fields [][]byte) {
	if name != ids.DigestFlowDigestTName || len(fields) != 3 {
		return
	}
	a.newMu.Lock()
	defer a.newMu.Unlock()
	if a.fresh == nil || len(a.fresh) >= freshMost {
		return
	}
	src, okSrc := netip.AddrFromSlice(fields[0])
	dst, okDst := netip.AddrFromSlice(fields[1])
	if okSrc && okDst && len(fields[2]) == 2 {
		port := uint32(fields[2][0])<<8 | uint32(fields[2][1])
		a.fresh[pacc.Flow{FlowKey: cnpgen.FlowKey{Src: src, Dst: dst}, Port: port}] = true
	}
}

// Sweep looks for new settings and for idle flows. The switch calls it several times a
// second.
func (a *Agent) Sweep(now units.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []watched
	var in *engine.Instance
	var err error
	if !a.host.TryControl(func(st *entity.State, instance *engine.Instance) {
		list, in = readWatched(st), instance
		if a.data == nil && len(list) > 0 {
			err = purge(st) // what another loop has learned here
		}
	}) {
		return
	}
	if err != nil {
		a.complain(err)
	}
	if a.data != nil && (a.data.in != in || a.loop == nil) {
		a.stop()     // another pipeline, with empty tables; or what could not be cleared
		a.have = nil // which may have the same settings
	}
	if !slices.EqualFunc(list, a.have, watched.equal) {
		a.have = list
		a.configure(in)
	}
	if a.loop != nil {
		a.loop.Aged(a.data.idle(now)...)
	}
}

// readWatched returns the entries that carry settings, by port.
func readWatched(st *entity.State) []watched {
	t, ok := st.Schema().Tables.ID(ids.TableWatchedQueue)
	if !ok || t.Name != ids.TableWatchedQueueName {
		return nil
	}
	var list []watched
	request := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: ids.TableWatchedQueue}}}
	// An error is a table that cannot be read, which has no settings.
	_ = st.Read(request, func(e *p4v1.Entity) {
		entry := e.GetTableEntry()
		if _, ours, _ := Parse(entry.GetMetadata()); !ours {
			return
		}
		w := watched{settings: entry.GetMetadata()}
		for _, m := range entry.GetMatch() {
			switch v := number(m.GetExact().GetValue()); m.GetFieldId() {
			case ids.FieldWatchedQueueEgressPort:
				w.port = v
			case ids.FieldWatchedQueueQueue:
				w.queue = uint8(v)
			}
		}
		list = append(list, w)
	})
	slices.SortFunc(list, func(a, b watched) int { return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.queue, b.queue)) })
	return list
}

// purge empties both flow tables.
func purge(st *entity.State) error {
	var errs error
	for _, table := range []uint32{ids.TableFlow, ids.TableCongestedFlow} {
		var updates []*p4v1.Update
		err := st.Read(&p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: table}}}, func(e *p4v1.Entity) {
			updates = append(updates, &p4v1.Update{Type: p4v1.Update_DELETE, Entity: e})
		})
		errs = errors.Join(errs, err)
		for _, u := range updates {
			errs = errors.Join(errs, st.Apply(u))
		}
	}
	return errs
}

// configure starts, changes or stops the loop to match what is watched.
func (a *Agent) configure(in *engine.Instance) {
	if len(a.have) == 0 {
		a.stop()
		return
	}
	c, first, err := config(a.have)
	if err != nil {
		a.complain(err)
		a.stop()
		return
	}
	d := a.data
	if d == nil {
		d = newData(a.host, in)
	}
	d.settle(a.have, first)
	loop, err := pacc.New(c, d)
	if err != nil {
		a.complain(err)
		a.stop()
		return
	}
	d.polled = loop.Polled
	a.loop, a.data, a.told = loop, d, ""
	a.newMu.Lock()
	a.fresh = map[pacc.Flow]bool{}
	a.newMu.Unlock()
	a.log.Info("PACC runs in the switch", "ports", len(c.Ports), "period", first.Params.Interval)
}

// config puts the settings of all queues together.
func config(list []watched) (pacc.Config, Settings, error) {
	var c pacc.Config
	var first Settings
	for i, w := range list {
		s, _, err := Parse(w.settings)
		if err != nil {
			return c, first, err
		}
		if i == 0 {
			first = s
		}
		c.MaxFlows = first.MaxFlows
		c.Ports = append(c.Ports, pacc.PortConfig{Port: w.port, Params: s.Params})
	}
	return c, first, nil
}

// stop puts the agent to sleep, and takes what it has learned out of the table.
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
	case errors.Is(err, pacc.ErrBusy):
		return // the next Sweep tries again
	case err != nil:
		a.complain(err)
	}
	a.data = nil
}

// complain logs what is wrong, once.
func (a *Agent) complain(err error) {
	if text := err.Error(); text != a.told {
		a.told = text
		a.log.Warn("PACC in the switch", "err", err)
	}
}

// Next returns when Run is due, units.MaxTime while the agent sleeps.
func (a *Agent) Next() units.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return units.MaxTime
	}
	a.newMu.Lock()
	defer a.newMu.Unlock()
	if len(a.fresh) > 0 || a.loop.Pending() {
		return min(a.loop.Next(), a.ran+learnEvery)
	}
	return a.loop.Next()
}

// learnEvery is how often flows that wait are written, so that packets pass in between.
const learnEvery = units.Millisecond

// Run does what is due at now.
func (a *Agent) Run(now units.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return
	}
	a.newMu.Lock()
	for f := range a.fresh {
		a.loop.Learned(f)
	}
	clear(a.fresh)
	a.newMu.Unlock()
	a.data.now, a.ran = now, now
	if err := a.loop.Run(now); err != nil {
		a.complain(err)
	}
}

// Stats returns the loop's counters; false while the agent sleeps.
func (a *Agent) Stats() (pacc.Stats, []pacc.PortStats, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loop == nil {
		return pacc.Stats{}, nil, false
	}
	return a.loop.Stats(), a.loop.Ports(), true
}

func number(b []byte) uint32 {
	var v uint32
	for _, x := range b {
		v = v<<8 | uint32(x)
	}
	return v
}
