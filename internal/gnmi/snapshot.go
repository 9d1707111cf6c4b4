package gnmi

import (
	"time"

	"github.com/headgate/headgate/internal/clients"
)

// What requests cost, of the budget that all clients of the process share.
const (
	valueBytes     = 256 // a value of a snapshot
	updateBytes    = 1024
	selectionBytes = 128 // a leaf that a path selects
)

// share is the greatest age of a snapshot that one stream of samples takes from another.
const share = minInterval / 2

// snapshot is a state at a time. Streams share it, and nobody changes it. It takes room in the budget until the last
// one has released it.
type snapshot struct {
	key    string
	at     time.Time // no later than any of it
	states []State
	values map[place]any
	bytes  int64
	refs   int // guarded by server.mu
}

// snapshot returns what is known of a list's target, as of later than after.
func (s *server) snapshot(key, target string, w Wants, after time.Time) (*snapshot, error) {
	s.mu.Lock() // one at a time: others that wait want the same
	defer s.mu.Unlock()
	if have := s.recent[key]; have != nil && have.at.After(after) {
		have.refs++
		return have, nil
	}
	n := &snapshot{key: key, at: time.Now(), refs: 1}
	n.states, _ = s.states(target, w) // a target may have left since
	for _, state := range n.states {
		n.bytes += valueBytes * int64(len(state.Values))
	}
	if !s.clients().Take(n.bytes, 2) {
		return nil, clients.Full("subscribe")
	}
	n.values = make(map[place]any, n.bytes/valueBytes)
	for _, state := range n.states {
		for _, v := range state.Values {
			n.values[place{state.Target, v.Leaf, v.Of}] = v.Is
		}
	}
	if s.recent == nil {
		s.recent = map[string]*snapshot{}
	}
	s.recent[key] = n
	return n, nil
}

// release ends a use of a snapshot; nil is none.
func (s *server) release(n *snapshot) {
	if n == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.refs--; n.refs > 0 {
		return
	}
	s.clients().Release(n.bytes)
	if s.recent[n.key] == n {
		delete(s.recent, n.key)
	}
}

// keep is one more use of a snapshot.
func (s *server) keep(n *snapshot) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.refs++
	return n
}

// value returns what a leaf of a target was; false for nothing, as of no snapshot.
func (n *snapshot) value(target string, v Value) (is any, ok bool) {
	if n == nil {
		return nil, false
	}
	is, ok = n.values[place{target, v.Leaf, v.Of}]
	return is, ok
}
