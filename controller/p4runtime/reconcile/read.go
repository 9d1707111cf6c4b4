package reconcile

import (
	"context"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4msg"
)

// Reader reads entities of a switch; an unset id in a request is a wildcard.
type Reader interface {
	Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error)
}

// Read returns the entities on a switch, of all kinds that Headgate reconciles. PI supports no
// filters, reads digests only one by one, and default entries only by table. So each request reads
// one kind, with no wildcard but the id. What the switch cannot read at all (UNIMPLEMENTED) counts
// as absent and is listed in unreadable. externs are the externs of the target to read; a target
// that was started without them has none.
func Read(ctx context.Context, r Reader, p *pipeline.Pipeline, externs ...uint32) (have *State, unreadable []string, err error) {
	have = &State{}
	for _, q := range queries(p, externs) {
		list, err := r.Read(ctx, q.request)
		switch code := codeOf(err); {
		case code == codes.Unimplemented && q.request.GetExternEntry() != nil:
			continue
		case code == codes.Unimplemented:
			unreadable = append(unreadable, q.what)
			continue
		case code == codes.NotFound:
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s: %w", q.what, err)
		}
		for _, e := range list {
			t := e.GetTableEntry()
			if id := t.GetTableId(); p.ConstTable(id) || p.Learned(id) && !t.GetIsDefaultAction() {
				continue
			}
			// A default entry that was never set may come back without an action.
			if t.GetIsDefaultAction() && t.GetAction() == nil {
				continue
			}
			if err := p.Normalize(e); err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", q.what, err)
			}
			if err := have.Add(e); err != nil {
				return nil, nil, fmt.Errorf("reading %s: the switch returned it twice: %s", q.what, p.Describe(e))
			}
		}
	}
	return have, unreadable, nil
}

func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}

type query struct {
	what    string
	request *p4v1.Entity
}

func queries(p *pipeline.Pipeline, externs []uint32) []query {
	list := []query{{"table entries", p4msg.Of(&p4v1.TableEntry{})}}
	for _, id := range p.SettableDefaults() {
		e := &p4v1.TableEntry{TableId: id, IsDefaultAction: true}
		list = append(list, query{"default entries", p4msg.Of(e)})
	}
	if p.HasProfiles() {
		list = append(list,
			query{"action profile members", p4msg.Of(&p4v1.ActionProfileMember{})},
			query{"action profile groups", p4msg.Of(&p4v1.ActionProfileGroup{})},
		)
	}
	list = append(list,
		query{"clone sessions", pipeline.CloneSession(0)},
		query{"multicast groups", pipeline.Multicast(0)},
	)
	for _, id := range p.Digests() {
		list = append(list, query{"digests", p4msg.Of(&p4v1.DigestEntry{DigestId: id})})
	}
	for _, id := range externs {
		list = append(list, query{"externs", pipeline.Extern(id)})
	}
	return list
}
