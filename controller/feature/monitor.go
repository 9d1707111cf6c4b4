package feature

import (
	"sync"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/preview/observed"
)

// Monitor is a feature that knows something of each switch which operators want to see, in
// `headgate get status`, in the API and as metrics.
type Monitor interface {
	// Status fills in the feature's field of a switch's status, if it knows something.
	Status(sw string, s *pb.FeatureStatus)
}

// Counter is a feature whose switches count traffic between pairs of addresses.
type Counter interface {
	// Counted returns the traffic that a switch has counted, in bursts; false if it counts nothing.
	Counted(sw string) (observed.Traffic, bool)
}

// LastValue keeps what a feature last knew of each switch. It is safe for concurrent use; a
// value must not be changed once it is in.
type LastValue[T any] struct {
	mu sync.Mutex
	by map[string]T
}

// Set replaces the state of a switch.
func (l *LastValue[T]) Set(sw string, v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]T{}
	}
	l.by[sw] = v
}

// Get returns the state of a switch; false if it is unknown.
func (l *LastValue[T]) Get(sw string) (T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.by[sw]
	return v, ok
}

// Forget forgets a switch.
func (l *LastValue[T]) Forget(sw string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, sw)
}
