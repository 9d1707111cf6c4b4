package externs

import (
	"fmt"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// MaxWeight is the largest weight of a queue.
const MaxWeight = 1000

// Weights are the weights of egress queues at all ports of a switch, 1 to MaxWeight. Queues without a weight
// are served first, in the order of their numbers; queues with a weight share the rest by DWRR. The zero value
// is the schedule that the switch was started with.
type Weights [32]uint16

const queueField = "queue_"

// Entity returns the weights as P4Runtime carries them; equal weights are equal messages.
func (w Weights) Entity() *p4v1.Entity {
	fields := map[string]any{}
	for q, weight := range w {
		if weight > 0 {
			fields[queueField+strconv.Itoa(q)] = float64(weight)
		}
	}
	return pack(WeightsID, fields)
}

// ReadWeights returns the weights of an instance for a switch with some queues, 1 to 32. The error says which
// field has which value, and what is allowed.
func ReadWeights(e *p4v1.ExternEntry, queues int) (w Weights, err error) {
	fields, err := unpack(e)
	if err != nil {
		return w, err
	}
	for name, v := range fields.AsMap() {
		number, found := strings.CutPrefix(name, queueField)
		q, err := strconv.Atoi(number)
		if !found || err != nil || q < 0 || q >= queues || number != strconv.Itoa(q) {
			return Weights{}, fmt.Errorf("field %q of the weights is unknown, want queue_0 to queue_%d", name, queues-1)
		}
		weight, isNumber := v.(float64)
		if !isNumber || !(weight >= 1 && weight <= MaxWeight) || weight != float64(int(weight)) {
			return Weights{}, fmt.Errorf("the weight of %s is %v, want an integer from 1 to %d", name, v, MaxWeight)
		}
		w[q] = uint16(weight)
	}
	if w == (Weights{}) {
		return w, fmt.Errorf("the weights are empty, want a weight of a queue")
	}
	return w, nil
}
