package northbound

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/events"
)

var errSuperseded = status.Error(codes.Aborted, "another agent attached under the same host name")

// hostTable knows which hosts are attached and what each last reported. It owns both under
// mu; reports are never changed once they are in it.
type hostTable struct {
	reports *events.Bus[*pb.HostReport]

	mu    sync.Mutex
	hosts map[string]*attachment
}

// attachment is one Attach stream.
type attachment struct {
	cancel context.CancelCauseFunc
	report *pb.HostReport
}

func newHostTable() *hostTable {
	return &hostTable{reports: events.NewBus[*pb.HostReport](0), hosts: map[string]*attachment{}}
}

// attach makes a the host's stream and ends the one before: after a broken connection the
// agent is back before the old stream is found dead.
func (t *hostTable) attach(host string, a *attachment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.hosts[host]; old != nil {
		old.cancel(errSuperseded)
	}
	t.hosts[host] = a
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

func (t *hostTable) detach(host string, a *attachment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[host] == a {
		delete(t.hosts, host)
		t.reports.Publish(&pb.HostReport{Host: host, Detached: true})
	}
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
