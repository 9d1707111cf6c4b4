package p4rt

import (
	"context"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
	"github.com/headgate/headgate/tests/lag"
)

// receiver takes the responses of a read, as they look on the client's side, one by one.
type receiver struct {
	p4v1.P4Runtime_ReadServer
	t    *testing.T
	next func(n, size int, entities []*p4v1.Entity)
	n    int
}

func (r *receiver) Context() context.Context { return r.t.Context() }

func (r *receiver) SendMsg(m any) error {
	b := m.(wire.Encoded)
	var got p4v1.ReadResponse
	if err := proto.Unmarshal(b, &got); err != nil {
		r.t.Fatal(err)
	}
	r.n++
	r.next(r.n, len(b), got.Entities)
	return nil
}

// filled is a server with n entries in l2, from 0 on.
func filled(t *testing.T, n int) (*Server, func(...*p4v1.Update)) {
	s, _ := quiet(t)
	write := func(us ...*p4v1.Update) {
		t.Helper()
		if _, err := s.Write(context.Background(), &p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1), Updates: us}); err != nil {
			t.Fatal(err, details(t, err))
		}
	}
	var us []*p4v1.Update
	for i := range uint64(n) {
		us = append(us, p4rtmsg.Insert(l2(i, 1)))
	}
	write(us...)
	return s, write
}

var everything = &p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{
	p4rtmsg.Entity(&p4v1.TableEntry{TableId: p4test.ID("l2"), TimeSinceLastHit: &p4v1.TableEntry_IdleTimeout{}}),
}}

func dst(e *p4v1.Entity) (v uint64) {
	for _, b := range e.GetTableEntry().Match[0].GetExact().Value {
		v = v<<8 | uint64(b)
	}
	return v
}

// TestEntryMemory bounds the memory of an entry with its direct counter and the time of its last hit: a thousand
// switches with ten thousand entries fit into one machine.
func TestEntryMemory(t *testing.T) {
	const entries, most = 20000, 500 // bytes
	filled(t, 1)                     // what all servers share
	held := lag.Held(t, func() any {
		s, _ := filled(t, entries)
		return s
	})
	if got := held / entries; got > most {
		t.Errorf("an entry takes %.0f bytes, want at most %d", got, most)
	} else {
		t.Logf("an entry takes %.0f bytes", got)
	}
}

// A read holds one response in memory and not the whole table. Its responses are built one by one.
func TestReadMemory(t *testing.T) {
	const entries, most = 20000, 2 << 20 // the messages of all entries take some 10 MB
	s, _ := filled(t, entries)
	before, read := lag.Heap(), 0
	err := s.Read(everything, &receiver{t: t, next: func(n, size int, entities []*p4v1.Entity) {
		read += len(entities)
		if size > responseBytes+1024 {
			t.Errorf("response %d has %d bytes, want at most about %d", n, size, responseBytes)
		}
		if now := lag.Heap(); now > before+most {
			t.Errorf("at response %d, with %d entries read, the heap is larger by %d bytes, want at most %d", n, read, now-before, most)
		}
	}})
	if err != nil || read != entries {
		t.Errorf("read %d entries of %d, %v", read, entries, err)
	}
}

// Writes continue while a client reads slowly. The read sees none of them, in entities that it has
// returned or in others.
func TestReadBesideWrites(t *testing.T) {
	const entries = 4000
	s, write := filled(t, entries)
	read := map[uint64]bool{}
	err := s.Read(everything, &receiver{t: t, next: func(n, _ int, entities []*p4v1.Entity) {
		for _, e := range entities {
			v := dst(e)
			if read[v] || v >= entries || e.GetTableEntry().Action.GetAction().Params[0].Value[0] != 1 {
				t.Fatalf("response %d has %v, which was read or written since the read began", n, e)
			}
			read[v] = true
		}
		if n == 2 {
			for i := range uint64(500) {
				write(p4rtmsg.Delete(l2(i, 1)), p4rtmsg.Delete(l2(entries-1-i, 1)), p4rtmsg.Insert(l2(entries+i, 1)), p4rtmsg.Modify(l2(entries/2+i, 2)))
			}
		}
	}})
	if err != nil || len(read) != entries {
		t.Errorf("read %d entries of %d, %v", len(read), entries, err)
	}
	if len(s.readings) != 0 {
		t.Errorf("%d reads are in progress, want none", len(s.readings))
	}
}

// TestReadsOfSlowClients: the server's budget bounds the bytes of the responses that a write
// builds for reads in progress.
func TestReadsOfSlowClients(t *testing.T) {
	const reads, most = 40, 512 << 10
	s, write := filled(t, 1000)
	s.opts.Budget = clients.New(most)
	var list []*reading
	for range reads {
		r, err := s.beginRead(everything.Entities, nil, largeStatus)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	write(p4rtmsg.Insert(l2(5000, 1)))
	if got := s.opts.Budget.Stats().Bytes; got > most || got < most/4 {
		t.Errorf("%d bytes wait for reads, want up to %d", got, most)
	}
	refused := 0
	for _, r := range list {
		for ok := true; ok; {
			_, ok = s.nextResponse(r)
		}
		if status.Code(r.err) == codes.ResourceExhausted {
			refused++
		} else if r.err != nil {
			t.Error(r.err)
		}
		s.endRead(r)
	}
	if got := s.opts.Budget.Stats().Bytes; got != 0 || refused == 0 || refused == reads {
		t.Errorf("%d of %d reads were refused, %d bytes are left", refused, reads, got)
	}
}
