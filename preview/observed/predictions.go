package observed

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// Kept is the number of changes kept, the newest ones.
const Kept = 32

// MaxPredictions bounds the predictions of a change, MaxTraffic the bytes of the description of their
// traffic.
const (
	MaxPredictions = 128
	MaxTraffic     = 1000
)

// Counters is the state of the switches' and hosts' counters at one time.
type Counters struct {
	at       time.Time
	paused   map[class]time.Duration
	drops    uint64 // dropped packets of lossless classes
	headroom uint64 // bytes of headroom: the highest peak of any switch since its start
	ended    map[Sizes]Completions
}

// class is a class of a switch's port.
type class struct {
	port
	class uint32
}

// port is a port of a switch.
type port struct {
	node   string
	number uint32
}

// ReadCounters reads the counters from the switches' status. ended has the hosts' counts of completed flows.
// ReadCounters keeps the map and does not copy it.
func ReadCounters(at time.Time, switches []*pb.SwitchStatus, ended map[Sizes]Completions) Counters {
	c := Counters{at: at, paused: map[class]time.Duration{}, ended: ended}
	for _, s := range switches {
		buffer := s.GetFeatures().GetBuffer()
		for _, of := range buffer.GetClasses() {
			if of.PausedTime != nil {
				c.paused[class{port{s.GetName(), of.GetPort()}, of.GetClass()}] = of.GetPausedTime().AsDuration()
			}
			c.drops += of.GetLosslessDrops()
		}
		held := uint64(0)
		for _, p := range buffer.GetPools() {
			if p.GetPool() == "headroom" || p.GetPool() == "insurance" {
				held += p.GetPeakBytes()
			}
		}
		c.headroom = max(c.headroom, held)
	}
	return c
}

// Fabric has the values that measures need: the number of links, and the scale, which divides completion times.
type Fabric struct {
	Links int
	Scale int64
}

// SizeName returns the suffix of a measure's name for a range of sizes: "_to_10KB" below 10 KB, "_from_1MB" for 1
// MB and more.
func SizeName(s Sizes) string {
	if s.Below > 0 {
		return "_to_" + units.Bytes(s.Below).String()
	}
	return "_from_" + units.Bytes(s.From).String()
}

// flows returns the mean completion time or slowdown of the flows that ended since before. A measure that names
// sizes covers only these. flows returns false if no flow has ended.
func (c Counters) flows(measure string, before Counters, f Fabric) (float64, bool) {
	var sum Completions
	kind, _, bySize := strings.Cut(measure, "_")
	for s, n := range c.ended {
		if !bySize || measure == kind+SizeName(s) {
			sum = sum.Plus(n.Since(before.ended[s]))
		}
	}
	mean := sum.Slowdown / float64(sum.Flows)
	if kind == "fct" {
		mean = float64(sum.FCT) / 1e3 / float64(max(f.Scale, 1)) / float64(sum.Flows)
	}
	return mean, sum.Flows > 0 && (kind == "fct" || kind == "slowdown")
}

// measured returns the measured value of a measure since before, in its unit, and false if there is
// none.
func (c Counters) measured(measure string, before Counters, f Fabric) (float64, bool) {
	elapsed := c.at.Sub(before.at)
	if elapsed <= 0 {
		return 0, false
	}
	longest := map[port]time.Duration{} // pause time of the class that was paused longest
	for of, t := range c.paused {
		if was := before.paused[of]; t >= was { // a lower value means that the switch restarted
			t -= was
		}
		longest[of.port] = max(longest[of.port], t)
	}
	most, sum := time.Duration(0), time.Duration(0)
	for _, t := range longest {
		most, sum = max(most, t), sum+t
	}
	switch measure {
	case "pause_time":
		return 100 * float64(most) / float64(elapsed), len(c.paused) > 0
	case "pause_mean":
		return 100 * float64(sum) / float64(elapsed) / float64(2*max(f.Links, 1)), len(c.paused) > 0
	case "lossless_drops":
		return float64(c.drops - min(before.drops, c.drops)), len(c.paused) > 0
	case "headroom": // the peak since the start: it belongs to this change only if it has risen
		return float64(c.headroom) / 1e3, c.headroom > before.headroom
	}
	return c.flows(measure, before, f)
}

// change is one configuration that was applied.
type change struct {
	generation uint64
	traffic    string
	before     Counters
	fabric     Fabric
	over       bool
	until      time.Time // zero if the end was not observed
	list       []*pb.Prediction
}

// Predictions keeps the predictions of the configurations that callers applied (package preview), and the values
// measured afterwards. Measurements come from the features' status and from hosts' reports; a measure that nothing
// counts has no value. Predictions is safe for concurrent use, and its zero value is ready. A restart of the
// controller empties it.
type Predictions struct {
	mu   sync.Mutex
	list []*change
}

// CheckPredictions returns the wrong field of a request and the allowed values, or "" if all fields are right.
func CheckPredictions(traffic string, list []*pb.Prediction) (field, text string) {
	if len(traffic) > MaxTraffic {
		return "predicted_traffic", fmt.Sprintf("has %d bytes, want at most %d", len(traffic), MaxTraffic)
	}
	if len(list) > MaxPredictions {
		return "predictions", fmt.Sprintf("are %d, want at most %d", len(list), MaxPredictions)
	}
	for _, p := range list {
		if p.GetMeasure() == "" || len(p.GetMeasure()) > 64 || len(p.GetUnit()) > 16 || strings.ContainsAny(p.GetMeasure()+p.GetUnit(), "\n\t\x1b") {
			return "predictions", "have a measure or unit that is no word of at most 64 and 16 bytes"
		}
		for _, v := range []float64{p.GetMean(), p.GetLow(), p.GetHigh()} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return "predictions", "have a value that is no number"
			}
		}
	}
	return "", ""
}

// Applied records that a configuration is in force from now on, with its predictions, possibly none.
// The measurements of the previous one are frozen.
func (l *Predictions) Applied(generation uint64, traffic string, list []*pb.Prediction, now Counters, f Fabric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.list); n > 0 && !l.list[n-1].over {
		if last := l.list[n-1]; last.generation+1 == generation {
			last.score(now)
			last.over, last.until = true, now.at
		} else {
			last.over = true
		}
	}
	if len(list) == 0 {
		return
	}
	for _, p := range list {
		p.Measured = nil
	}
	l.list = append(l.list, &change{generation: generation, traffic: traffic, before: now, fabric: f, list: list})
	l.list = l.list[max(0, len(l.list)-Kept):]
}

// List returns the changes, oldest first, with their measurements until now or until they ended. generation is the
// configuration in force. All other changes have ended, no matter who replaced them.
func (l *Predictions) List(generation uint64, now Counters) (out []*pb.PredictedChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		if c.generation != generation {
			c.over = true
		}
		if !c.over {
			c.score(now)
		}
		p := &pb.PredictedChange{Generation: c.generation, Traffic: c.traffic, Applied: timestamppb.New(c.before.at), Over: c.over}
		if !c.until.IsZero() {
			p.Until = timestamppb.New(c.until)
		}
		for _, one := range c.list {
			p.Predictions = append(p.Predictions, proto.CloneOf(one))
		}
		out = append(out, p)
	}
	return out
}

// score sets the measured value of each prediction.
func (c *change) score(now Counters) {
	for _, p := range c.list {
		if v, ok := now.measured(p.GetMeasure(), c.before, c.fabric); ok {
			p.Measured = &v
		}
	}
}
