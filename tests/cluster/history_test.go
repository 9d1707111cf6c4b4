package cluster

// A History of concurrent clients is linearizable if each call can have taken effect at one moment between its
// start and its end, as if all calls had run one after the other. Porcupine does the search.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is the effect of a call on the value of its key.
type Kind int

// The kinds. A value is a number.
const (
	Start   Kind = iota // Value is the key's first value
	Read                // Result.Value is the value that was read
	Swap                // sets Value, which no other call sets; Result.Value is the old value
	Add                 // adds 1; Result.Value is the sum
	AddIf               // Add if the value is Expect, otherwise refused
	Take                // sets Value if the present value is 0 or Value, otherwise refused
	Release             // sets 0 if the present value is Value, otherwise refused
)

var names = [...]string{"start", "read", "swap", "add", "add if", "take", "release"}

// Op is a client's request.
type Op struct {
	Kind          Kind
	Key           string
	Value, Expect int64
}

// Result is a client's answer.
type Result struct {
	Unknown bool // the client does not know whether it was done
	Refused bool // not done, because the value was not the required one
	Value   int64
}

// step is one call from a value on: whether it can have had its result, and the next value.
func step(is int64, o Op, r Result) (bool, int64) {
	next, fits := is, true // of a call that was done
	switch o.Kind {
	case Start:
		return true, o.Value
	case Read:
		return r.Value == is, is
	case Swap:
		return r.Unknown || r.Value == is, o.Value
	case Add:
		next = is + 1
	case AddIf:
		next, fits = is+1, is == o.Expect
	case Take:
		next, fits = o.Value, is == 0 || is == o.Value
	case Release:
		next, fits = 0, is == o.Value
	}
	switch {
	case r.Unknown && !fits:
		return true, is
	case r.Unknown:
		return true, next
	case r.Refused:
		return !fits, is
	}
	sums := o.Kind == Add || o.Kind == AddIf
	return fits && (!sums || r.Value == next), next
}

var model = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) { return step2(step(state.(int64), in.(Op), out.(Result))) },
	DescribeOperation: func(in, out any) string {
		o, r := in.(Op), out.(Result)
		text := fmt.Sprintf("%s %s", names[o.Kind], o.Key)
		if o.Kind != Read && o.Kind != Add {
			text += fmt.Sprint(" ", o.Value+o.Expect)
		}
		switch {
		case r.Unknown:
			return text + " → unknown"
		case r.Refused:
			return text + " → refused"
		}
		return text + fmt.Sprint(" → ", r.Value)
	},
}

func step2(ok bool, next int64) (bool, any) { return ok, next }

// History records the clients' calls. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	began time.Time
	ops   map[string][]porcupine.Operation // by key
	count int
}

// newHistory returns an empty history.
func newHistory() *History {
	return &History{began: time.Now(), ops: map[string][]porcupine.Operation{}}
}

// Now returns the time of the history.
func (h *History) Now() int64 { return int64(time.Since(h.began)) }

// Add records a call that a client began at a time and that has ended now.
func (h *History) Add(client int, began int64, o Op, r Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.Now()
	if r.Unknown {
		end = math.MaxInt64 // it may still be done
	}
	h.count++
	h.ops[o.Key] = append(h.ops[o.Key], porcupine.Operation{ClientId: client, Input: o, Output: r, Call: began, Return: end})
}

// Count returns the number of calls.
func (h *History) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Settle gives calls of a key with unknown outcomes their results, now that they are known: result returns those that
// were done, and no others.
func (h *History) Settle(key string, result func(Op) (Result, bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.Now()
	h.ops[key] = slices.DeleteFunc(h.ops[key], func(o porcupine.Operation) bool {
		if !o.Output.(Result).Unknown {
			return false
		}
		_, done := result(o.Input.(Op))
		return !done
	})
	for i, o := range h.ops[key] {
		if o.Output.(Result).Unknown {
			r, _ := result(o.Input.(Op))
			h.ops[key][i].Output, h.ops[key][i].Return = r, end
		}
	}
}

// Check returns a line for each key whose calls have no valid order, or for which the search exceeded its time. With a
// folder, it writes a page for each of them.
func (h *History) Check(limit time.Duration, folder string) (faults []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, list := range h.ops {
		list = prune(list)
		result, info := porcupine.CheckOperationsVerbose(model, list, limit)
		if result == porcupine.Ok {
			continue
		}
		text := fmt.Sprintf("%s: %d calls cannot have come one after the other", key, len(list))
		if result == porcupine.Unknown {
			text = fmt.Sprintf("%s: it takes more than %v to find out whether %d calls can have come one after the other", key, limit, len(list))
		}
		if folder != "" {
			name := fmt.Sprintf("%s/history-%s.html", folder, key)
			if err := porcupine.VisualizePath(model, info, name); err != nil {
				name = err.Error()
			}
			text += ": " + name
		}
		faults = append(faults, text+"\n"+longest(list, info))
	}
	slices.Sort(faults)
	return faults
}

// longest shows the calls around the end of the longest order that was found.
func longest(list []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var best []porcupine.Operation
	for _, one := range info.PartialLinearizationsOperations() {
		for _, l := range one {
			if len(l) > len(best) {
				best = l
			}
		}
	}
	text, in := "", map[string]bool{}
	show := func(o porcupine.Operation) string {
		return fmt.Sprintf("client %d %.4f to %.4f s: %s", o.ClientId, float64(o.Call)/1e9, float64(o.Return)/1e9, model.DescribeOperation(o.Input, o.Output))
	}
	for _, o := range best {
		in[show(o)] = true
	}
	for _, o := range best[max(0, len(best)-8):] {
		text += "  " + show(o) + "\n"
	}
	rest := slices.Clone(list)
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for _, o := range rest {
		if s := show(o); !in[s] && len(text) < 3000 {
			text += "  not placed: " + s + "\n"
		}
	}
	return text
}

// prune makes Swap calls with an unknown outcome easy to search. A call whose value was never seen can be left out,
// because the next one replaced the value first. A call whose value was seen must come before that.
func prune(list []porcupine.Operation) []porcupine.Operation {
	seen := map[int64]int64{} // the latest time of a value's first sighting, by value
	for _, o := range list {
		if r := o.Output.(Result); !r.Unknown && !r.Refused {
			if at, ok := seen[r.Value]; !ok || o.Return < at {
				seen[r.Value] = o.Return
			}
		}
	}
	var out []porcupine.Operation
	for _, o := range list {
		if in := o.Input.(Op); in.Kind == Swap && o.Output.(Result).Unknown {
			at, ok := seen[in.Value]
			if !ok || at < o.Call {
				if !ok {
					continue
				}
				at = o.Call // seen before it was requested: there is no valid order
			}
			o.Return = at
		}
		out = append(out, o)
	}
	return out
}
