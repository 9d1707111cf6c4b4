package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// stream is one connection. receive owns role, bid and seen; out may be used by everyone.
type stream struct {
	rpc    p4v1.P4RuntimeClient
	client *Client
	out    chan *p4v1.StreamMessageRequest
	name   string
	device uint64
	log    *slog.Logger

	terms Terms
	bid   *p4v1.Uint128
	role  Role
	seen  bool          // an arbitration message came
	late  *p4v1.Uint128 // election id of a higher term that was primary at the switch; nil when none is known
}

// outQueue is how many messages may wait for the stream.
const outQueue = 1024

func newStream(conn *grpc.ClientConn, o Options) *stream {
	rpc := p4v1.NewP4RuntimeClient(conn)
	s := &stream{
		rpc: rpc, out: make(chan *p4v1.StreamMessageRequest, outQueue),
		name: o.Name, device: o.DeviceID, log: o.Log, terms: o.Terms, bid: &p4v1.Uint128{Low: o.ElectionID},
	}
	if o.Terms != nil {
		s.bid.High = o.Terms.Term()
	}
	s.client = newClient(rpc, o.DeviceID, s.bid, o.BatchSize)
	s.out <- s.arbitration()
	return s
}

func (s *stream) arbitration() *p4v1.StreamMessageRequest {
	return &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: s.device, ElectionId: s.bid},
	}}
}

func (s *stream) queue(m *p4v1.StreamMessageRequest) error {
	select {
	case s.out <- m:
		return nil
	default:
		return ErrBusy
	}
}

// send is the only writer of the stream. It ends the stream when leave is closed. It returns nil when the context
// ends. It also returns nil when the stream breaks, because receive then returns the reason.
func (s *stream) send(ctx context.Context, leave <-chan struct{}, rpc p4v1.P4Runtime_StreamChannelClient) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-leave:
			_ = rpc.CloseSend() // CloseSend always returns nil
			<-ctx.Done()
			return nil
		case m := <-s.out:
			if err := rpc.Send(m); err != nil {
				<-ctx.Done()
				return nil
			}
		}
	}
}

// heartbeat asks a switch that was quiet from one heartbeat to the next for the API version, which any switch
// answers, be it with an error.
func (s *stream) heartbeat(ctx context.Context, every time.Duration) error {
	var asks sync.WaitGroup
	defer asks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &s.client.keepalive
	for {
		due := Beat(time.Now(), every)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
		switch ask, dead := k.tick(time.Since(due), every); {
		case dead:
			return fmt.Errorf("the switch has not answered for %v", maxMissed*every)
		case ask:
			asks.Go(func() {
				_, _ = s.rpc.Capabilities(ctx, &p4v1.CapabilitiesRequest{})
				k.answered()
			})
		}
	}
}

func (s *stream) receive(rpc p4v1.P4Runtime_StreamChannelClient, h Handler) error {
	for {
		m, err := rpc.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the switch closed the stream")
		case err != nil && !s.seen && isCode(err, codes.InvalidArgument):
			return &refusedError{id: s.bid, err: err}
		case err != nil:
			return fmt.Errorf("stream: %w", plain(err))
		}
		s.client.keepalive.heard()
		switch x := m.GetUpdate().(type) {
		case *p4v1.StreamMessageResponse_Arbitration:
			if err := s.arbitrate(x.Arbitration, h); err != nil {
				return err
			}
		case *p4v1.StreamMessageResponse_Packet, *p4v1.StreamMessageResponse_IdleTimeoutNotification:
			h.Message(m)
		case *p4v1.StreamMessageResponse_Digest:
			h.Message(m)
			s.ack(x.Digest)
		case *p4v1.StreamMessageResponse_Error:
			e := x.Error
			if e.GetPacketOut() != nil && codes.Code(uint32(e.GetCanonicalCode())) == codes.FailedPrecondition {
				h.PacketRefused(errors.New(e.GetMessage()))
				continue
			}
			s.log.Warn("the switch refused a stream message", "switch", s.name,
				"code", codes.Code(uint32(e.GetCanonicalCode())).String(), "message", e.GetMessage())
		}
	}
}

// ack acknowledges a digest list to the switch; when the queue is full the switch's
// acknowledgement timeout makes it send again.
func (s *stream) ack(d *p4v1.DigestList) {
	err := s.queue(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{
		DigestAck: &p4v1.DigestListAck{DigestId: d.GetDigestId(), ListId: d.GetListId()},
	}})
	if err != nil {
		s.log.Warn("digest not acknowledged", "switch", s.name, "err", err)
	}
}

// arbitrate handles a MasterArbitrationUpdate (specification, "Client arbitration and controller
// replication"). OK means primary. ALREADY_EXISTS means that another controller is primary. NOT_FOUND
// means that there is no primary, because the switch has seen the id in the message and ours is lower.
// Announcements repeat with every change among the controllers.
func (s *stream) arbitrate(a *p4v1.MasterArbitrationUpdate, h Handler) error {
	s.seen = true
	role, why := Backup, error(nil)
	if id := a.GetElectionId(); s.terms != nil && id.GetHigh() > s.bid.GetHigh() {
		s.late = id
	}
	switch code := codes.Code(uint32(a.GetStatus().GetCode())); {
	case code == codes.OK && s.late == nil:
		role = Primary
	case code == codes.AlreadyExists:
		why = &HeldError{Election: idText(a.GetElectionId())}
	case code == codes.NotFound, code == codes.OK: // OK: BMv2 makes the next best primary when one leaves
		if why = s.outbid(a.GetElectionId()); why == nil {
			why = fmt.Errorf("there is no primary; bidding above %s", idText(a.GetElectionId()))
			if err := s.queue(s.arbitration()); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("arbitration: %v: %s", code, a.GetStatus().GetMessage())
	}
	if role == Primary && s.role == Primary {
		return nil // only another backup came or went
	}
	s.role = role
	h.Role(role, why)
	return nil
}

// HeldError is the reason why a session is a backup while another controller is primary.
type HeldError struct{ Election string }

func (e *HeldError) Error() string {
	return "another controller is primary, with election id " + e.Election
}

// outbid raises the bid above an id that no controller uses any more. An id of a higher term may come from a later
// leader: then this controller no longer leads, and RaiseTerm fails. Or it comes from a leader whose changes were
// lost, because the cluster was made anew or restored from an older backup.
func (s *stream) outbid(id *p4v1.Uint128) error {
	switch {
	case s.late != nil:
		term, err := s.terms.RaiseTerm(s.late.GetHigh())
		if err != nil {
			return fmt.Errorf("another leader had the switch, with election id %s of a higher term: %w", idText(s.late), err)
		}
		s.log.Warn("the switch knows a higher term than this cluster had: the next terms are above that", "switch", s.name, "known", s.late.GetHigh(), "term", term)
		s.bid, s.late = &p4v1.Uint128{High: term, Low: s.bid.GetLow()}, nil
	case !less(id, s.bid):
		s.bid = next(id)
	}
	s.client.election.Store(s.bid)
	return nil
}

func less(a, b *p4v1.Uint128) bool {
	return a.GetHigh() < b.GetHigh() || a.GetHigh() == b.GetHigh() && a.GetLow() < b.GetLow()
}

func next(id *p4v1.Uint128) *p4v1.Uint128 {
	n := &p4v1.Uint128{High: id.GetHigh(), Low: id.GetLow() + 1}
	if n.Low == 0 {
		n.High++
	}
	return n
}

func idText(id *p4v1.Uint128) string {
	if id.GetHigh() == 0 {
		return fmt.Sprint(id.GetLow())
	}
	return fmt.Sprintf("%d·2^64+%d", id.GetHigh(), id.GetLow())
}

// keepalive distinguishes a dead switch from a slow or busy one. It measures silence by the number of heartbeats that
// came in time, not by the clock, because a controller that stalled, or is short of processor time, received no
// messages meanwhile. Only one goroutine calls tick; any may call the other methods.
type keepalive struct {
	alive  atomic.Bool // the switch has said something since the last heartbeat
	asked  atomic.Bool // the switch owes an answer
	missed int         // heartbeats in a row without a message
}

const (
	// maxMissed is how many heartbeats a switch that was asked may stay silent. A switch that compiles a program, or
	// has other work, is slow, and a new session would make it slower still.
	maxMissed = 10
	// maxUnacknowledged is how many heartbeats the switch's machine may acknowledge nothing. Then TCP considers the
	// machine, or the path to it, dead.
	maxUnacknowledged = 3
	// tolerance is how late a heartbeat may be and still count; a tenth of the interval if that is more.
	tolerance = 100 * time.Millisecond
)

// heard notes that something came from the switch.
func (k *keepalive) heard() { k.alive.Store(true) }

// answered notes that the switch has answered.
func (k *keepalive) answered() {
	k.asked.Store(false)
	k.heard()
}

// tick takes a heartbeat's lateness. It reports whether to ask the switch for a sign of life, and
// whether the switch is dead.
func (k *keepalive) tick(late, every time.Duration) (ask, dead bool) {
	switch {
	case k.alive.Swap(false):
		k.missed = 0
		return false, false
	case late < max(every/10, tolerance):
		k.missed++
	}
	return k.missed <= maxMissed && k.asked.CompareAndSwap(false, true), k.missed > maxMissed
}
