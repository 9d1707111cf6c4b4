package p4rt

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
)

// chunkBytes is the size from which on a response is sent: well below the 4 MB that clients accept
// by default, but large enough that there are few responses.
const chunkBytes = 512 << 10

// Read streams the entities that the requests select. When some requests fail it still answers the
// others, and the status is UNKNOWN with one p4.Error per request.
func (s *Server) Read(req *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	if err := s.checkDevice(req.DeviceId); err != nil {
		return err
	}
	sc, err := s.readScope(req.Role)
	if err != nil {
		return err
	}
	found, failed, err := s.collect(req.Entities, sc)
	if err != nil {
		return err
	}
	// Send without the lock, so that a slow client does not block writers. The entities
	// that were found never change.
	for len(found) > 0 {
		n, size := 0, 0
		for n < len(found) && (n == 0 || size < chunkBytes) {
			size += proto.Size(found[n])
			n++
		}
		if n > 1 && size > chunkBytes {
			n--
		}
		if err := stream.Send(&p4v1.ReadResponse{Entities: found[:n]}); err != nil {
			return err
		}
		found = found[n:]
	}
	if failed != nil {
		return batchError("some requests failed", failed)
	}
	return nil
}

// collect reads all requests against one state of the switch.
func (s *Server) collect(reqs []*p4v1.Entity, sc *scope) (found []*p4v1.Entity, failed []error, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.target
	if l == nil {
		return nil, nil, errNoPipeline
	}
	for i, r := range reqs {
		before := len(found)
		err := l.state.Read(r, func(e *p4v1.Entity) {
			if sc.allows(l.schema, entity.ObjectOf(e)) {
				found = append(found, e)
			}
		})
		if err != nil {
			found = found[:before]
			failed = recordError(failed, len(reqs), i, err)
		}
	}
	return found, failed, nil
}

// readScope returns the scope of a read with a role; nil is everything.
func (s *Server) readScope(role string) (*scope, error) {
	s.arbMu.Lock()
	defer s.arbMu.Unlock()
	key := arbitration.Key(role, 0)
	if !s.arb.KnowsRole(key) {
		return nil, status.Errorf(codes.NotFound, "role %v is not known", key)
	}
	return s.scopes[key], nil
}
