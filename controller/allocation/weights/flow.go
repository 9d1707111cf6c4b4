package weights

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// Key names a flow by its five-tuple; the protocol is UDP. Addresses are of one version of IP, ports 1 to
// 65535. It takes 36 bytes without a pointer, where two netip.AddrPort take 64: up to MaxFlows keys are kept, each
// twice.
type Key struct {
	src, dst end
}

type end struct {
	addr [16]byte // IPv4 mapped to IPv6
	port uint16
}

func (e end) addrPort() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(e.addr).Unmap(), e.port)
}

// Src returns the source's address and port.
func (k Key) Src() netip.AddrPort { return k.src.addrPort() }

// Dst returns the destination's address and port.
func (k Key) Dst() netip.AddrPort { return k.dst.addrPort() }

// NewKey checks the four parts of a flow's name. Its error is an *InvalidError whose field is
// src_ipv4, dst_ipv4, src_port or dst_port.
func NewKey(src, dst string, srcPort, dstPort uint32) (Key, error) {
	s, err := address("src_ipv4", src)
	if err != nil {
		return Key{}, err
	}
	d, err := address("dst_ipv4", dst)
	if err != nil {
		return Key{}, err
	}
	if s.BitLen() != d.BitLen() {
		return Key{}, &InvalidError{Field: "dst_ipv4", Value: fmt.Sprintf("%q", dst), Allowed: fmt.Sprintf("an address of the version of IP that the source's is of, %v", s)}
	}
	for _, p := range []struct {
		field string
		port  uint32
	}{{"src_port", srcPort}, {"dst_port", dstPort}} {
		if p.port == 0 || p.port > 65535 {
			return Key{}, &InvalidError{Field: p.field, Value: fmt.Sprint(p.port), Allowed: "a UDP port from 1 to 65535"}
		}
	}
	return Key{src: end{s.As16(), uint16(srcPort)}, dst: end{d.As16(), uint16(dstPort)}}, nil
}

func address(field, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return a, &InvalidError{Field: field, Value: fmt.Sprintf("%q", text), Allowed: "a unicast address such as 10.0.0.1 or 2001:db8::1"}
	}
	return a, nil
}

// KeyForm is how people write a flow.
const KeyForm = "SRC:SPORT,DST:DPORT such as 10.0.0.1:1001,10.0.0.2:50151"

// ParseKey parses the text of String; blanks around the two ends are fine.
func ParseKey(text string) (Key, error) {
	bad := &InvalidError{Field: "flow", Value: fmt.Sprintf("%q", text), Allowed: KeyForm}
	src, dst, ok := strings.Cut(text, ",")
	if !ok {
		return Key{}, bad
	}
	ends := [2]netip.AddrPort{}
	for i, s := range []string{src, dst} {
		ap, err := netip.ParseAddrPort(strings.TrimSpace(s))
		if err != nil {
			return Key{}, bad
		}
		ends[i] = ap
	}
	k, err := NewKey(ends[0].Addr().String(), ends[1].Addr().String(), uint32(ends[0].Port()), uint32(ends[1].Port()))
	if err != nil {
		return Key{}, fmt.Errorf("flow %q: %w", text, err)
	}
	return k, nil
}

// String writes the flow as SRC:SPORT,DST:DPORT; the zero Key, which is no flow, as "".
func (k Key) String() string {
	if k == (Key{}) {
		return ""
	}
	return k.Src().String() + "," + k.Dst().String()
}

// MarshalText writes the flow as String does.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the text of MarshalText.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k = Key{}
	if len(text) > 0 {
		*k, err = ParseKey(string(text))
	}
	return err
}

// Compare orders keys by source, source port, destination, destination port.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.src.compare(o.src), k.dst.compare(o.dst))
}

func (e end) compare(o end) int {
	return cmp.Or(bytes.Compare(e.addr[:], o.addr[:]), cmp.Compare(e.port, o.port))
}

// Weight is a weight or a sum of weights in millionths. Söze's weights are real numbers
// (§3.4); a fixed point makes sums exact, so that 0.1 + 0.2 fits a budget of 0.3 and no
// order of changes drifts away from the true sum.
type Weight int64

// One is the weight 1; MinWeight and MaxWeight bound a flow's weight, MaxLimit a budget.
// MaxFlows flows of MaxWeight still fit into an int64.
const (
	One       Weight = 1_000_000
	MinWeight        = One / 1_000_000
	MaxWeight        = One * 1_000_000
	MaxLimit         = One * 1_000_000_000
	MaxFlows         = 1 << 20
)

// FromFloat checks a flow's weight and rounds it to the nearest millionth. Not finite, zero,
// negative and out of range values give an *InvalidError.
func FromFloat(v float64) (Weight, error) {
	if !(v >= MinWeight.Float() && v <= MaxWeight.Float()) {
		return 0, &InvalidError{Field: "weight", Value: format(v), Allowed: fmt.Sprintf("a finite number from %v to %v", MinWeight, MaxWeight)}
	}
	return Weight(math.RoundToEven(v * float64(One))), nil
}

// LimitFromFloat checks a budget; 0 means no limit.
func LimitFromFloat(v float64) (Weight, error) {
	if v == 0 {
		return 0, nil
	}
	if !(v >= MinWeight.Float() && v <= MaxLimit.Float()) {
		return 0, &InvalidError{Field: "limit", Value: format(v), Allowed: fmt.Sprintf("a finite number from %v to %v, or 0 for no limit", MinWeight, MaxLimit)}
	}
	return Weight(math.RoundToEven(v * float64(One))), nil
}

// Float returns the weight as the number that people and protocols use.
func (w Weight) Float() float64 { return float64(w) / float64(One) }

// String writes the exact decimal number.
func (w Weight) String() string {
	return strconv.FormatFloat(w.Float(), 'f', -1, 64)
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// ErrUnknownFlow says that the registry holds no such flow.
var ErrUnknownFlow = errors.New("no such flow")

// ErrFull says that the registry holds as many flows as it can.
var ErrFull = fmt.Errorf("the weight registry is full: at most %d flows", MaxFlows)

// InvalidError is a value that can never be accepted.
type InvalidError struct {
	Field   string // such as weight, application or src_port
	Value   string
	Allowed string
}

// Error names the field, the value and the allowed values.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s is not allowed: want %s", e.Field, e.Value, e.Allowed)
}

// BudgetError is a change that an application's budget does not allow. Before and After are the
// application's sums of the changed flows' weights.
type BudgetError struct {
	Application   string
	Limit, Used   Weight
	Before, After Weight
	LowersLimit   bool // the change was to the limit itself
	Asked         Weight
}

// Error shows the arithmetic.
func (e *BudgetError) Error() string {
	if e.LowersLimit {
		return fmt.Sprintf("application %q: a budget of %v is below the %v in use; lower or delete weights first, or set at least %v",
			e.Application, e.Asked, e.Used, e.Used)
	}
	return fmt.Sprintf("application %q is over its budget: in use %v - before %v + asked %v = %v > limit %v; at most %v can be asked",
		e.Application, e.Used, e.Before, e.After, e.Used-e.Before+e.After, e.Limit, max(0, e.Limit-e.Used+e.Before))
}

// UnknownApplicationError is a weight for an application without a budget, where other applications
// have budgets.
type UnknownApplicationError struct {
	Application string
	Named       []string
}

// Error says which applications there are.
func (e *UnknownApplicationError) Error() string {
	const most = 20
	named := e.Named
	if len(named) > most {
		named = append(named[:most:most], fmt.Sprintf("and %d more", len(named)-most))
	}
	return fmt.Sprintf("application %q has no budget: name it under applications in the configuration, set a budget for it, or use one of %s",
		e.Application, strings.Join(named, ", "))
}

// ForeignError is a flow of an application that is not one of the caller's.
type ForeignError struct {
	Flow  Key
	Owner string
}

// Error names the flow's application.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("flow %v is of application %q, which the policy does not grant to the caller", e.Flow, e.Owner)
}
