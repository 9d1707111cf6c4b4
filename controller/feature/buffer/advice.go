package buffer

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// advise is feature.Description.Advise.
func (f *feat) advise(env *feature.Env, running *config.Switch) []string {
	s := env.Switch
	notes := Warnings(env.Config, s)
	h, numbers, on := Headroom(env.Config, s)
	if !on {
		return notes
	}
	if starves(h) {
		notes = append(notes, fmt.Sprintf("%s is 0: under the policy %s lossless queues can take all of the shared pool, and then packets of the other classes, "+
			"such as ACKs and CNPs, are dropped; 3KB for each queue avoid it", env.Config.Origin(s, "buffer.lossy_private"), h.Policy))
	}
	if running == nil || !Of(running).On() || reflect.DeepEqual(Of(running), Of(s)) {
		return notes
	}
	state := f.State(s.Name)
	layout, err := h.Layout()
	if state == nil || err != nil {
		return notes
	}
	return append(notes, drains(state, Of(running), h, layout, numbers))
}

// starves reports whether lossless queues can leave nothing to the others: a threshold that does
// not fall as the pool fills, or that a victim port does not have.
func starves(h headroom.Config) bool {
	takesAll := h.Policy == headroom.Static || h.Policy == headroom.SPFC || h.Policy == headroom.DSHSPFC
	return takesAll && h.LossyPrivate == 0 && bits.OnesCount8(h.Lossless) < headroom.Classes
}

// mostQueues is how many queues a note names.
const mostQueues = 8

// drains says what a change of the policy pauses until it has drained. Bytes that queues hold beyond
// the new reserve reduce the new shared pool, in whichever old pool they are.
func drains(state *State, old Config, h headroom.Config, layout headroom.Layout, numbers []uint32) string {
	what := fmt.Sprintf("the buffer changes from %s to %s", old.Policy, h.Policy)
	if old.Policy == h.Policy {
		what = fmt.Sprintf("the buffer's %s changes", old.Policy)
	}
	if state.Time.IsZero() {
		return what + ": no poll came back yet, so nobody knows what queues hold and what will be paused until it has drained"
	}
	ports := map[uint32]bool{}
	for _, n := range numbers {
		ports[n] = true
	}
	type queue struct {
		name string
		held units.Bytes
	}
	var queues []queue
	var held units.Bytes
	for i := range state.Ports {
		p := &state.Ports[i]
		for c := range headroom.Classes {
			private := h.LossyPrivate
			lossless := h.Lossless>>c&1 != 0
			if lossless {
				private = h.Private
			}
			beyond := units.Bytes(p.Private[c]) + units.Bytes(p.Shared[c]) + units.Bytes(p.Headroom[c]) - private
			if beyond <= 0 {
				continue
			}
			held += beyond
			if lossless && ports[p.Number] {
				queues = append(queues, queue{fmt.Sprintf("port %d (%s) class %d with %v", p.Number, p.Peer, c, beyond), beyond})
			}
		}
	}
	threshold := h.Threshold
	if h.Policy != headroom.Static {
		threshold = h.Alpha.Of(max(0, layout.Shared-held))
	}
	var paused []string
	for _, q := range queues {
		if q.held > threshold {
			paused = append(paused, q.name)
		}
	}
	text := fmt.Sprintf("%s: by the last poll queues hold %v beyond the new reserve, of a shared pool of %v, which makes the threshold %v", what, held, layout.Shared, threshold)
	if len(paused) == 0 {
		return text + "; nothing of that will be paused"
	}
	if more := len(paused) - mostQueues; more > 0 {
		paused = append(paused[:mostQueues], fmt.Sprintf("%d more", more))
	}
	text += "; paused until they have drained: " + strings.Join(paused, ", ")
	if held > layout.Shared {
		text += "; what is lossy is dropped as long as the pool is full"
	}
	return text
}
