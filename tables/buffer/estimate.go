package buffer

import (
	"cmp"
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
		if err := units.Fault(g.Limit() >= maxGradient, fmt.Sprintf("ports[%d].rate", i), c.MMU.Ports[i].Rate, "a rate whose gradients fit into the pipeline",
			fmt.Sprintf("|g| saturates at %d B in %v · 2^%d, and 2^27 are possible", g.Limit(), Tick, g.Unit())); err != nil {
			return nil, err
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
	if err := cmp.Or(
		units.Fault(len(profiles) > 1<<8 || steps > ids.PhiEntries, "dsh.entries", c.MMU.DSH.Entries, fmt.Sprintf("%d entries for all kinds of links together", ids.PhiEntries),
			fmt.Sprintf("there are %d kinds of links (rate and Φ), which take %d", len(profiles), steps)),
		Fits(p, min(ids.LogEntries, ids.ExpEntries)),
	); err != nil {
		return nil, err
	}
	up := fraction - p.Frac
	for _, e := range logs.LogEntries(keyBits) {
		if e.Key <= uint64(c.MMU.Buffer) {
			l.entries = append(l.entries, LogBytes(e.Key, e.PrefixLen, e.Result<<up))
		}
		l.entries = append(l.entries, LogTicks(e, up))
	}
	l.entries = append(l.entries, Exp2(logs, highest)...) // a miss saturates
	return l, nil
}

// Fits returns a *units.FieldError where tables of a precision take more than so many entries.
func Fits(p log2.Precision, most int) error {
	logs, exp := p.LogEntries(keyBits), p.ExpEntries(wholeBits)
	return units.Fault(max(logs, exp) > most, "dsh.precision", fmt.Sprintf("%+v", p), fmt.Sprintf("one with at most %d entries", most),
		fmt.Sprintf("the logarithm takes %d and the exponential %d", logs, exp))
}

// LogBytes returns an entry of table log2_bytes.
func LogBytes(key uint64, prefix uint, result uint64) Entry {
	return prefixed(ids.TableLog2BytesName, "bytes", key, prefix, ids.ActionSetLogBytesName, result)
}

// LogTicks returns an entry of table log2_ticks; up is how many fractional bits the pipeline has more.
func LogTicks(e log2.Entry, up uint) Entry {
	return prefixed(ids.TableLog2TicksName, "ticks", e.Key, e.PrefixLen, ids.ActionSetLogTicksName, e.Result<<up)
}

// Exp2 returns the entries of table exp2 with a result below limit.
func Exp2(logs *log2.Table, limit uint64) (list []Entry) {
	up := fraction - logs.Precision().Frac
	for _, e := range logs.ExpEntries(wholeBits) {
		if e.Result >= limit {
			break
		}
		list = append(list, prefixed(ids.TableExp2Name, "log", e.Key<<up, keyBits-wholeBits-fraction+e.PrefixLen, ids.ActionSetGradientName, e.Result))
	}
	return list
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
