package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestCheck: histories that one value explains, and histories that no value explains.
func TestCheck(t *testing.T) {
	type call struct {
		from, to int64
		op       Op
		result   Result
	}
	start := call{0, 1, Op{Kind: Start, Value: 1}, Result{}}
	read := func(from, to, v int64) call { return call{from, to, Op{Kind: Read}, Result{Value: v}} }
	set := func(from, to, v, before int64) call {
		return call{from, to, Op{Kind: Swap, Value: v}, Result{Value: before}}
	}
	maybe := func(from int64, o Op) call { return call{from, math.MaxInt64, o, Result{Unknown: true}} }
	for name, tc := range map[string]struct {
		calls []call
		good  bool
	}{
		"a register":                   {[]call{start, set(2, 5, 2, 1), read(3, 4, 1), read(3, 4, 2), read(6, 7, 2)}, true},
		"a stale read":                 {[]call{start, set(2, 5, 2, 1), read(6, 7, 1)}, false},
		"a value that goes and comes":  {[]call{start, set(2, 9, 2, 1), read(3, 4, 2), read(5, 6, 1)}, false},
		"a lost change":                {[]call{start, set(2, 3, 2, 1), set(4, 5, 3, 1)}, false},
		"a doubled change":             {[]call{start, set(2, 3, 2, 1), set(4, 5, 3, 2), read(6, 7, 2)}, false},
		"an unknown one that was made": {[]call{start, maybe(2, Op{Kind: Swap, Value: 2}), read(3, 4, 1), read(5, 6, 2)}, true},
		"and not":                      {[]call{start, maybe(2, Op{Kind: Swap, Value: 2}), read(3, 4, 1), set(5, 6, 3, 1)}, true},
		"one nobody made":              {[]call{start, read(5, 6, 2)}, false},
		"seen before it was asked for": {[]call{start, read(2, 3, 2), maybe(4, Op{Kind: Swap, Value: 2})}, false},
		"a counter":                    {[]call{start, {2, 6, Op{Kind: Add}, Result{Value: 3}}, {2, 6, Op{Kind: Add}, Result{Value: 2}}, read(7, 8, 3)}, true},
		"one sum twice":                {[]call{start, {2, 6, Op{Kind: Add}, Result{Value: 2}}, {2, 6, Op{Kind: Add}, Result{Value: 2}}}, false},
		"a sum that nobody made":       {[]call{start, {2, 3, Op{Kind: Add}, Result{Value: 2}}, read(4, 5, 3)}, false},
		"an unknown sum":               {[]call{start, maybe(2, Op{Kind: Add}), read(4, 5, 2)}, true},
		"compare and set":              {[]call{start, {2, 3, Op{Kind: AddIf, Expect: 1}, Result{Value: 2}}, {4, 5, Op{Kind: AddIf, Expect: 1}, Result{Refused: true}}}, true},
		"both are let in":              {[]call{start, {2, 3, Op{Kind: AddIf, Expect: 1}, Result{Value: 2}}, {4, 5, Op{Kind: AddIf, Expect: 1}, Result{Value: 3}}}, false},
		"refused without a reason":     {[]call{start, {2, 3, Op{Kind: AddIf, Expect: 1}, Result{Refused: true}}}, false},
		"taken and released":           {[]call{start, {2, 3, Op{Kind: Take, Value: 2}, Result{Refused: true}}, {4, 5, Op{Kind: Release, Value: 1}, Result{}}, {6, 7, Op{Kind: Take, Value: 2}, Result{}}, read(8, 9, 2)}, true},
		"taken by two":                 {[]call{{2, 3, Op{Kind: Take, Value: 1}, Result{}}, {4, 5, Op{Kind: Take, Value: 2}, Result{}}}, false},
		"released by another":          {[]call{start, {4, 5, Op{Kind: Release, Value: 2}, Result{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			for i, c := range tc.calls {
				c.op.Key = "k"
				h.ops["k"] = append(h.ops["k"], porcupine.Operation{ClientId: i, Input: c.op, Output: c.result, Call: c.from, Return: c.to})
			}
			if got := h.Check(time.Minute, t.TempDir()); (len(got) == 0) != tc.good {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestSettle: results that become known later, for calls that ended with an unknown outcome.
func TestSettle(t *testing.T) {
	h := newHistory()
	h.Add(0, h.Now(), Op{Kind: Start, Key: "k", Value: 1}, Result{})
	began := h.Now()
	for v := range int64(3) {
		h.Add(1, began, Op{Kind: Add, Key: "k", Value: v}, Result{Unknown: true})
	}
	h.Add(2, h.Now(), Op{Kind: Read, Key: "k"}, Result{Value: 2})
	h.Settle("k", func(o Op) (Result, bool) { return Result{Value: 2}, o.Value == 1 })
	if got := h.Check(time.Minute, ""); len(got) != 0 || len(h.ops["k"]) != 3 || h.Count() != 5 {
		t.Errorf("%v, %v", got, h.ops["k"])
	}
	h.Add(2, h.Now(), Op{Kind: Read, Key: "k"}, Result{Value: 3})
	if got := h.Check(time.Minute, ""); len(got) != 1 {
		t.Errorf("a sum that nobody made: %v", got)
	}
}
