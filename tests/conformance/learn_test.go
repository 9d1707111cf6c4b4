package conformance

import (
	"time"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// Stations in frames of testdata/learn.p4.
const (
	alice = 0x112233445566
	bob   = 0x112233445577
)

func from(station uint64) []byte {
	f := append([]byte{1, 1, 1, 1, 1, 1}, number(station)...)
	return append(f, 0x88, 0xb5) // IEEE 802 local experimental
}

// passesFrom sends a frame and checks that it comes back.
func (r *rig) passesFrom(station uint64, port uint32) {
	r.Helper()
	r.passes(port, from(station), port, from(station))
}

// digests configures the program's digest.
func (r *rig) digests(config *p4v1.DigestEntry_Config) *p4v1.DigestEntry {
	r.Helper()
	e := &p4v1.DigestEntry{DigestId: r.program.digest("learned_t"), Config: config}
	r.write(insert(e))
	return e
}

// learned waits for the next digest list and checks that it has these stations, at port 1.
func (r *rig) learned(stations ...uint64) *p4v1.DigestList {
	r.Helper()
	got := r.primary.next(patience).GetDigest()
	if got == nil {
		r.Fatal("no digest")
	}
	want := &p4v1.DigestList{DigestId: r.program.digest("learned_t"), ListId: got.ListId, Timestamp: got.Timestamp}
	for _, s := range stations {
		want.Data = append(want.Data, &p4v1.P4Data{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{
			Members: []*p4v1.P4Data{bits(s), bits(1)}}}})
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		r.Fatalf("digest list (-want +got):\n%s", diff)
	}
	return got
}

func bits(v uint64) *p4v1.P4Data {
	return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: number(v)}}
}

func testDigestOneSample(r *rig) {
	r.load("learn")
	r.digests(&p4v1.DigestEntry_Config{MaxListSize: 1})
	r.passesFrom(alice, 1)
	first := r.learned(alice)
	r.passesFrom(alice, 1) // reported again: the switch keeps no record
	if again := r.learned(alice); again.ListId == first.ListId {
		r.Errorf("two lists with id %d", first.ListId)
	}
}

// A digest is not repeated while the controller has not acknowledged it.
func testDigestAck(r *rig) {
	r.load("learn")
	r.digests(&p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: int64(time.Hour)})
	r.passesFrom(alice, 1)
	list := r.learned(alice)
	r.passesFrom(alice, 1)
	r.passesFrom(bob, 1)
	r.learned(bob) // with alice not in front of him

	r.primary.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{
		DigestAck: &p4v1.DigestListAck{DigestId: list.DigestId, ListId: list.ListId}}})
	// There is no signal for the arrival of an acknowledgement.
	r.eventually("alice is told again", func() bool {
		r.passesFrom(alice, 1)
		m := r.primary.next(10 * time.Millisecond)
		return m != nil && proto.Equal(m.GetDigest().GetData()[0], list.Data[0])
	})
}

// A digest that is not configured is not sent.
func testDigestDelete(r *rig) {
	r.load("learn")
	if !r.earlyDigests {
		r.passesFrom(bob, 1)
	}
	config := &p4v1.DigestEntry_Config{MaxListSize: 1}
	e := r.digests(config)
	r.passesFrom(alice, 1)
	r.learned(alice)

	r.write(remove(&p4v1.DigestEntry{DigestId: e.DigestId}))
	r.passesFrom(alice, 1)
	time.Sleep(r.settle)
	r.digests(config)
	r.passesFrom(bob, 1)
	r.learned(bob) // with alice not in front of him
}

// Stations arrive in lists of the configured size, or when the timeout is over.
func testDigestList(r *rig) {
	r.load("learn")
	e := r.digests(&p4v1.DigestEntry_Config{MaxListSize: 2, MaxTimeoutNs: int64(time.Hour), AckTimeoutNs: int64(time.Hour)})
	r.passesFrom(alice, 1)
	r.passesFrom(alice, 1)
	r.passesFrom(bob, 1)
	r.learned(alice, bob)

	e.Config = &p4v1.DigestEntry_Config{MaxListSize: 2, MaxTimeoutNs: int64(100 * time.Millisecond)}
	r.write(modify(e))
	r.passesFrom(alice, 1)
	r.learned(alice)
}

// aging is an entry for a station with a TTL.
func (r *rig) aging(station uint64, ttl time.Duration) *p4v1.TableEntry {
	r.Helper()
	p := r.load("learn")
	e := p.entry("stations", exact(station), 0, p.do("NoAction"))
	e.IdleTimeoutNs = int64(ttl)
	return e
}

// idleNotification waits for the next notification, which must name the entry.
func (r *rig) idleNotification(e *p4v1.TableEntry) *p4v1.IdleTimeoutNotification {
	r.Helper()
	got := r.primary.next(patience).GetIdleTimeoutNotification()
	if got == nil {
		r.Fatal("no notification")
	}
	want := &p4v1.IdleTimeoutNotification{Timestamp: got.Timestamp, TableEntry: []*p4v1.TableEntry{
		{TableId: e.TableId, Match: e.Match, IdleTimeoutNs: e.IdleTimeoutNs}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		r.Fatalf("notification (-want +got):\n%s", diff)
	}
	return got
}

// An idle entry is reported, but not while frames hit it, and it is not removed.
func testIdleExpires(r *rig) {
	e := r.aging(alice, r.idle)
	last, longest := time.Now(), time.Duration(0)
	r.write(insert(e))
	for range 16 {
		time.Sleep(r.idle / 8)
		r.passesFrom(alice, 1)
		now := time.Now()
		last, longest = now, max(longest, now.Sub(last))
	}
	// On a very slow machine the hits come too late, and the test proves nothing.
	if n := len(r.primary.messages); n > 0 && longest < r.idle/2 {
		r.Errorf("told %d times while frames hit the entry", n)
	}
	r.idleNotification(e)
	r.reads(&p4v1.TableEntry{TableId: e.TableId, Match: e.Match}, e)
}

// An entry that stays idle is reported again.
func testIdleAgain(r *rig) {
	e := r.aging(alice, r.idle)
	r.write(insert(e))
	first := r.idleNotification(e)
	second := r.idleNotification(e)
	// P4Runtime: "after one more TTL"; half of one allows for a busy machine.
	if after := time.Duration(second.Timestamp - first.Timestamp); after < r.idle/2 && !r.earlyRepeat {
		r.Errorf("told again after %v, want another TTL of %v", after, r.idle)
	}
}

// The TTL reads back as written, and the time since the last hit is returned on request.  The TTL's nanoseconds
// fit 32 bits: BMv2 loses the higher bits and then reports a wrong time.
func testIdleRead(r *rig) {
	e := r.aging(alice, 4*time.Second)
	key := &p4v1.TableEntry{TableId: e.TableId, Match: e.Match}
	r.write(insert(e))
	r.reads(key, e)
	key.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{}
	elapsed := func() time.Duration {
		r.Helper()
		got := r.read(of(key))
		if len(got) != 1 || got[0].GetTableEntry().GetTimeSinceLastHit() == nil {
			r.Fatalf("read %v: %v", key, got)
		}
		return time.Duration(got[0].GetTableEntry().TimeSinceLastHit.ElapsedNs)
	}
	const quiet = 50 * time.Millisecond
	r.eventually("time passes", func() bool { return elapsed() > quiet })
	r.eventually("a hit is noticed", func() bool {
		r.passesFrom(alice, 1)
		return elapsed() < quiet
	})
}

// A new TTL takes effect at once.
func testIdleModify(r *rig) {
	e := r.aging(alice, time.Hour)
	r.write(insert(e))
	if m := r.primary.next(r.idle); m != nil {
		r.Errorf("told %v, want nothing for an hour", m)
	}
	e.IdleTimeoutNs = int64(r.idle)
	r.write(modify(e))
	r.idleNotification(e)
}
