package cnpgen

import (
	"fmt"
	"maps"
	"testing"
)

// TestMeter: the bytes of a pair between two readings are never negative and never counted twice, whatever happens to
// entries and switch.
func TestMeter(t *testing.T) {
	count := func(port uint32, n byte, bytes uint64) Counters { return Counters{Flow: flow(port, n), Bytes: bytes} }
	m := NewMeter(3)
	for _, step := range []struct {
		what   string
		counts []Counters
		want   map[FlowKey]uint64
	}{
		{"before the first reading is not known when", []Counters{count(1, 1, 500)}, nil},
		{"the difference counts", []Counters{count(1, 1, 700)}, map[FlowKey]uint64{flow(1, 1).FlowKey: 200}},
		{"nothing was sent", []Counters{count(1, 1, 700)}, nil},
		{"a new entry has all that it counts; a pair has both its ports", []Counters{count(1, 1, 800), count(2, 1, 50), count(1, 2, 60)},
			map[FlowKey]uint64{flow(1, 1).FlowKey: 150, flow(1, 2).FlowKey: 60}},
		{"the switch was restarted", []Counters{count(1, 1, 30), count(2, 1, 50)}, nil},
		{"and counts on; an entry that was evicted comes back", []Counters{count(1, 1, 40), count(1, 2, 9)}, map[FlowKey]uint64{flow(1, 1).FlowKey: 10, flow(1, 2).FlowKey: 9}},
		{"half an entry means nothing", []Counters{{Flow: flow(1, 1), Bytes: 99, Partial: true}, count(1, 2, 10)}, map[FlowKey]uint64{flow(1, 2).FlowKey: 1}},
	} {
		if got := m.Read(step.counts); !maps.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
	many := make([]Counters, 9)
	for i := range many {
		many[i] = count(1, byte(10+i), 5)
	}
	if got := m.Read(many); len(got) != 3 || len(m.last) > 3 {
		t.Errorf("%d flows of %d in the table count, want room for 3", len(got), len(m.last))
	}
}

// TestLoopTellsWhatIsSent: each reading reports the pairs' bytes since the one before, by the difference that the loop
// computes anyway. Bytes from before the loop are not counted, none twice, and none when counters restart.
func TestLoopTellsWhatIsSent(t *testing.T) {
	f := newFake(t, 100)
	var told []string
	p := paperParams(25e9)
	var err error
	f.loop, err = NewLoop(LoopConfig{Ports: []PortConfig{{1, p}, {2, p}}, MaxFlows: 100, Counted: func(sent map[FlowKey]uint64) {
		total := uint64(0)
		for _, n := range sent {
			total += n
		}
		told = append(told, fmt.Sprintf("%d of %d", total, len(sent)))
	}}, f)
	if err != nil {
		t.Fatal(err)
	}
	f.put(Counters{Flow: flow(1, 1), Bytes: 5000}) // of an earlier loop
	f.run(t, period)
	for n, sent := range []map[Flow]sender{
		{flow(1, 1): {100, 1}, flow(2, 2): {7, 0}}, // the second is learned
		{flow(1, 1): {100, 1}, flow(2, 1): {30, 0}, flow(2, 2): {20, 0}},
		{flow(2, 1): {5, 0}},
	} {
		f.silent = n == 1 // without an answer, PACC counts the period again; the meter does not
		f.send(sent)
		f.run(t, f.now+period)
	}
	f.table[flow(1, 1)].Bytes = 3 // restarted
	f.run(t, f.now+period)
	if got, want := fmt.Sprint(told), "[0 of 0 100 of 1 120 of 2 5 of 1 0 of 0]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
