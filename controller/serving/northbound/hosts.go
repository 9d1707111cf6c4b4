package northbound

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/preview/observed"
)

var errSuperseded = status.Error(codes.Aborted, "another agent attached under the same host name")

// DefaultLease is how long a host's flows keep their weights while the host is not attached. It is longer than a
// controller or a host takes to restart.
const DefaultLease = time.Minute

// hostTable knows which hosts are attached and what each last reported. mu guards both. A report in the table is
// never changed.
type hostTable struct {
	reports *events.Bus[*pb.HostReport]
	lease   time.Duration
	expire  func(host string) // writes to the store, so it is not called under mu; the host cannot attach meanwhile

	mu     sync.Mutex
	hosts  map[string]*attachment
	absent map[string]*time.Timer   // leases of hosts that are not attached
	ending map[string]chan struct{} // hosts for which expire is running; closed when it returns
	closed bool                     // no lease ends any more
}

// attachment is one Attach stream.
type attachment struct {
	cancel context.CancelCauseFunc
	report *pb.HostReport
}

// newHostTable returns a table of hosts that are all absent.
func newHostTable(lease time.Duration, absent []string, expire func(host string)) *hostTable {
	t := &hostTable{
		reports: events.NewSizedBus(func(r *pb.HostReport) int { return proto.Size(r) }), lease: lease, expire: expire,
		hosts: map[string]*attachment{}, absent: map[string]*time.Timer{}, ending: map[string]chan struct{}{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, host := range absent {
		t.startLease(host)
	}
	return t
}

// startLease begins the lease of a host that is not attached. The caller holds mu.
func (t *hostTable) startLease(host string) {
	if t.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(t.lease, func() {
		t.mu.Lock()
		over := t.absent[host] == timer
		done := make(chan struct{})
		if over {
			delete(t.absent, host)
			t.ending[host] = done
		}
		t.mu.Unlock()
		if !over {
			return
		}
		t.expire(host)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.ending, host)
		close(done)
	})
	t.absent[host] = timer
}

// close ends all leases without calling expire.
func (t *hostTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, timer := range t.absent {
		timer.Stop()
	}
	clear(t.absent)
}

// attach makes a the host's stream and ends the previous one: after a broken connection the agent may return before
// the old stream is known to be dead. If the host's lease has just ended, it waits until expire has finished, at
// most until ctx ends.
func (t *hostTable) attach(ctx context.Context, host string, a *attachment) error {
	t.mu.Lock()
	for t.ending[host] != nil {
		done := t.ending[host]
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	if old := t.hosts[host]; old != nil {
		old.cancel(errSuperseded)
	}
	if timer := t.absent[host]; timer != nil {
		timer.Stop()
		delete(t.absent, host)
	}
	t.hosts[host] = a
	return nil
}

// report keeps a report, unless the stream was superseded.
func (t *hostTable) report(host string, a *attachment, r *pb.HostReport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[host] == a {
		a.report = r
		t.reports.Publish(r)
	}
}

// detach makes a host absent if a is still its stream, and reports whether it was.
func (t *hostTable) detach(host string, a *attachment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[host] != a {
		return false
	}
	delete(t.hosts, host)
	t.startLease(host)
	t.reports.Publish(&pb.HostReport{Host: host, Detached: true})
	return true
}

// list returns the last report of each attached host, ordered by name.
func (t *hostTable) list() []*pb.HostReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listLocked()
}

func (t *hostTable) listLocked() []*pb.HostReport {
	var out []*pb.HostReport
	for _, name := range slices.Sorted(maps.Keys(t.hosts)) {
		if r := t.hosts[name].report; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// follow returns the list and a subscription to every report after it.
func (t *hostTable) follow() ([]*pb.HostReport, *events.Subscription[*pb.HostReport]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listLocked(), t.reports.Subscribe(events.Options[*pb.HostReport]{})
}

// GetTraffic names hosts; traffic to other addresses is left out.
func (s *hostService) GetTraffic(context.Context, *pb.GetTrafficRequest) (*pb.GetTrafficResponse, error) {
	names := map[netip.Addr]string{}
	for _, h := range s.backend.Fabric().Hosts {
		for _, ip := range h.Addresses() {
			names[ip] = h.GetName()
		}
	}
	t := s.observed.Traffic()
	r := &pb.GetTrafficResponse{Now: timestamppb.New(time.Now())}
	if !t.Since.IsZero() {
		r.Since = timestamppb.New(t.Since)
	}
	r.Pairs = pairsOf(t.Pairs, names)
	for _, f := range t.FanIns {
		if names[f.Dst] != "" {
			r.FanIns = append(r.FanIns, &pb.FanIn{Dst: names[f.Dst], Degree: uint32(f.Degree)})
		}
	}
	for _, c := range s.backend.Counted() {
		h := &pb.CountedHost{Host: c.Host, Switch: c.Switch, Pairs: pairsOf(c.Pairs, names), FanIn: uint32(c.FanIn)}
		if !c.Since.IsZero() {
			h.Since = timestamppb.New(c.Since)
		}
		r.Counted = append(r.Counted, h)
	}
	return r, nil
}

// pairsOf returns the pairs of hosts, by their names.
func pairsOf(list []observed.Pair, names map[netip.Addr]string) (out []*pb.TrafficPair) {
	for _, p := range list {
		if names[p.Src] == "" || names[p.Dst] == "" {
			continue
		}
		out = append(out, &pb.TrafficPair{
			Src: names[p.Src], Dst: names[p.Dst], Bytes: p.Bytes, Begun: p.Begun, Ended: p.Ended, EndedBytes: p.EndedBytes, LargestBytes: p.Largest,
			Running: uint32(p.Running), Weight: p.Weight, VirtualPriority: p.Priority, MaxQd: p.MaxQD,
			RunningBytes: p.RunningBytes, RunningBps: 8 * p.RunningRate,
		})
	}
	return out
}
