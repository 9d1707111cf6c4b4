//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

// Law is a congestion law of the kernel's.
type Law uint32

// The laws. Other leaves a connection the congestion control that it has.
const (
	Other Law = iota
	Soze
	PrioPlus
)

// lgBits is how many fractional bits a logarithm to the base 2 has, oneBits a factor.
const lgBits, oneBits = 24, 30

func lg(v float64) int64 { return int64(math.Round(math.Log2(v) * (1 << lgBits))) }

func nanos(t units.Time) uint64 { return uint64(max(t, 0) / units.Nanosecond) }

// weight returns the weight that a logarithm stands for, rounded to a millionth of it.
func weight(lg int64) float64 {
	w, _ := strconv.ParseFloat(strconv.FormatFloat(math.Exp2(float64(lg)/(1<<lgBits)), 'g', 7, 64), 64)
	return w
}

// Params are the laws' parameters, for all connections alike.
type Params struct {
	Soze soze.Params
	Unit units.Time // of maxQD
	// PrioPlus and Swift underneath it; each connection has a channel of its own.
	PrioPlus prioplus.Params
	Swift    swift.Params
	Netns    uint64 // cookie of the network namespace whose connections are governed; 0 for all
}

// SetParams sets the parameters.
func (k *Kernel) SetParams(p Params) error {
	v := programParams{Unit: nanos(p.Unit), Netns: p.Netns, Soze: sozeParams(p.Soze), Prio: prioParams(p.PrioPlus, p.Swift)}
	for l, name := range k.names {
		for i, c := range []byte(name) {
			v.Name[l][i] = c
		}
	}
	if v.Unit == 0 {
		return fmt.Errorf("maxQD unit %v: want a nanosecond at least", p.Unit)
	}
	return k.maps.Parameters.Put(uint32(0), &v)
}

// sozeParams converts parameters that soze.New takes.
func sozeParams(p soze.Params) (v programSozeParams) {
	v.P, v.K = nanos(p.P), max(nanos(p.K), 1)
	v.LgAlpha, v.LgBeta = lg(bytesPerSecond(p.Alpha)), lg(bytesPerSecond(p.Beta))
	span := float64(v.LgAlpha-v.LgBeta) / (1 << lgBits)
	v.Inv = uint64(v.LgAlpha-v.LgBeta) << 20 / v.K
	v.PerLg = uint64(float64(v.K) / span * (1 << 8))
	v.K_perLn = uint64(float64(v.K) / (span * math.Ln2))
	v.M = uint64(p.M * (1 << oneBits))
	v.MaxRate = uint64(bytesPerSecond(p.MaxRate))
	return v
}

func bytesPerSecond(r units.Rate) float64 { return float64(r) / 8 }

// prioParams converts parameters that prioplus.New and swift.New take.
func prioParams(p prioplus.Params, s swift.Params) programPrioParams {
	return programPrioParams{
		BaseRtt: nanos(p.BaseRTT), Tolerance: nanos(p.Tolerance), LineRate: uint64(bytesPerSecond(p.LineRate)),
		Increase: uint64(s.Increase), LinearStart: uint64(p.LinearStart), Beta: uint64(s.Beta * (1 << oneBits)), MaxMdf: uint64(s.MaxMDF * (1 << oneBits)),
		Filter: uint32(p.Filter), RetxReset: uint32(s.RetxReset),
		CountDown: uint32((p.LineRate.In(p.BaseRTT) + p.LinearStart - 1) / max(p.LinearStart, 1)),
	}
}

// toChannel converts a channel, which has no limit where that is the time's largest.
func toChannel(c channel.Channel) programPrioChannel {
	return programPrioChannel{Target: nanos(c.Target), Limit: nanos(c.Limit)}
}

// Class is what connections are given that the controller says nothing of.
type Class struct {
	Law     Law
	Weight  float64
	Channel channel.Channel // PrioPlus'
}

// MaxClasses bounds the classes.
const MaxClasses = 64

// SetClass sets a class, 0 to MaxClasses - 1.
func (k *Kernel) SetClass(i uint32, c Class) error {
	return k.maps.Classes.Put(i, &programClass{Law: uint32(c.Law), LgWeight: lg(c.Weight), Channel: toChannel(c.Channel)})
}

// SetMarks gives connections of sockets with a mark a class, by mark; no mark is 0.
func (k *Kernel) SetMarks(marks map[uint32]uint32) error {
	var old, class uint32
	var stale []uint32
	it := k.maps.Marks.Iterate()
	for it.Next(&old, &class) {
		if _, ok := marks[old]; !ok {
			stale = append(stale, old)
		}
	}
	err := it.Err()
	for _, m := range stale {
		err = errors.Join(err, k.maps.Marks.Delete(m))
	}
	for m, c := range marks {
		err = errors.Join(err, k.maps.Marks.Put(m, c))
	}
	return err
}

// Key is a connection, as its sender sees it.
type Key struct{ Src, Dst netip.AddrPort }

func (k Key) wire() programFlowKey {
	return programFlowKey{Src: k.Src.Addr().As16(), Dst: k.Dst.Addr().As16(), SrcPort: k.Src.Port(), DstPort: k.Dst.Port()}
}

// Order is what a connection is told to do.
type Order struct {
	Weight  float64
	Channel channel.Channel
	Held    bool // sends next to nothing
}

// Tell tells a connection what to do, which it hears with its next acknowledgement.
func (k *Kernel) Tell(key Key, o Order) error {
	v := programOrder{LgWeight: lg(o.Weight), Channel: toChannel(o.Channel)}
	if o.Held {
		v.Held = 1
	}
	w := key.wire()
	return k.maps.Orders.Put(&w, &v)
}

// Flow is how a connection is doing.
type Flow struct {
	Key           Key
	Law           Law
	Class         uint32
	Weight        float64
	Acked         units.Bytes
	Rate          units.Rate // its pace
	RTT, LeastRTT units.Time
	MaxQD         units.Time
	Retransmits   uint32
	Channel       channel.Channel
	Crowded, Held bool
	Started       time.Duration // by the monotonic clock
}

// Flows returns the governed connections that have sent something, in no order.
func (k *Kernel) Flows() ([]Flow, error) {
	var list []Flow
	var key programFlowKey
	var v programFlow
	it := k.maps.Flows.Iterate()
	for it.Next(&key, &v) {
		addr := func(a [16]uint8, port uint16) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16(a).Unmap(), port)
		}
		list = append(list, Flow{
			Key: Key{addr(key.Src, key.SrcPort), addr(key.Dst, key.DstPort)}, Law: Law(v.Law), Class: v.Class, Weight: weight(v.LgWeight),
			Acked: units.Bytes(v.Acked), Rate: units.Rate(8 * v.Rate), RTT: units.Time(v.Rtt) * units.Nanosecond,
			LeastRTT: units.Time(v.LeastRtt) * units.Nanosecond, MaxQD: units.Time(v.MaxQd) * units.Nanosecond,
			Channel:     channel.Channel{Target: units.Time(v.Channel.Target) * units.Nanosecond, Limit: units.Time(v.Channel.Limit) * units.Nanosecond},
			Retransmits: v.Retransmits, Crowded: v.Crowded != 0, Held: v.Held != 0, Started: time.Duration(v.Started),
		})
	}
	return list, it.Err()
}
