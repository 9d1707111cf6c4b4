package digest

import (
	"encoding/binary"
	"math"
	"strconv"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/tests/cost"
	"github.com/headgate/headgate/units"
)

func newCollector(t testing.TB, config *p4v1.DigestEntry_Config) (*Collector, uint32) {
	t.Helper()
	s, err := schema.Parse(p4test.Info())
	if err != nil {
		t.Fatal(err)
	}
	id := p4test.ID("learn_t")
	c := New(s, 1)
	c.Configure(id, config)
	return c, id
}

func message(i uint64) [][]byte {
	return [][]byte{binary.BigEndian.AppendUint64(nil, i)[2:], {0, 1}}
}

func (c *Collector) add(i uint64, now units.Time) *p4v1.DigestList {
	return c.Add("learn_t", message(i), now)
}

func TestListSizeAndTimeout(t *testing.T) {
	c, _ := newCollector(t, &p4v1.DigestEntry_Config{MaxListSize: 3, MaxTimeoutNs: 1000})
	for _, i := range []uint64{1, 1, 2} {
		if c.add(i, 0) != nil {
			t.Fatal("a list came too early")
		}
	}
	if l := c.add(3, 0); len(l.GetData()) != 3 || l.ListId != 1 {
		t.Fatalf("list %v", l)
	}
	if c.add(1, 5*units.Nanosecond) != nil { // without acknowledgements nothing is remembered
		t.Fatal("a list came too early")
	}
	if l := c.Sweep(1004 * units.Nanosecond); l != nil {
		t.Fatalf("list %v came too early", l)
	}
	if l := c.Sweep(1005 * units.Nanosecond); len(l) != 1 || len(l[0].Data) != 1 || l[0].ListId != 2 {
		t.Fatalf("lists %v", l)
	}
	if l := c.Sweep(units.MaxTime); l != nil {
		t.Fatalf("list %v is empty", l)
	}
}

func TestAcknowledgements(t *testing.T) {
	c, id := newCollector(t, &p4v1.DigestEntry_Config{MaxListSize: 1, MaxTimeoutNs: 1, AckTimeoutNs: 100})
	if c.add(1, 0) == nil || c.add(1, 0) != nil || c.add(2, 50*units.Nanosecond) == nil {
		t.Fatal("wrong lists")
	}
	if !c.Ack(id, 99) || c.Ack(5, 1) {
		t.Fatal("wrong acknowledgements")
	}
	if c.add(1, 60*units.Nanosecond) != nil {
		t.Fatal("another list was acknowledged")
	}
	c.Ack(id, 1)
	if c.add(1, 70*units.Nanosecond) == nil {
		t.Fatal("an acknowledged message is still suppressed")
	}
	c.Sweep(150 * units.Nanosecond) // the list with 2 has timed out, the second one with 1 has not
	if c.add(2, 150*units.Nanosecond) == nil || c.add(1, 150*units.Nanosecond) != nil {
		t.Fatal("wrong timeouts")
	}
}

// Without an acknowledgement timeout, the collector waits for no acknowledgements.
func TestAcknowledgementsGivenUp(t *testing.T) {
	c, id := newCollector(t, &p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: math.MaxInt64})
	if c.add(1, 0) == nil || c.add(1, 0) != nil {
		t.Fatal("wrong lists")
	}
	c.Configure(id, &p4v1.DigestEntry_Config{MaxListSize: 1})
	for range 2 {
		if c.add(1, 0) == nil {
			t.Fatal("a message waits for an acknowledgement")
		}
	}
}

func TestConfiguration(t *testing.T) {
	c, id := newCollector(t, nil)
	if c.add(1, 0) != nil || c.Sweep(units.MaxTime) != nil {
		t.Fatal("a digest that is disabled gave a list")
	}
	c.Configure(5, &p4v1.DigestEntry_Config{}) // no digest: nothing happens
	c.Configure(id, &p4v1.DigestEntry_Config{MaxTimeoutNs: math.MaxInt64, AckTimeoutNs: math.MaxInt64})
	for i := range uint64(maxList - 1) {
		if c.add(i, 0) != nil {
			t.Fatal("a list came too early")
		}
	}
	if l := c.add(maxList, 0); len(l.GetData()) != maxList {
		t.Fatalf("a list without limit has %d messages", len(l.GetData()))
	}
	c.Configure(id, nil)
	c.Configure(id, &p4v1.DigestEntry_Config{MaxListSize: 1})
	if c.add(1, 0) == nil {
		t.Fatal("a digest that was disabled remembers")
	}
	if c.Add("other", nil, 0) != nil {
		t.Fatal("an unknown digest gave a list")
	}
}

// Memory stays bounded if nobody acknowledges.
func TestBounds(t *testing.T) {
	c, _ := newCollector(t, &p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: math.MaxInt64})
	for i := range uint64(maxCache + 10) {
		c.add(i, 0)
	}
	if got := c.Dropped(); got != 10 {
		t.Errorf("%d messages dropped, want 10", got)
	}
	if c.Add("learn_t", message(1)[:1], 0) != nil || c.Dropped() != 11 {
		t.Error("a message that lacks a field was not dropped")
	}
}

// TestAcknowledgementCostsTheSame: adding a message and acknowledging its list cost the same
// however many lists wait for acknowledgement.
func TestAcknowledgementCostsTheSame(t *testing.T) {
	cost.Flat(t, func(size int) func() {
		c, id := newCollector(t, &p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: math.MaxInt64})
		n := uint64(0)
		for ; n < uint64(min(size, maxCache-1)); n++ {
			c.add(n, 0)
		}
		return func() {
			n++
			l := c.add(n, 0)
			c.Sweep(units.Second)
			if l == nil || !c.Ack(id, l.GetListId()) {
				panic("not acknowledged")
			}
		}
	})
}

// BenchmarkAcknowledge adds a list of one message and acknowledges it, while n other lists wait for theirs.
func BenchmarkAcknowledge(b *testing.B) {
	for _, size := range []int{1, maxCache - 1} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c, id := newCollector(b, &p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: math.MaxInt64})
			n := uint64(0)
			for ; n < uint64(size); n++ {
				c.add(n, 0)
			}
			for b.Loop() {
				n++
				c.Ack(id, c.add(n, 0).GetListId())
			}
		})
	}
}
