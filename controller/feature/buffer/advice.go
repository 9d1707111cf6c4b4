package buffer

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

func (f *feat) advise(env *feature.Env, running *config.Switch) []string {
	s := env.Switch
	notes := Warnings(env.Config, s)
	h, numbers, on := Headroom(env.Config, s)
	if !on {
		return notes
	}
	// A queue can take the whole pool if its threshold does not fall as the pool fills, or if its port is a victim.
	takesAll := h.Policy == headroom.Static || FromSwitch(s).Policy.Victims()
	if takesAll && h.LossyPrivate == 0 && bits.OnesCount8(h.Lossless) < headroom.Classes {
		notes = append(notes, fmt.Sprintf("%s is 0: under the policy %s lossless queues can take all of the shared pool, and then packets of the other classes, "+
			"such as ACKs and CNPs, are dropped; 3KB for each queue avoid it", env.Config.Origin(s, "buffer.lossy_private"), h.Policy))
	}
	if running == nil {
		return notes
	}
	if old, _, was := Headroom(env.Config, running); !was || reflect.DeepEqual(old, h) {
		return notes
	}
	state := f.State(s.Name)
	layout, err := h.Layout()
	if state == nil || err != nil {
		return notes
	}
	return append(notes, drains(state, FromSwitch(running), h, layout, numbers))
}

const mostQueues = 8

// drains describes the queues that a change of the policy pauses until they have drained. Bytes that queues hold
// beyond the new reserve reduce the new shared pool, in whichever old pool they are.
func drains(state *State, old Config, h headroom.Config, layout headroom.Layout, numbers []uint32) string {
	what := fmt.Sprintf("the buffer changes from %s to %s", old.Policy, h.Policy)
	if old.Policy == h.Policy {
		what = fmt.Sprintf("the buffer's %s changes", old.Policy)
	}
	if state.Time.IsZero() {
		return what + ": no poll was answered yet, so the bytes in queues, and the queues that will be paused until they drain, are unknown"
	}
	type queue struct {
		name string
		held units.Bytes
	}
	var queues []queue
	var held units.Bytes
	reserve := map[bool]units.Bytes{true: h.Private, false: h.LossyPrivate}
	for i := range state.Ports {
		p := &state.Ports[i]
		for c := range headroom.Classes {
			lossless := h.Lossless>>c&1 != 0
			beyond := units.Bytes(p.Private[c]) + units.Bytes(p.Shared[c]) + units.Bytes(p.Headroom[c]) - reserve[lossless]
			if beyond <= 0 {
				continue
			}
			held += beyond
			if lossless && slices.Contains(numbers, p.Number) {
				queues = append(queues, queue{fmt.Sprintf("port %d (%s) class %d with %v", p.Number, p.Peer, c, beyond), beyond})
			}
		}
	}
	threshold := h.Threshold
	if h.Policy != headroom.Static {
		threshold = h.Alpha.Threshold(max(0, layout.Shared-held))
	}
	var paused []string
	for _, q := range queues {
		if q.held > threshold {
			paused = append(paused, q.name)
		}
	}
	text := fmt.Sprintf("%s: by the last poll queues hold %v beyond the new reserve, of a shared pool of %v, which makes the threshold %v", what, held, layout.Shared, threshold)
	if len(paused) == 0 {
		return text + "; no queue will be paused"
	}
	if more := len(paused) - mostQueues; more > 0 {
		paused = append(paused[:mostQueues], fmt.Sprintf("%d more", more))
	}
	text += "; paused until they have drained: " + strings.Join(paused, ", ")
	if held > layout.Shared {
		text += "; lossy packets are dropped while the pool is full"
	}
	return text
}

// feedback is the DSCP of CNPs and ACKs: the one that NICs use, and the default of soze.ack_dscp and pacc.cnp_dscp.
const feedback = 48

// Warnings returns settings of a switch's lossless classes that are allowed but do not work as intended: headroom
// below the standard or a vendor's profile, marks that come too late or never, and feedback that waits behind data.
// Each names a field and its value.
func Warnings(c *config.Config, s *config.Switch) []string {
	return slices.Concat(LowHeadroom(c, s), marks(c, s), starvedFeedback(c, s))
}

// LowHeadroom names the port that lacks most headroom, by the standard and by the vendor's profiles.
func LowHeadroom(c *config.Config, s *config.Switch) (list []string) {
	h, ports, on := Headroom(c, s)
	layout, err := h.Layout()
	if !on || err != nil {
		return nil // check reports the error
	}
	b := FromSwitch(s)
	key, value := "headroom", b.Headroom.String()
	switch {
	case b.Policy == headroom.Oversubscribed:
		key, value = "share", fmt.Sprint(b.Share)
	case b.Headroom != 0:
	case b.HeadroomMethod != headroom.Standard:
		key, value = "headroom_method", string(b.HeadroomMethod)
	default:
		key, value = "headroom_profiles", fmt.Sprintf("a list of %d", len(b.HeadroomProfiles))
	}
	low := func(need func(i int, line units.Rate, p switchPort) units.Bytes, by, then string) {
		var most units.Bytes
		at, others := -1, -1
		all := switchPorts(c, s.Name)
		for i, p := range all {
			line, _ := c.LineRate(p.Rate)
			if lacks := need(i, line, p) - layout.Phi[i]; lacks > 0 {
				if others++; lacks > most {
					most, at = lacks, i
				}
			}
		}
		if at < 0 {
			return
		}
		line, _ := c.LineRate(all[at].Rate)
		field, value := c.Origin(s, "buffer."+key), value
		if own := ownHeadroom(c, s, ports[at]); own != "" {
			field, value = own, s.Port(ports[at]).Headroom.String()
		}
		text := fmt.Sprintf("%s is %s, which makes %d B of headroom at port %d (%v), and %s is %d B", field, value, layout.Phi[at], ports[at], line, by, layout.Phi[at]+most)
		if others > 0 {
			text += fmt.Sprintf("; so at %s more", units.Count(uint64(others), "port"))
		}
		list = append(list, text+": "+then)
	}
	low(func(i int, line units.Rate, _ switchPort) units.Bytes {
		l := h.Link(i)
		if b.PeerResponse == 0 {
			l.Response = headroom.Response(line)
		}
		return l.Required()
	}, "what the response time of IEEE 802.3 Annex 31B.3.7 requires", "a peer that takes all of that time loses lossless packets")
	low(func(_ int, line units.Rate, p switchPort) units.Bytes { return b.Profile(line, p.Delay) }, "the vendor's in headroom_profiles", "the vendor knows the delays of its own chip, which the standard does not bound")
	return list
}

// marks returns what is wrong with the ECN thresholds at a switch. It compares each with the depth at which one
// sender's class is paused, or dropped if the class is lossy.
func marks(c *config.Config, s *config.Switch) (list []string) {
	q := qos.FromConfig(c)
	applies := map[qos.ECN]bool{}
	for _, p := range switchPorts(c, s.Name) {
		line, _ := c.LineRate(p.Rate)
		for _, e := range q.ECNAt(s.Name, p.number, line) {
			applies[e] = true
		}
	}
	h, _, on := Headroom(c, s)
	layout, err := h.Layout()
	limit, by := h.Threshold, fmt.Sprintf("%s %v", c.Origin(s, "buffer.threshold"), h.Threshold)
	if h.Policy != headroom.Static {
		// A queue that has the pool for itself grows until it has α times the rest: q = α·(B − q).
		limit = largest(h.Alpha, layout.Shared)
		by = fmt.Sprintf("%v, the most of the shared pool that %s %v leaves to one queue", limit, c.Origin(s, "buffer.alpha"), h.Alpha)
	}
	for i, e := range q.ECN {
		own, then := h.LossyPrivate, "its packets are dropped"
		if LosslessQueues(c, s)>>e.Queue&1 != 0 {
			own, then = h.Private, "a single sender is paused"
		}
		add := func(format string, args ...any) {
			list = append(list, fmt.Sprintf("qos.ecn[%d].", i)+fmt.Sprintf(format, args...))
		}
		switch {
		case !applies[e]:
		case !reached(q, e.Queue):
			add("queue is %d: no DSCP of qos.classes leads to this queue, so nothing is marked", e.Queue)
		case !on || err != nil:
		case e.KMin >= h.Buffer:
			add("kmin is %v, and all memory of %s is %v: nothing is ever marked", e.KMin, s.Name, h.Buffer)
		case e.KMin >= limit+own:
			add("kmin is %v, on %s not below %s: %s before the queue marks anything", e.KMin, s.Name, by, then)
		}
	}
	return list
}

// largest returns the most of a pool that one queue gets with α: the part α/(1+α).
func largest(a headroom.Alpha, pool units.Bytes) units.Bytes {
	low, high := units.Bytes(0), pool
	for low < high {
		if mid := (low + high + 1) / 2; mid <= a.Threshold(pool-mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// reached reports whether some DSCP maps to the queue. DSCPs that no class lists map to queue 0.
func reached(q qos.Config, queue uint8) bool {
	return queue == 0 && len(q.Classes) < 64 || slices.ContainsFunc(q.Classes, func(k qos.Class) bool { return k.Queue == queue })
}

// starvedFeedback reports CNPs and ACKs that strict priority makes wait behind the lossless data that they are about.
func starvedFeedback(c *config.Config, s *config.Switch) []string {
	q := qos.FromConfig(c)
	own := q.ClassOf(feedback)
	at := slices.Index(q.Classes, own)
	if at < 0 && len(q.ECN) == 0 {
		return nil // no switch sends CNPs, and the senders of ACKs are not known
	}
	b := FromSwitch(s)
	for i, k := range q.Classes {
		if !b.On() || b.Lossless>>k.Class&1 == 0 || k.Queue <= own.Queue || k.DSCP == feedback {
			continue
		}
		field := fmt.Sprintf("qos.classes[%d].queue is %d", at, own.Queue)
		if at < 0 {
			field = fmt.Sprintf("qos.classes has no DSCP %d, which then has queue 0", feedback)
		}
		return []string{fmt.Sprintf("%s, below that of qos.classes[%d], %d, which is lossless on %s: CNPs and ACKs (DSCP %d) are served after the data that they should slow down",
			field, i, k.Queue, s.Name, feedback)}
	}
	return nil
}
