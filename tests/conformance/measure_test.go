package conformance

import (
	"bytes"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/tests/dataplane/target"
)

// Frames come back unchanged, for all ports and lengths.
func testReflect(r *rig) {
	r.load("measure")
	for port := uint32(1); port <= target.Ports; port++ {
		for _, length := range []int{1, 10, 60, 1514, 9000} {
			f := bytes.Repeat([]byte{0xab}, length)
			r.passes(port, f, port, f)
		}
	}
}

// A direct counter counts the frames that hit its entry. The table and the counter itself give the same values.
func testDirectCounter(r *rig) {
	p := r.load("measure")
	keys := map[int]*p4v1.TableEntry{}
	for _, length := range []int{5, 10} {
		r.write(insert(p.entry("lengths", exact(uint64(length)), 0, p.do("note"))))
		keys[length] = p.entry("lengths", exact(uint64(length)), 0, nil)
	}
	check := func(length int, packets int64) {
		r.Helper()
		want := &p4v1.CounterData{PacketCount: packets, ByteCount: packets * int64(length)}
		for _, what := range []*p4v1.Entity{
			of(&p4v1.DirectCounterEntry{TableEntry: keys[length]}),
			of(&p4v1.TableEntry{TableId: p.table("lengths"), Match: keys[length].Match, CounterData: &p4v1.CounterData{}}),
		} {
			got := r.read(what)
			if len(got) != 1 {
				r.Fatalf("read %v: %v", what, got)
			}
			data := got[0].GetDirectCounterEntry().GetData()
			if e := got[0].GetTableEntry(); e != nil {
				data = e.CounterData
			}
			if diff := cmp.Diff(want, data, protocmp.Transform()); diff != "" {
				r.Errorf("%v (-want +got):\n%s", what, diff)
			}
		}
	}
	check(5, 0)
	for length, times := range map[int]int{5: 1, 10: 3, 7: 2} {
		f := bytes.Repeat([]byte{0xab}, length)
		for range times {
			r.passes(1, f, 1, f)
		}
	}
	check(5, 1)
	check(10, 3)

	r.write(modify(&p4v1.DirectCounterEntry{TableEntry: keys[10], Data: &p4v1.CounterData{PacketCount: 100, ByteCount: 1000}}))
	check(10, 100)
	check(5, 1)
}

// metered is a port's entry with its meter's configuration, which is read only on request.
func (r *rig) metered(key *p4v1.TableEntry) *p4v1.MeterConfig {
	r.Helper()
	got := r.read(of(&p4v1.TableEntry{TableId: key.TableId, Match: key.Match, MeterConfig: &p4v1.MeterConfig{}}))
	if len(got) != 1 {
		r.Fatalf("read %v: %v", key, got)
	}
	return got[0].GetTableEntry().GetMeterConfig()
}

// A meter that was never configured has no configuration; writing no configuration has the same effect.
func testDirectMeterDefault(r *rig) {
	p := r.load("measure")
	entry := p.entry("ports", exact(1), 0, p.do("colour"))
	key := p.entry("ports", exact(1), 0, nil)
	r.write(insert(entry))
	if got := r.metered(key); got != nil {
		r.Errorf("a new entry's meter is %v", got)
	}
	r.write(modify(&p4v1.DirectMeterEntry{TableEntry: key}))
	if got := r.metered(key); got != nil {
		r.Errorf("a meter that was reset is %v", got)
	}
}

// A meter that allows a packet per second marks the rest of a burst red; after a reset it marks nothing red.
func testDirectMeterColours(r *rig) {
	p := r.load("measure")
	key := p.entry("ports", exact(1), 0, nil)
	r.write(insert(p.entry("ports", exact(1), 0, p.do("colour"))))
	config := &p4v1.MeterConfig{Cir: 1, Cburst: 1, Pir: 1, Pburst: 1}
	r.write(modify(&p4v1.DirectMeterEntry{TableEntry: key, Config: config}))
	if diff := cmp.Diff(config, r.metered(key), protocmp.Transform()); diff != "" {
		r.Errorf("meter (-want +got):\n%s", diff)
	}
	const burst = 200
	frames := make([][]byte, burst)
	for i := range frames {
		frames[i] = []byte{byte(i)}
	}
	r.send(1, frames...)
	r.send(2, []byte("last")) // port 2 has no meter
	passed := 0
	for r.next().Port == 1 {
		passed++
	}
	if passed == 0 || passed > burst/2 {
		r.Errorf("%d of %d packets passed a meter of 1 packet/s", passed, burst)
	}
	r.write(modify(&p4v1.DirectMeterEntry{TableEntry: key}))
	for range 5 {
		r.passes(1, []byte("free"), 1, []byte("free"))
	}
}
