package embedded

import (
	"context"
	"time"

	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/units"
)

// wait is a test's for a frame, or for time to pass.
type wait struct {
	frame bool
	port  uint32
	most  units.Time
	end   chan outcome
}

type outcome struct {
	frame target.Frame
	ok    bool
}

// StartPaused starts the switch as Start does, but with a clock that stands unless the test is in
// Receive or Sleep, and runs as fast as it can there: what a test says of times holds however late
// the machine is. Until then the test waits for all that it has sent in by P4Runtime.
func StartPaused() (*Switch, error) {
	return start(make(chan wait))
}

// drive runs the loop until ctx ends.
func (s *Switch) drive(ctx context.Context) error {
	look := time.NewTicker(200 * time.Microsecond) // for what P4Runtime has posted
	defer look.Stop()
	for {
		s.loop.RunUntil(s.loop.Now())
		select {
		case w := <-s.waits:
			w.end <- s.serve(ctx, w)
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// serve lets time pass until a wait ends.
func (s *Switch) serve(ctx context.Context, w wait) outcome {
	const step = units.Millisecond
	for until := s.loop.Now() + w.most; ctx.Err() == nil; s.loop.RunUntil(min(s.loop.Now()+step, until)) {
		s.loop.RunUntil(s.loop.Now())
		if w.frame {
			if f, ok := s.inbox.Take(w.port, 0); ok {
				return outcome{f, true}
			}
		}
		if s.loop.Now() >= until {
			break
		}
	}
	return outcome{}
}

// await has the loop serve a wait.
func (s *Switch) await(w wait) (target.Frame, bool) {
	w.end = make(chan outcome, 1)
	s.waits <- w
	o := <-w.end
	return o.frame, o.ok
}

// Now implements target.Timed.
func (s *Switch) Now() time.Duration { return s.loop.Time().Duration() }

// Sleep implements target.Timed.
func (s *Switch) Sleep(d time.Duration) {
	if s.waits == nil {
		time.Sleep(d)
		return
	}
	s.await(wait{most: units.FromDuration(d)})
}
