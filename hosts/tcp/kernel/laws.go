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

// Law is a congestion law that runs in the kernel.
type Law uint32

// The laws. A connection with Other keeps the congestion control that it has.
const (
	Other Law = iota
	Soze
	PrioPlus
)

// lgBits is the number of fractional bits of a base-2 logarithm, oneBits that of a factor.
const lgBits, oneBits = 24, 30

func lg(v float64) int64 { return int64(math.Round(math.Log2(v) * (1 << lgBits))) }

func nanos(t units.Time) uint64 { return uint64(max(t, 0) / units.Nanosecond) }

// weight converts the logarithm of a weight to the weight, rounded to a millionth of it.
func weight(lg int64) float64 {
	w, _ := strconv.ParseFloat(strconv.FormatFloat(math.Exp2(float64(lg)/(1<<lgBits)), 'g', 7, 64), 64)
	return w
}

// Params holds the laws' parameters. All connections share them.
type Params struct {
	Soze soze.Params
	Unit units.Time // unit of maxQD
	// PrioPlus, and Swift underneath it. Each connection has a channel of its own.
	PrioPlus prioplus.Params
	Swift    swift.Params
	Netns    uint64 // cookie of the network namespace whose connections are governed; 0 for all namespaces
}

// SetParams sets the parameters.
func (k *Kernel) SetParams(p Params) error {
	v := programParams{Unit: nanos(p.Unit), Netns: p.Netns, Soze: sozeParams(p.Soze, math.MaxUint16*p.Unit), Prio: prioParams(p.PrioPlus, p.Swift)}
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

// sozeParams converts parameters; longest is the largest delay that maxQD can express.
func sozeParams(p soze.Params, longest units.Time) (v programSozeParams) {
	v.P, v.K = nanos(p.P), max(nanos(p.K), 1)
	v.LgAlpha, v.LgBeta = lg(bytesPerSecond(p.Alpha)), lg(bytesPerSecond(p.Beta))
	span := float64(v.LgAlpha-v.LgBeta) / (1 << lgBits)
	v.Inv = uint64(v.LgAlpha-v.LgBeta) << 20 / v.K
	v.PerLg = uint64(float64(v.K) / span * (1 << 8))
	v.K_perLn = uint64(float64(v.K) / (span * math.Ln2))
	v.M = uint64(p.M * (1 << oneBits))
	v.MaxRate = uint64(bytesPerSecond(p.MaxRate))
	v.Full = nanos(longest)
	v.Least = uint32(p.MinWindow / p.MSS)
	return v
}

func bytesPerSecond(r units.Rate) float64 { return float64(r) / 8 }

func prioParams(p prioplus.Params, s swift.Params) programPrioParams {
	return programPrioParams{
		BaseRtt: nanos(p.BaseRTT), Tolerance: nanos(p.Tolerance), LineRate: uint64(bytesPerSecond(p.LineRate)),
		Increase: uint64(s.Increase), LinearStart: uint64(p.LinearStart), Beta: uint64(s.Beta * (1 << oneBits)), MaxMdf: uint64(s.MaxMDF * (1 << oneBits)),
		Filter: uint32(p.Filter), RetxReset: uint32(s.RetxReset),
		CountDown: uint32((p.LineRate.BytesIn(p.BaseRTT) + p.LinearStart - 1) / max(p.LinearStart, 1)),
	}
}

// toChannel converts a channel. A limit of units.MaxTime means no limit.
func toChannel(c channel.Channel) programPrioChannel {
	return programPrioChannel{Target: nanos(c.Target), Limit: nanos(c.Limit)}
}

// Class holds the parameters of new connections. They keep these until the controller sends others.
type Class struct {
	Law     Law
	Weight  float64
	Channel channel.Channel // used by PrioPlus
}

// MaxClasses bounds the number of classes.
const MaxClasses = 64

// SetClass sets class i, from 0 to MaxClasses - 1.
func (k *Kernel) SetClass(i uint32, c Class) error {
	return k.maps.Classes.Put(i, &programClass{Law: uint32(c.Law), LgWeight: lg(c.Weight), Channel: toChannel(c.Channel)})
}

// SetMarks sets the class of connections by their sockets' mark (SO_MARK). marks must not contain
// 0, which is the mark of sockets without one.
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

// Key identifies a connection. Src is the sender's end.
type Key struct{ Src, Dst netip.AddrPort }

func (k Key) wire() programFlowKey {
	return programFlowKey{Src: k.Src.Addr().As16(), Dst: k.Dst.Addr().As16(), SrcPort: k.Src.Port(), DstPort: k.Dst.Port()}
}

// Order holds the settings that user space gives a connection.
type Order struct {
	Weight  float64
	Channel channel.Channel
	Held    bool // the connection sends almost nothing
}

// Tell gives a connection an order. The connection follows it from its next acknowledgement on.
func (k *Kernel) Tell(key Key, o Order) error {
	v := programOrder{LgWeight: lg(o.Weight), Channel: toChannel(o.Channel)}
	if o.Held {
		v.Held = 1
	}
	w := key.wire()
	return k.maps.Orders.Put(&w, &v)
}

// Flow is the state of a connection.
type Flow struct {
	Key           Key
	Law           Law
	Class         uint32
	Weight        float64
	Acked         units.Bytes
	Rate          units.Rate // pacing rate
	RTT, LeastRTT units.Time
	MaxQD         units.Time
	Retransmits   uint32
	Channel       channel.Channel
	Crowded, Held bool
	Started       time.Duration // time on the monotonic clock
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
