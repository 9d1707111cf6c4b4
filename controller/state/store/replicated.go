package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/controller/state/lie"
	"github.com/headgate/headgate/controller/state/outcome"
)

// Keys in etcd. Numbers have 16 hexadecimal digits, so that keys sort in numerical order.
const (
	epochKey   = "/headgate/epoch"    // the number of the journal in force
	journalKey = "/headgate/journal/" // number of the journal / number of the line
)

const (
	// answerWait is how long a change may take. A leader that cannot write for that long has lost the majority.
	answerWait = 5 * time.Second
	// batchLines and batchBytes bound what is written at once, below etcd's own bounds of 128 and 1.5 MiB.
	batchLines = 100
	batchBytes = 1 << 19
	// pageLines is how many lines are read at once.
	pageLines = 200
)

// Lead is the right to write a journal in etcd.
type Lead struct {
	Client *clientv3.Client
	// Fence is true as long as the lead lasts. etcd evaluates it with each change.
	Fence clientv3.Cmp
	// Lost ends the lead: somebody else has it, or nobody knows whether the last change is in the
	// journal.
	Lost func(error)
	// Term is the number of the lead. The state's own term is added to it: see Store.Term.
	Term uint64
}

// termStep is added to the terms of a cluster that starts from a backup, because its etcd counts from 0 again. The
// old cluster has made fewer than termStep changes after the backup.
const termStep = 1 << 40

// get reads keys. If that fails, the lead ends: etcd's own leader may have changed, or the majority is gone.
func (l Lead) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r, err := l.Client.Get(ctx, key, opts...)
	if err != nil {
		err = fmt.Errorf("etcd does not say what the state is: %w", err)
		l.Lost(err)
	}
	return r, err
}

// OpenReplicated reads the journal in etcd. It creates the journal if there is none. ctx is the lead's.
func OpenReplicated(ctx context.Context, l Lead, o Options) (*Store, error) {
	s := &Store{state: newContents(o.Audit), lead: l.Term}
	j := &replicated{Lead: l, ctx: ctx}
	s.journal = j
	epoch, err := l.get(ctx, epochKey)
	if err != nil {
		return nil, err
	}
	if len(epoch.Kvs) == 0 {
		return s, j.begin(s, o.Restore)
	}
	if j.epoch, err = number(epoch.Kvs[0].Value); err != nil {
		return nil, err
	}
	in := l.journal(ctx, j.epoch, epoch.Header.Revision)
	if _, j.size, err = s.state.read(inEtcd, in); err != nil {
		return nil, err
	}
	j.lines, j.limit = in.lines, 2*j.size+slack
	return s, nil
}

// begin makes the first journal, with the content of a state file if there is one.
func (j *replicated) begin(s *Store, file string) error {
	if file == "" {
		return j.compact(s.state)
	}
	sum, err := digest(file)
	if err != nil {
		return err
	}
	if s.state, _, err = read(file); err != nil {
		return err
	}
	s.state.term += termStep
	return j.compact(s.state, clientv3.OpPut(restoredKey, sum))
}

// inEtcd names the journal in error texts.
const inEtcd = "state in etcd"

// number reads the number of the journal in force.
func number(epoch []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(epoch), 16, 64)
	if err != nil {
		return 0, &DamagedError{Name: inEtcd, Err: fmt.Errorf("%s: %w", epochKey, err)}
	}
	return n, nil
}

// journal reads a journal as it was at a revision.
func (l Lead) journal(ctx context.Context, epoch uint64, revision int64) *pages {
	return &pages{ctx: ctx, lead: l, next: lineKey(epoch, 0), end: clientv3.GetPrefixRangeEnd(linePrefix(epoch)), revision: revision}
}

// replicated is a journal in etcd. The Store's lock guards it.
type replicated struct {
	Lead
	ctx   context.Context
	epoch uint64
	lines uint64
	size  int64 // in bytes
	limit int64 // the size at which it is compacted
}

func linePrefix(epoch uint64) string { return fmt.Sprintf("%s%016x/", journalKey, epoch) }

func lineKey(epoch, line uint64) string { return fmt.Sprintf("%s%016x", linePrefix(epoch), line) }

func (*replicated) close() error { return nil }

// write makes all of the change or nothing, as the leader. If that is not certain, the lead ends.
func (j *replicated) write(ops ...clientv3.Op) error {
	if j.ctx.Err() != nil { // the previous write may still take effect at this place
		return outcome.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(j.ctx, answerWait)
	defer cancel()
	answer, err := j.Client.Txn(ctx).If(j.Fence).Then(ops...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("etcd: %w", err) // etcd refused the change
	case err != nil:
		err = outcome.Unknown(fmt.Errorf("etcd does not answer: %w", err))
		j.Lost(err)
		return err
	case !answer.Succeeded:
		j.Lost(outcome.ErrNotLeader)
		return outcome.ErrNotLeader
	}
	return nil
}

func (j *replicated) append(r record, _ *contents) error {
	text, err := line(r)
	if err != nil {
		return err
	}
	put := clientv3.OpPut(lineKey(j.epoch, j.lines), string(text))
	if lie.Early {
		time.AfterFunc(100*time.Millisecond, func() { _ = j.write(put) })
	} else if err := j.write(put); err != nil {
		return err
	}
	j.lines++
	j.size += int64(len(text))
	return nil
}

func (j *replicated) tidy(state *contents) error {
	if j.size <= j.limit {
		return nil
	}
	j.limit = 2 * j.size
	return j.compact(state)
}

// compact writes the next journal with only the state and puts it in force. It first deletes the remains of an
// earlier leader's unfinished compaction. The operations in also come last.
func (j *replicated) compact(state *contents, also ...clientv3.Op) error {
	next := replicated{Lead: j.Lead, ctx: j.ctx, epoch: j.epoch + 1}
	if err := j.write(clientv3.OpDelete(linePrefix(next.epoch), clientv3.WithPrefix())); err != nil {
		return err
	}
	var batch []clientv3.Op
	bytes := 0
	for _, r := range state.records(lineVersion) {
		text, err := line(r)
		if err != nil {
			return err
		}
		if len(batch) > 0 && (len(batch) == batchLines || bytes+len(text) > batchBytes) {
			if err := j.write(batch...); err != nil {
				return err
			}
			batch, bytes = nil, 0
		}
		batch = append(batch, clientv3.OpPut(lineKey(next.epoch, next.lines), string(text)))
		next.lines++
		next.size += int64(len(text))
		bytes += len(text)
	}
	if err := j.write(batch...); err != nil {
		return err
	}
	also = append(also, clientv3.OpPut(epochKey, strconv.FormatUint(next.epoch, 16)), clientv3.OpDelete(linePrefix(j.epoch), clientv3.WithPrefix()))
	if err := j.write(also...); err != nil {
		return err
	}
	next.limit = 2*next.size + slack
	*j = next
	return nil
}

// pages iterates over the values of a range of keys.
type pages struct {
	ctx       context.Context
	lead      Lead
	next, end string // range that is still to be read; empty at the end
	revision  int64
	text      []byte
	lines     uint64
}

// Read implements io.Reader.
func (p *pages) Read(to []byte) (int, error) {
	for len(p.text) == 0 {
		if p.next == "" {
			return 0, io.EOF
		}
		r, err := p.lead.get(p.ctx, p.next, clientv3.WithRange(p.end), clientv3.WithLimit(pageLines), clientv3.WithRev(p.revision))
		if err != nil {
			return 0, err
		}
		for _, kv := range r.Kvs {
			p.text = append(p.text, kv.Value...)
			p.lines++
			p.next = string(kv.Key) + "\x00"
		}
		if !r.More {
			p.next = ""
		}
	}
	n := copy(to, p.text)
	p.text = p.text[n:]
	return n, nil
}

// restoredKey exists if the first journal began with a state file. Its value is the file's SHA-256.
const restoredKey = "/headgate/restored"

// RestoreError refuses to restore a state file, because the cluster already has a state that did not begin with it.
type RestoreError struct {
	File string
	Has  Summary // the cluster's state
}

// Error names the existing state and the remedy.
func (e *RestoreError) Error() string {
	return fmt.Sprintf("--restore %s: it is refused, as the cluster has a state that did not begin with this file (%v): start the members without --restore to go on with that state; "+
		"to begin with the file, stop all members, empty their folders, or delete /headgate/ in an etcd that others run, and start them with --restore", e.File, e.Has)
}

// CheckRestore returns a *RestoreError if a cluster has a state that did not begin with this state file. A state
// that began with it is accepted, even if it has changed since.
func CheckRestore(ctx context.Context, client *clientv3.Client, file string) error {
	sum, err := digest(file)
	if err != nil {
		return err
	}
	s, _, err := Follow(client).Read(ctx)
	if err != nil || s == nil {
		return err
	}
	began, err := client.Get(ctx, restoredKey)
	if err != nil {
		return fmt.Errorf("etcd does not say what the state is: %w", err)
	}
	if len(began.Kvs) > 0 && string(began.Kvs[0].Value) == sum {
		return nil
	}
	return &RestoreError{file, s.state.summary()}
}

func digest(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("state file: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
