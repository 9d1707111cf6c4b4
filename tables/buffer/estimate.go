package buffer

import (
	"fmt"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// fraction is how many fractional bits a logarithm has in the pipeline, whatever the
// precision of its tables.
const fraction = log2.MaxFrac

// keyBits is the width of the keys of all tables of Algorithm 3.
const keyBits = 32

// wholeBits is the width of an exponent's integer part: 2³² is beyond every gradient.
const wholeBits = 5

// maxGradient keeps ĝ, at most nine times the limit of |g|, within the two's complement of
// the pipeline's 32 bits, and differences within the 30 bits that it can quarter.
const maxGradient = 1 << 27

// link is what set_buffer_port says about a port's link.
type link struct {
	profile, exponent, limit uint64
}

// links is Algorithm 3 for all ports.
type links struct {
	ports   []link
	entries []Entry
}

// links returns the entries of Algorithm 3, and none when the policy does not need it.
func (c *Config) links() (*links, error) {
	l := &links{ports: make([]link, len(c.Numbers))}
	if !c.estimates() {
		return l, nil
	}
	gradients, err := c.MMU.Gradients()
	if err != nil {
		return nil, err
	}
	profiles := map[*headroom.Gradients]uint64{}
	steps, highest := 0, uint64(0)
	for i, g := range gradients {
		if g.Limit() >= maxGradient {
			return nil, &units.FieldError{Field: fmt.Sprintf("ports[%d].rate", i), Value: c.MMU.Ports[i].Rate.String(),
				Allowed: "a rate whose gradients fit into the pipeline", Because: fmt.Sprintf("|g| saturates at %d B in %v · 2^%d, and 2^27 are possible", g.Limit(), Tick, g.Unit())}
		}
		profile, known := profiles[g]
		if !known {
			profile = uint64(len(profiles))
			profiles[g] = profile
			list := Thresholds(profile, g.Phi())
			steps += len(list)
			l.entries = append(l.entries, list...)
		}
		l.ports[i] = link{profile, uint64(g.Unit()) << fraction, uint64(g.Limit())}
		highest = max(highest, uint64(g.Limit()))
	}
	logs := gradients[0].Logs()
	p := logs.Precision()
	if len(profiles) > 1<<8 || steps > ids.PhiEntries {
		return nil, &units.FieldError{Field: "dsh.entries", Value: fmt.Sprint(c.MMU.DSH.Entries), Allowed: fmt.Sprintf("%d entries for all kinds of links together", ids.PhiEntries),
			Because: fmt.Sprintf("there are %d kinds of links (rate and Φ), which take %d", len(profiles), steps)}
	}
	if n := max(p.LogEntries(keyBits), p.ExpEntries(wholeBits)); n > ids.LogEntries || n > ids.ExpEntries {
		return nil, &units.FieldError{Field: "dsh.precision", Value: fmt.Sprintf("%+v", p), Allowed: fmt.Sprintf("one with at most %d entries", ids.LogEntries),
			Because: fmt.Sprintf("the logarithm takes %d and the exponential %d", p.LogEntries(keyBits), p.ExpEntries(wholeBits))}
	}
	up := fraction - p.Frac
	for _, e := range logs.LogEntries(keyBits) {
		if e.Key <= uint64(c.MMU.Buffer) {
			l.entries = append(l.entries, prefixed(ids.TableLog2BytesName, "bytes", e.Key, e.PrefixLen, ids.ActionSetLogBytesName, e.Result<<up))
		}
		l.entries = append(l.entries, prefixed(ids.TableLog2TicksName, "ticks", e.Key, e.PrefixLen, ids.ActionSetLogTicksName, e.Result<<up))
	}
	for _, e := range logs.ExpEntries(wholeBits) {
		if e.Result >= highest { // a miss saturates
			break
		}
		l.entries = append(l.entries, prefixed(ids.TableExp2Name, "log", e.Key<<up, keyBits-wholeBits-fraction+e.PrefixLen, ids.ActionSetGradientName, e.Result))
	}
	return l, nil
}

func prefixed(table, field string, key uint64, prefix uint, action string, result uint64) Entry {
	return Entry{table, []Match{{field, key, int(prefix)}}, Action{action, []uint64{result}}}
}

// Thresholds returns the entries of table headroom_for of one kind of links, whose key is
// ĝ − 1. All steps have one width, a power of two; the last reaches to the end.
func Thresholds(profile uint64, t *phi.Table) []Entry {
	var list []Entry
	steps := t.Entries()
	for i, s := range steps {
		match := []Match{{Field: "profile", Value: profile, Prefix: Exact}}
		if i < len(steps)-1 {
			prefix := keyBits
			for width := s.High - s.Low + 1; width > 1; width >>= 1 {
				prefix--
			}
			match = append(match, Match{"gradient", uint64(s.Low - 1), prefix})
		}
		list = append(list, Entry{ids.TableHeadroomForName, match, Action{ids.ActionSetPhiName, []uint64{uint64(s.Phi)}}})
	}
	return list
}
