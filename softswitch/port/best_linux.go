package port

import (
	"cmp"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// bestPort is a network interface driven by AF_PACKET, and by AF_XDP too if the interface allows
// it. It uses AF_XDP while no other program uses the interface. The XDP program passes frames that
// it does not take to the kernel, so every frame arrives once, by one of the two. While the driver
// changes, frames may overtake others.
type bestPort struct {
	*packetPort
	xdp  *xdpPort    // nil if the interface has no AF_XDP sockets
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
		return nil, nil, errors.Join(err, q.Close())
	}
	if q.xdp, err = beside(p, users); err != nil {
		q.none = err.Error()
	}
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

// descriptors implements input.
func (q *bestPort) descriptors() []int {
	all := q.packetPort.descriptors()
	if q.xdp != nil {
		all = append(all, q.xdp.descriptors()...)
	}
	return all
}

// fill implements input.
func (q *bestPort) fill(b *Batch) bool {
	got := q.xdp != nil && q.xdp.fill(b)
	return q.packetPort.fill(b) || got
}

func (q *bestPort) Send(frame []byte) {
	if q.fast.Load() {
		q.xdp.Send(frame)
	} else {
		q.packetPort.Send(frame)
	}
}

func (q *bestPort) Flush() error {
	err := q.packetPort.Flush()
	if q.xdp != nil {
		err = errors.Join(err, q.xdp.Flush())
	}
	return err
}

// OnOffload makes both drivers call f. f runs once, whichever driver sees the first such frame.
func (q *bestPort) OnOffload(f func()) {
	f = sync.OnceFunc(f)
	q.packetPort.OnOffload(f)
	if q.xdp != nil {
		q.xdp.OnOffload(f)
	}
}

// Counters adds the losses of both drivers.
func (q *bestPort) Counters() Counters {
	c := q.packetPort.Counters()
	if q.xdp != nil {
		x := q.xdp.Counters()
		c.RxOverruns += x.RxOverruns
		c.RxTruncated += x.RxTruncated
		c.TxErrors += x.TxErrors
		c.RxCompleted += x.RxCompleted
	}
	return c
}

// Silence makes both drivers receive nothing more.
func (q *bestPort) Silence() error {
	var err error
	if q.xdp != nil {
		err = q.xdp.Silence()
	}
	return errors.Join(err, q.packetPort.Silence())
}

func (q *bestPort) Close() error {
	var err error
	if q.xdp != nil {
		err = q.xdp.Close()
	}
	return errors.Join(err, q.packetPort.Close())
}

var (
	_ Port    = (*bestPort)(nil)
	_ Chooser = (*bestPort)(nil)
	_ input   = (*bestPort)(nil)
)
