package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Errors of StartFlow, StopFlow and SetWeight, to be tested with errors.Is.
var (
	ErrNoFlow  = errors.New("no such flow")
	ErrExists  = errors.New("a flow with this five-tuple exists")
	ErrRunning = errors.New("flows have been started")
	ErrFull    = errors.New("no port or queue pair is free")
)

const (
	ttl = 64 // TTL of all frames
	// firstPort is the source port of the first flow that names none. Source ports choose the path where there
	// are several.
	firstPort = 49152
)

// Agent is one host. It is not safe for concurrent use: one owner calls it, with times
// that never decrease.
type Agent struct {
	cfg  Config
	send func(frame []byte)

	flows  map[FlowKey]*flow
	byQP   map[uint32]*flow
	byDst  map[netip.Addr][]*flow // the flows in byQP, by destination
	nextQP uint32
	issued uint32 // queue pairs from the first on, up to packet.MaxQP
	port   uint16

	ready   heap.Heap[*flow] // flows that may send now; see newReady
	timers  heap.Heap[*flow] // see newTimers
	virtual float64          // the NIC's virtual time: start tag of the flow served last
	nicFree units.Time

	peers   peers
	paths   map[netip.Addr]units.Time // the shortest round trip to each destination of flows that have ended
	answers ring.Ring[answer]
	windows []window // windows of the notification point, ordered by their end

	classes  [64]uint8 // class of each DSCP
	ackClass uint8

	in       packet.Frame       // the frame being read
	feedback transport.Feedback // feedback in the acknowledgement being read
	buf      []byte             // memory of the frame being built
	payload  []byte
	counts   Stats
}

// New returns the agent of a host; send takes each frame as its transmission on the link
// begins. The bytes are valid until it returns, and it must not call the agent.
func New(cfg Config, send func(frame []byte)) (*Agent, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Agent{
		cfg: cfg, send: send, classes: cfg.classes(), ackClass: cfg.classes()[cfg.AckDSCP],
		flows: map[FlowKey]*flow{}, byQP: map[uint32]*flow{}, nextQP: cfg.FirstQP, port: firstPort,
		peers: newPeers(), byDst: map[netip.Addr][]*flow{}, paths: map[netip.Addr]units.Time{}, ready: newReady(), timers: newTimers(),
		buf:     make([]byte, 0, int(cfg.MSS)+packet.ACKLen+packet.IPv6Extra+3),
		payload: make([]byte, cfg.MSS),
	}, nil
}

// Config returns the configuration with its defaults filled in.
func (a *Agent) Config() Config { return a.cfg }

// StartFlow starts a flow and returns its key. The owner looks at Next afterwards, as
// after every call.
func (a *Agent) StartFlow(now units.Time, spec FlowSpec) (FlowKey, error) {
	spec.Weight = cmp.Or(spec.Weight, 1)
	spec.DstPort = cmp.Or(spec.DstPort, a.cfg.ShimPort)
	spec.DSCP = cmp.Or(spec.DSCP, a.cfg.DataDSCP)
	switch {
	case !spec.Dst.IsValid() || spec.Dst.BitLen() != a.cfg.IP.BitLen() || spec.Dst.Zone() != "":
		return FlowKey{}, fmt.Errorf("flow destination %v: want an address of the version of IP that the host's is of, %v", spec.Dst, a.cfg.IP)
	case spec.DstPort != a.cfg.ShimPort && spec.DstPort != packet.RoCEv2Port:
		return FlowKey{}, fmt.Errorf("flow destination port %d: want %d, with the maxQD shim, or %d", spec.DstPort, a.cfg.ShimPort, packet.RoCEv2Port)
	case spec.DSCP > 63:
		return FlowKey{}, fmt.Errorf("flow DSCP %d: want 1 to 63, or 0 for %d", spec.DSCP, a.cfg.DataDSCP)
	case spec.Size < 0:
		return FlowKey{}, fmt.Errorf("flow size %d B: want 0 (endless) or more", int64(spec.Size))
	case spec.Deadline < 0:
		return FlowKey{}, fmt.Errorf("flow deadline %v: want 0 (none) or more", spec.Deadline)
	case spec.Priority < 0 || spec.Priority > channel.MaxPriority:
		return FlowKey{}, fmt.Errorf("flow priority %d: want 1 to %d, or 0 for none", spec.Priority, channel.MaxPriority)
	}
	if err := soze.CheckWeight(spec.Weight); err != nil {
		return FlowKey{}, err
	}
	key := FlowKey{Src: a.cfg.IP, Dst: spec.Dst, SrcPort: spec.SrcPort, DstPort: spec.DstPort}
	if key.SrcPort == 0 {
		if !a.choosePort(&key) {
			return FlowKey{}, ErrFull
		}
	}
	if old := a.flows[key]; old != nil {
		if old.finished == 0 {
			return FlowKey{}, fmt.Errorf("%v: %w", key, ErrExists)
		}
		a.remove(old)
	}
	f := &flow{
		key: key, spec: spec, app: spec.App, weight: spec.Weight, size: spec.Size, started: now,
		waiting: spec.AwaitChannel,
		readyAt: heap.Outside, timerAt: heap.Outside, class: a.classes[spec.DSCP],
		frame: packet.Frame{
			DstMAC: a.cfg.Gateway, SrcMAC: a.cfg.MAC, Src: key.Src, Dst: key.Dst,
			DSCP: spec.DSCP, ECN: packet.ECT0, TTL: ttl, FlowLabel: a.flowLabel(key.SrcPort), SrcPort: key.SrcPort, DstPort: key.DstPort, ShimPort: a.cfg.ShimPort,
			BTH: packet.BTH{PKey: packet.DefaultPKey, AckReq: true},
		},
	}
	if err := a.connect(f, spec.Size, now); err != nil {
		return FlowKey{}, err
	}
	a.flows[key] = f
	return key, nil
}

// connect gives the flow a queue pair, a law and a sender for size bytes.
func (a *Agent) connect(f *flow, size units.Bytes, now units.Time) error {
	qp, ok := a.chooseQP()
	if !ok {
		return ErrFull
	}
	l, err := a.newLaw(f, size, now)
	if err != nil {
		return err
	}
	if _, ok := l.(channelled); f.spec.Priority > 0 && !ok {
		return fmt.Errorf("flow priority %d: want 0, its law has no channels, or PrioPlus", f.spec.Priority)
	}
	s, err := transport.NewSender(transport.SenderConfig{
		Law: l, MSS: a.cfg.MSS, Size: size,
		InitialRTO: a.cfg.InitialRTO, MinRTO: a.cfg.MinRTO, MaxRTO: a.cfg.MaxRTO, MaxLate: a.cfg.MaxLate,
	}, now)
	if err != nil {
		return err
	}
	f.qp, f.s, f.frame.BTH.DestQP = qp, s, qp
	a.bind(f)
	a.schedule(f, now)
	return nil
}

func (a *Agent) newLaw(f *flow, size units.Bytes, now units.Time) (law.Law, error) {
	spec := f.spec
	spec.Weight, spec.Size = f.weight, size
	if spec.Deadline > 0 {
		spec.Deadline = max(f.started+spec.Deadline-now, 1)
	}
	return a.cfg.NewLaw(spec)
}

// restart reconnects a flow that its receiver has forgotten, to send the bytes that are not acknowledged.
func (a *Agent) restart(f *flow, now units.Time) {
	a.unschedule(f)
	a.unbind(f)
	left := f.left()
	f.base = f.totals()
	f.resets++
	f.forgotten = false
	if err := a.connect(f, left, now); err != nil {
		// The same configuration made the flow's first law and sender; only the queue pairs
		// can have run out.
		a.finish(f, now)
	}
}

// StopFlow ends a flow at once and forgets it. It does not wait for packets in flight.
func (a *Agent) StopFlow(key FlowKey) error {
	f := a.flows[key]
	if f == nil {
		return fmt.Errorf("%v: %w", key, ErrNoFlow)
	}
	a.remove(f)
	return nil
}

// change changes a flow, and then looks at when it may send.
func (a *Agent) change(now units.Time, key FlowKey, change func(f *flow) error) error {
	f := a.flows[key]
	if f == nil {
		return fmt.Errorf("%v: %w", key, ErrNoFlow)
	}
	if err := change(f); err != nil {
		return err
	}
	if f.finished == 0 {
		a.schedule(f, now)
	}
	return nil
}

// SetWeight changes a flow's weight at once; w is finite and above 0.
func (a *Agent) SetWeight(now units.Time, key FlowKey, w float64) error {
	return a.change(now, key, func(f *flow) error {
		if err := soze.CheckWeight(w); err != nil {
			return err
		}
		if l, ok := f.s.Law().(law.Weighted); ok {
			if err := l.SetWeight(w); err != nil {
				return err
			}
		}
		f.weight = w
		return nil
	})
}

// Hold makes a flow send nothing until it is let go again: nobody has granted its weight.
func (a *Agent) Hold(now units.Time, key FlowKey, held bool) error {
	return a.change(now, key, func(f *flow) error {
		f.held = held
		return nil
	})
}

// channelled is a law whose flow belongs to a channel: prioplus.Law.
type channelled interface {
	SetChannel(target, limit units.Time) error
}

// SetChannel moves a flow to a channel at once. A flow that waited for a channel may then send.
func (a *Agent) SetChannel(now units.Time, key FlowKey, c channel.Channel) error {
	return a.change(now, key, func(f *flow) error {
		l, ok := f.s.Law().(channelled)
		if !ok {
			return fmt.Errorf("%v: its law has no channels: want PrioPlus", key)
		}
		before := f.spec.Channel
		f.spec.Channel = c
		var err error
		if f.outdated {
			err = a.renew(f, now)
		} else {
			err = l.SetChannel(c.Target, c.Limit)
		}
		if err != nil {
			f.spec.Channel = before
			return err
		}
		f.waiting = false
		return nil
	})
}

// DropChannel holds a flow back until it gets a channel, because the controller refused it the channel of its virtual
// priority.
func (a *Agent) DropChannel(now units.Time, key FlowKey) error {
	return a.change(now, key, func(f *flow) error {
		f.waiting = true
		return nil
	})
}

// SetShimPort changes the UDP port of packets with the maxQD shim. It returns ErrRunning if flows exist already,
// because their five-tuples have the old port.
func (a *Agent) SetShimPort(port uint16) error {
	switch {
	case port == a.cfg.ShimPort:
		return nil
	case port == 0 || port == packet.RoCEv2Port:
		return fmt.Errorf("UDP port %d with the maxQD shim: want 1 to 65535 but not %d", port, packet.RoCEv2Port)
	case len(a.flows) > 0:
		return ErrRunning
	}
	a.cfg.ShimPort = port
	return nil
}

// Adopt changes the unit of maxQD and the function that makes laws. Running flows get a new law at once if the old
// parameters are wrong. These are flows that follow weights, because the parameters decide how they share
// bottlenecks, and flows with a channel, because the channel includes the base round trip. A flow whose channel does
// not suit the new base is held until it has another. Other flows keep their laws.
func (a *Agent) Adopt(now units.Time, unit maxqd.Unit, newLaw func(FlowSpec) (law.Law, error)) error {
	a.cfg.Unit, a.cfg.NewLaw = unit, newLaw
	for _, f := range a.inOrder() {
		_, weighted := f.s.Law().(law.Weighted)
		_, channels := f.s.Law().(channelled)
		if !weighted && !channels || f.finished != 0 {
			continue
		}
		if err := a.renew(f, now); err != nil && !channels {
			return fmt.Errorf("%v: %w", f.key, err)
		} else if err != nil {
			f.outdated = true
		}
		a.schedule(f, now)
	}
	return nil
}

// renew gives a running flow a law with the current parameters.
func (a *Agent) renew(f *flow, now units.Time) error {
	l, err := a.newLaw(f, f.left(), now)
	if err != nil {
		return err
	}
	f.s.SetLaw(l, now)
	f.outdated = false
	return nil
}

func (a *Agent) remove(f *flow) {
	a.unschedule(f)
	a.unbind(f)
	delete(a.flows, f.key)
}

// bind makes frames that name a flow's queue pair, or its destination, find it.
func (a *Agent) bind(f *flow) {
	a.byQP[f.qp] = f
	f.dstAt = len(a.byDst[f.key.Dst])
	a.byDst[f.key.Dst] = append(a.byDst[f.key.Dst], f)
}

// unbind undoes bind, if that was not done already.
func (a *Agent) unbind(f *flow) {
	if a.byQP[f.qp] != f {
		return
	}
	delete(a.byQP, f.qp)
	list := a.byDst[f.key.Dst]
	last := list[len(list)-1]
	list[f.dstAt], last.dstAt, list[len(list)-1] = last, f.dstAt, nil
	if a.byDst[f.key.Dst] = list[:len(list)-1]; len(list) == 1 {
		delete(a.byDst, f.key.Dst)
	}
}

// finish keeps a flow that is done for reports, and nothing else.
func (a *Agent) finish(f *flow, now units.Time) {
	a.unschedule(f)
	a.unbind(f)
	f.finished = max(now, 1)
}

func (a *Agent) choosePort(key *FlowKey) bool {
	for range 1 << 16 {
		key.SrcPort = a.port
		a.port++
		if a.port < 1024 {
			a.port = firstPort
		}
		if a.flows[*key] == nil {
			return true
		}
	}
	return false
}

func (a *Agent) chooseQP() (uint32, bool) {
	for range len(a.byQP) + 2 {
		qp := a.nextQP
		a.nextQP++
		a.issued = min(a.issued+1, packet.MaxQP)
		if a.nextQP > packet.MaxQP {
			a.nextQP = 1
		}
		if qp != 0 && a.byQP[qp] == nil {
			return qp, true
		}
	}
	return 0, false
}

// Next returns when the agent wants Wake to be called: a time that may have passed
// already, units.MaxTime for never.
func (a *Agent) Next() units.Time {
	next := units.MaxTime
	if a.answers.Len() > 0 {
		next = max(a.nicFree, a.answersFrom())
	}
	if a.ready.Len() > 0 {
		next = min(next, a.nicFree)
	}
	if a.timers.Len() > 0 {
		next = min(next, a.timers.First().wake)
	}
	if len(a.windows) > 0 {
		next = min(next, a.windows[0].end)
	}
	return next
}

// Wake lets timers that are due go off and sends what may be sent at now. Calling it
// early or more often than needed is harmless.
func (a *Agent) Wake(now units.Time) {
	a.notifyOwed(now)
	for a.timers.Len() > 0 && a.timers.First().wake <= now {
		f := a.timers.Remove(0)
		f.s.OnTimer(now)
		if f.forgotten && f.s.Stalled() {
			a.restart(f, now)
			continue
		}
		a.schedule(f, now)
		if f.timerAt != heap.Outside && f.wake <= now {
			// A law that asks for a tick in the past would keep us here for ever.
			f.wake = now + 1
			a.timers.Fix(f.timerAt)
		}
	}
	a.transmit(now)
}

func (a *Agent) inOrder() []*flow {
	all := slices.Collect(maps.Values(a.flows))
	slices.SortFunc(all, func(x, y *flow) int {
		return cmp.Or(cmp.Compare(x.started, y.started), x.key.Dst.Compare(y.key.Dst), cmp.Compare(x.key.SrcPort, y.key.SrcPort))
	})
	return all
}
