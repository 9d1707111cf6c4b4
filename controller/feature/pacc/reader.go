package pacc

import (
	"context"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/preview/observed"
)

// reader reads the counters of flows of a switch that runs its loop itself.
type reader struct {
	sw    *overP4Runtime
	meter *cnpgen.Meter
	table *observed.Table
	buf   []cnpgen.Counters
	due   time.Time
}

var _ feature.Counter = (*feat)(nil)

// Counted implements feature.Counter: packets of the queue that PACC watches, false until counters were read.
func (f *feat) Counted(sw string) (observed.Traffic, bool) {
	t, ok := f.tables.Get(sw)
	if !ok {
		return observed.Traffic{}, false
	}
	traffic := t.Traffic()
	return traffic, time.Since(traffic.Read) < max(stale, 3*t.Together)
}

// stale is for how long at least counters say something that are not read any more, of a switch that does not answer.
const stale = time.Minute

// readEvery is how often the counters are read, as often as hosts report; readShare is how much longer they are not read than it took.
const (
	readEvery = observed.Together
	readShare = 50
)

// Interval implements feature.Loop.
func (*reader) Interval() time.Duration { return readEvery }

// Tick implements feature.Loop.
func (r *reader) Tick(ctx context.Context, now time.Time) (err error) {
	if now.Before(r.due) {
		return nil
	}
	r.sw.ctx = ctx
	began := time.Now()
	r.buf, err = r.sw.Counters(r.buf[:0])
	r.due = now.Add(readShare * time.Since(began))
	if err == nil {
		r.table.Counted(now, r.meter.Read(r.buf))
	}
	return err
}

// Receive implements feature.Loop.
func (*reader) Receive(time.Time, feature.Message) {}
