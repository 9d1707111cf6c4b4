package port

import (
	"cmp"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

type driver interface {
	Port
	input
	OnOffload(func())
	Silence() error
}

// bestPort is a network interface driven by AF_PACKET, and by AF_XDP too if the interface allows it. It uses AF_XDP
// while no other program uses the interface. The XDP program passes all other frames to the kernel, so every frame
// arrives once. While the driver changes, frames may overtake others.
type bestPort struct {
	*packetPort
	xdp  *xdpPort    // nil if the interface has no AF_XDP sockets
	all  []driver    // xdp, if there is one, and packetPort
	fast atomic.Bool // frames are sent by AF_XDP; Choose writes it
	none string      // why xdp is nil
}

// OpenBest opens a network interface as a switch port by AF_PACKET, and by AF_XDP too if the
// interface allows it. The port uses AF_XDP while no other program uses the interface and no VLAN
// tag can be lost. OpenBest needs the same privileges as OpenInterface.
func OpenBest(p Named, users *IfaceUsers) (Port, Source, error) {
	slow, _, err := OpenInterface(p)
	if err != nil {
		return nil, nil, err
	}
	q := &bestPort{packetPort: slow.(*packetPort)}
	if err := users.disregard(q.fd); err != nil {
		return nil, nil, errors.Join(err, q.packetPort.Close())
	}
	if q.xdp, err = beside(p, users); err != nil {
		q.none = err.Error()
	} else {
		q.all = append(q.all, q.xdp)
	}
	q.all = append(q.all, q.packetPort)
	q.Choose(users)
	return q, newReader(q), nil
}

// beside opens an interface's AF_XDP sockets beside its packet socket.
func beside(p Named, users *IfaceUsers) (*xdpPort, error) {
	ifi, err := net.InterfaceByName(p.Name)
	if err != nil {
		return nil, err
	}
	if why := users.never(ifi.Index); why != "" {
		return nil, errors.New(why)
	}
	return newXDPPort(p, ifi, true)
}

// Choose implements Chooser.
func (q *bestPort) Choose(users *IfaceUsers) (driver, why string) {
	if q.xdp == nil {
		return "afpacket", q.none
	}
	user := cmp.Or(users.never(q.index), users.of(q.index))
	fast := user == ""
	if err := q.xdp.take(fast); err != nil {
		fast, user = false, err.Error()
	}
	q.fast.Store(fast)
	if fast {
		return "xdp", "nothing else uses the interface"
	}
	return "afpacket", user
}

func (q *bestPort) each(f func(driver) error) error {
	var errs error
	for _, d := range q.all {
		errs = errors.Join(errs, f(d))
	}
	return errs
}

func (q *bestPort) descriptors() (all []int) {
	for _, d := range q.all {
		all = append(all, d.descriptors()...)
	}
	return all
}

func (q *bestPort) fill(b *Batch) (got bool) {
	for _, d := range q.all {
		got = d.fill(b) || got
	}
	return got
}

func (q *bestPort) Send(frame []byte) {
	if q.fast.Load() {
		q.xdp.Send(frame)
	} else {
		q.packetPort.Send(frame)
	}
}

func (q *bestPort) Flush() error { return q.each(driver.Flush) }

// OnOffload makes both drivers call f. f runs once, whichever driver sees the first such frame.
func (q *bestPort) OnOffload(f func()) {
	f = sync.OnceFunc(f)
	_ = q.each(func(d driver) error { d.OnOffload(f); return nil })
}

// Counters adds the losses of both drivers.
func (q *bestPort) Counters() (sum Counters) {
	for _, d := range q.all {
		c := d.Counters()
		sum.RxOverruns += c.RxOverruns
		sum.RxTruncated += c.RxTruncated
		sum.TxErrors += c.TxErrors
		sum.RxCompleted += c.RxCompleted
		sum.RxSplit += c.RxSplit
	}
	return sum
}

// Silence makes both drivers receive nothing more.
func (q *bestPort) Silence() error { return q.each(driver.Silence) }

func (q *bestPort) Close() error { return q.each(driver.Close) }
