package p4rt

import (
	"iter"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
)

// responseBytes bounds a response with more than one entity. It is well below the 4 MB that
// clients accept by default, and large enough that there are few responses.
const responseBytes = 64 << 10

// entitiesField is the field number of ReadResponse.entities.
const entitiesField = 1

// Read streams the entities that the requests select. If some requests fail it still answers the
// others, and the status is UNKNOWN with one p4.Error per request.
//
// A Read sees each write wholly or not at all (specification, "Parallelism of Read and Write
// Requests"). It holds no lock between two responses, so a slow client blocks no writer. Each
// response is built right before it is sent. A write that arrives in between first builds the
// remaining responses. A response on the stream is a wire.Encoded.
func (s *Server) Read(req *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	if err := s.checkDevice(req.DeviceId); err != nil {
		return err
	}
	sc, err := s.readScope(req.Role)
	if err != nil {
		return err
	}
	r, err := s.beginRead(req.Entities, sc, statusLimit(stream.Context()))
	if err != nil {
		return err
	}
	defer s.endRead(r)
	for {
		encoded, ok := s.nextResponse(r)
		if !ok {
			return r.err
		}
		if err := stream.SendMsg(encoded); err != nil {
			return err
		}
	}
}

// reading is a Read in progress. Server.mu guards it: the Read's own goroutine holds the lock for
// reading, a writer holds it for writing.
type reading struct {
	next func() (wire.Encoded, bool)
	stop func()
	made []wire.Encoded // responses that a writer has built; their bytes count in the budget
	err  error          // set after the last response
}

func (s *Server) beginRead(reqs []*p4v1.Entity, sc *scope, limit int) (*reading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.target
	if l == nil {
		return nil, errNoPipeline
	}
	r := &reading{}
	r.next, r.stop = iter.Pull(func(yield func(wire.Encoded) bool) { r.err = l.responses(reqs, sc, limit, yield) })
	s.readingsMu.Lock()
	defer s.readingsMu.Unlock()
	s.readings[r] = true
	return r, nil
}

func (s *Server) endRead(r *reading) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.readingsMu.Lock()
	defer s.readingsMu.Unlock()
	r.stop()
	for _, encoded := range r.made {
		s.opts.Budget.Release(int64(len(encoded)))
	}
	delete(s.readings, r)
}

func (s *Server) nextResponse(r *reading) (wire.Encoded, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(r.made) == 0 {
		return r.next()
	}
	encoded := r.made[0]
	r.made = r.made[1:]
	s.opts.Budget.Release(int64(len(encoded)))
	return encoded, true
}

// finishReads builds the remaining responses of all reads in progress, so that these do not see the changes that the
// caller is about to write. The caller holds mu. If the budget has no room for a read's responses, the read ends with
// an error.
func (s *Server) finishReads() {
	for r := range s.readings {
		for encoded, ok := r.next(); ok; encoded, ok = r.next() {
			if !s.opts.Budget.Take(int64(len(encoded)), 2) {
				r.stop()
				r.err = clients.Full("a read that a write came into")
				break
			}
			r.made = append(r.made, encoded)
		}
	}
}

// responses yields the encoded responses to a read until yield returns false. limit bounds the
// status in bytes.
func (l *live) responses(reqs []*p4v1.Entity, sc *scope, limit int, yield func(wire.Encoded) bool) error {
	var response wire.Encoded
	var failed []error
	var broken error
	more := true
	for i, req := range reqs {
		err := l.state.Read(req, func(f entity.Found) {
			if !more || broken != nil || !sc.allows(l.schema, f.Object()) {
				return
			}
			n := f.Size()
			if len(response) > 0 && len(response)+n > responseBytes {
				more = yield(response)
				response = make([]byte, 0, responseBytes+16)
			}
			response = protowire.AppendTag(response, entitiesField, protowire.BytesType)
			response = protowire.AppendVarint(response, uint64(n))
			response, broken = f.Append(response)
		})
		switch {
		case broken != nil:
			return status.Errorf(codes.Internal, "an entity cannot be encoded: %v", broken)
		case err != nil:
			failed = recordError(failed, len(reqs), i, err)
		}
	}
	if more && len(response) > 0 {
		yield(response)
	}
	if failed != nil {
		return batchError("some requests failed", failed, limit)
	}
	return nil
}

// readScope returns the scope of a read with a role; nil means everything.
func (s *Server) readScope(role string) (*scope, error) {
	s.arbMu.Lock()
	defer s.arbMu.Unlock()
	key := arbitration.Key(role, 0)
	if !s.arb.KnowsRole(key) {
		return nil, status.Errorf(codes.NotFound, "role %v is not known", key)
	}
	return s.scopes[key], nil
}
