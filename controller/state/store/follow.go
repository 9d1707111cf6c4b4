package store

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/controller/state/lie"
	"github.com/headgate/headgate/controller/state/outcome"
)

// Follower reads the journal in etcd that another process writes. It is safe for concurrent use.
type Follower struct {
	lead Lead
	turn chan struct{} // whoever holds turn reads; it guards the fields below
	seen Position
	now  *Store
}

// Position is how far a journal was read. The zero Position is before the first line.
type Position struct{ epoch, lines uint64 }

// Before reports whether a state is older than another one.
func (p Position) Before(q Position) bool {
	return p.epoch < q.epoch || p.epoch == q.epoch && p.lines < q.lines
}

// Follow returns a follower that has read nothing yet.
func Follow(client *clientv3.Client) *Follower {
	return &Follower{lead: Lead{Client: client, Lost: func(error) {}}, turn: make(chan struct{}, 1)}
}

// Read returns the state with every change that was acknowledged before the call: it is a linearizable read of
// etcd, which takes a majority. The returned store is read-only, and later calls update it. If there is no journal
// yet, Read returns nil and the zero Position.
func (f *Follower) Read(ctx context.Context) (*Store, Position, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, Position{}, fmt.Errorf("etcd does not say what the state is: %w", ctx.Err())
	}
	defer func() { <-f.turn }()
	if lie.Stale && f.now != nil {
		return f.now, f.seen, nil
	}
	err := f.read(ctx)
	return f.now, f.seen, err
}

// read reads the new changes. The journal in force and its new changes are read at one revision.
func (f *Follower) read(ctx context.Context) error {
	r, err := f.lead.Client.Txn(ctx).Then(clientv3.OpGet(epochKey), f.next()).Commit()
	if err != nil {
		return fmt.Errorf("etcd does not say what the state is: %w", err)
	}
	inForce := r.Responses[0].GetResponseRange()
	if len(inForce.Kvs) == 0 {
		f.now, f.seen = nil, Position{}
		return nil
	}
	epoch, err := number(inForce.Kvs[0].Value)
	if err != nil {
		return err
	}
	if f.now == nil || epoch != f.seen.epoch {
		return f.again(ctx, epoch, r.Header.Revision)
	}
	page := (*clientv3.GetResponse)(r.Responses[1].GetResponseRange())
	for {
		changes := make([]record, len(page.Kvs))
		for i, kv := range page.Kvs {
			var err error
			if changes[i], err = parse(bytes.TrimSuffix(kv.Value, []byte("\n"))); err != nil {
				return &DamagedError{Name: inEtcd, Err: fmt.Errorf("%s: %w", kv.Key, err)}
			}
		}
		f.now.mu.Lock() // not held while waiting for etcd, so that others can read the state
		for _, r := range changes {
			f.now.state.apply(r)
			f.seen.lines++
		}
		f.now.mu.Unlock()
		if !page.More {
			return nil
		}
		next, err := f.lead.Client.Do(ctx, f.next(clientv3.WithRev(r.Header.Revision)))
		if err != nil {
			return fmt.Errorf("etcd does not say what the state is: %w", err)
		}
		page = next.Get()
	}
}

// next returns the request for the lines after those already read.
func (f *Follower) next(opts ...clientv3.OpOption) clientv3.Op {
	opts = append(opts, clientv3.WithRange(clientv3.GetPrefixRangeEnd(linePrefix(f.seen.epoch))), clientv3.WithLimit(pageLines))
	return clientv3.OpGet(lineKey(f.seen.epoch, f.seen.lines), opts...)
}

// again reads a journal from its beginning.
func (f *Follower) again(ctx context.Context, epoch uint64, revision int64) error {
	s := &Store{state: newContents(0), journal: noJournal{outcome.ErrNotLeader}}
	in := f.lead.journal(ctx, epoch, revision)
	if _, _, err := s.state.read(inEtcd, in); err != nil {
		return err
	}
	f.now, f.seen = s, Position{epoch, in.lines}
	return nil
}
