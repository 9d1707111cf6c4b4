package arbitration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

const device = 7

// step is one event and what must come of it. Notifications are written
// "client:STATUS/highest election id" in the order they are sent.
type step struct {
	client   Client
	gone     bool   // the stream ends, instead of an update
	device   uint64 // 0 means the right one
	role     string
	config   string // type URL; "" is unset
	election string // "" is unset, "high.low" otherwise
	fails    codes.Code
	told     string
}

func TestArbitration(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"device id must match", []step{
			{client: 1, device: 8, election: "0.1", fails: codes.NotFound},
			{client: 2, election: "0.1", told: "2:OK/0.1"},
		}},
		{"device id cannot change on a stream", []step{
			{client: 1, election: "0.1", told: "1:OK/0.1"},
			{client: 1, device: 8, election: "0.1", fails: codes.FailedPrecondition},
		}},
		{"role cannot change on a stream", []step{
			{client: 1, role: "a", election: "0.1", told: "1:OK/0.1"},
			{client: 1, role: "b", election: "0.1", fails: codes.FailedPrecondition},
			{client: 1, election: "0.1", fails: codes.FailedPrecondition},
		}},
		{"no election id is always backup", []step{
			{client: 1, told: "1:NotFound/-"},
			{client: 2, election: "0.5", told: "1:AlreadyExists/0.5 2:OK/0.5"},
			{client: 3, told: "3:AlreadyExists/0.5"},
		}},
		{"an election id of zero is an id, unlike an unset one", []step{
			{client: 1, election: "0.0", told: "1:OK/0.0"},
			{client: 2, election: "0.0", fails: codes.InvalidArgument},
			{client: 2, election: "0.1", told: "1:AlreadyExists/0.1 2:OK/0.1"},
		}},
		{"the high half counts first", []step{
			{client: 1, election: "1.0", told: "1:OK/1.0"},
			{client: 2, election: "0.18446744073709551615", told: "2:AlreadyExists/1.0"},
			{client: 3, election: "1.1", told: "1:AlreadyExists/1.1 2:AlreadyExists/1.1 3:OK/1.1"},
		}},
		{"a lower id is a backup and only it is told", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
		}},
		{"a higher id takes over and everyone is told, the primary last", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
			{client: 3, election: "0.3", told: "1:AlreadyExists/0.3 2:AlreadyExists/0.3 3:OK/0.3"},
		}},
		{"when the primary leaves nobody is promoted", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
			{client: 1, gone: true, told: "2:NotFound/0.2"},
			{client: 2, election: "0.1", told: "2:NotFound/0.2"},
			{client: 2, election: "0.2", told: "2:OK/0.2"},
		}},
		{"when a backup leaves nobody is told", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
			{client: 2, gone: true},
			{client: 3, election: "0.1", told: "3:AlreadyExists/0.2"},
		}},
		{"the primary raises its id", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
			{client: 1, election: "0.3", told: "2:AlreadyExists/0.3 1:OK/0.3"},
			{client: 2, election: "0.2", told: "2:AlreadyExists/0.3"},
		}},
		{"a backup raises its id, not enough", []step{
			{client: 1, election: "0.3", told: "1:OK/0.3"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.3"},
			{client: 2, election: "0.2", told: "2:AlreadyExists/0.3"},
		}},
		{"the primary downgrades itself to a lower id", []step{
			{client: 1, election: "0.3", told: "1:OK/0.3"},
			{client: 2, election: "0.2", told: "2:AlreadyExists/0.3"},
			{client: 1, election: "0.1", told: "1:NotFound/0.3 2:NotFound/0.3"},
			{client: 2, election: "0.3", told: "1:AlreadyExists/0.3 2:OK/0.3"},
		}},
		{"the primary withdraws its id and takes it again", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.1", told: "2:AlreadyExists/0.2"},
			{client: 1, told: "1:NotFound/0.2 2:NotFound/0.2"},
			{client: 1, election: "0.2", told: "2:AlreadyExists/0.2 1:OK/0.2"},
		}},
		{"the primary comes back after its stream broke", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 1, gone: true},
			{client: 2, election: "0.2", told: "2:OK/0.2"},
		}},
		{"a lower id never wins after a higher one was seen", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 1, gone: true},
			{client: 2, election: "0.1", told: "2:NotFound/0.2"},
		}},
		{"the primary repeats itself", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, told: "2:AlreadyExists/0.2"},
			{client: 1, election: "0.2", told: "2:AlreadyExists/0.2 1:OK/0.2"},
		}},
		{"two streams cannot share an id", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.2", fails: codes.InvalidArgument},
			{client: 3, election: "0.1", told: "3:AlreadyExists/0.2"},
			{client: 3, election: "0.2", fails: codes.InvalidArgument},
			{client: 4, election: "0.1", fails: codes.InvalidArgument},
			{client: 3, gone: true},
			{client: 4, election: "0.1", told: "4:AlreadyExists/0.2"},
		}},
		{"roles are independent", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, role: "a", election: "0.2", told: "2:OK/0.2"},
			{client: 3, role: "b", election: "0.1", told: "3:OK/0.1"},
			{client: 4, role: "a", election: "0.1", told: "4:AlreadyExists/0.2"},
			{client: 2, gone: true, told: "4:NotFound/0.2"},
		}},
		{"a refused first update leaves no trace", []step{
			{client: 1, election: "0.2", told: "1:OK/0.2"},
			{client: 2, election: "0.2", fails: codes.InvalidArgument},
			{client: 2, gone: true},
			{client: 3, election: "0.3", told: "1:AlreadyExists/0.3 3:OK/0.3"},
		}},
		{"a role's configuration is checked and follows the primary", []step{
			{client: 1, role: "a", config: "bad", election: "0.1", fails: codes.InvalidArgument},
			{client: 1, role: "a", config: "x", election: "0.1", told: "1:OK/0.1/x"},
			{client: 2, role: "a", config: "y", told: "2:AlreadyExists/0.1/x"},
			{client: 1, role: "a", config: "z", election: "0.1", told: "2:AlreadyExists/0.1/z 1:OK/0.1/z"},
			{client: 2, role: "a", election: "0.2", told: "1:AlreadyExists/0.2 2:OK/0.2"},
			{client: 2, role: "a", config: "bad", election: "0.2", fails: codes.InvalidArgument},
		}},
		{"streams of a role are limited", []step{
			{client: 1, told: "1:NotFound/-"},
			{client: 2, told: "2:NotFound/-"},
			{client: 3, told: "3:NotFound/-"},
			{client: 4, told: "4:NotFound/-"},
			{client: 5, fails: codes.ResourceExhausted},
			{client: 5, role: "a", told: "5:NotFound/-"},
			{client: 4, gone: true},
			{client: 6, told: "6:NotFound/-"},
		}},
		{"roles are limited", []step{
			{client: 1, role: "a", told: "1:NotFound/-"},
			{client: 2, role: "b", told: "2:NotFound/-"},
			{client: 3, role: "c", fails: codes.ResourceExhausted},
			{client: 3, role: "a", told: "3:NotFound/-"},
		}},
		{"unknown clients may leave", []step{{client: 9, gone: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(Options{DeviceID: device, MaxClients: 4, MaxRoles: 3, CheckConfig: func(_ RoleKey, a *anypb.Any) error {
				if a.TypeUrl == "bad" {
					return errors.New("not of the agreed scheme")
				}
				return nil
			}})
			for i, s := range c.steps {
				got, err := d.run(s)
				if status.Code(err) != s.fails {
					t.Fatalf("step %d: error %v, want code %v", i, err, s.fails)
				}
				if diff := cmp.Diff(s.told, got); diff != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, diff)
				}
				d.invariants(t)
			}
		})
	}
}

func (d *Device) run(s step) (string, error) {
	var notes []Notification
	var err error
	if s.gone {
		notes = d.Disconnect(s.client)
	} else {
		notes, err = d.Update(s.client, update(s))
	}
	var told []string
	for _, n := range notes {
		id := "-"
		if e := n.Update.ElectionId; e != nil {
			id = fmt.Sprintf("%d.%d", e.High, e.Low)
		}
		line := fmt.Sprintf("%d:%v/%s", n.To, codes.Code(n.Update.Status.Code), id)
		if cfg := n.Update.GetRole().GetConfig(); cfg != nil {
			line += "/" + cfg.TypeUrl
		}
		told = append(told, line)
	}
	return strings.Join(told, " "), err
}

func update(s step) *p4v1.MasterArbitrationUpdate {
	m := &p4v1.MasterArbitrationUpdate{DeviceId: device}
	if s.device != 0 {
		m.DeviceId = s.device
	}
	if s.role != "" {
		m.Role = &p4v1.Role{Name: s.role}
		if s.config != "" {
			m.Role.Config = &anypb.Any{TypeUrl: s.config}
		}
	}
	if s.election != "" {
		m.ElectionId = election(s.election)
	}
	return m
}

func election(s string) *p4v1.Uint128 {
	e := &p4v1.Uint128{}
	if _, err := fmt.Sscanf(s, "%d.%d", &e.High, &e.Low); err != nil {
		panic(err)
	}
	return e
}

// invariants that hold after every event, whatever it was.
func (d *Device) invariants(t interface{ Fatalf(string, ...any) }) {
	n := 0
	for key, r := range d.roles {
		n += len(r.clients)
		seen := map[string]bool{}
		for _, c := range r.clients {
			if c.role != r || d.clients[c.id] != c {
				t.Fatalf("client %d is filed wrongly", c.id)
			}
			if c.election == nil {
				continue
			}
			if seen[text(c.election)] {
				t.Fatalf("role %v: election id %s twice", key, text(c.election))
			}
			seen[text(c.election)] = true
			if c == r.primary && compare(c.election, r.highest) != 0 {
				t.Fatalf("role %v: the primary's id is not the highest seen", key)
			}
			if r.highest == nil || compare(c.election, r.highest) > 0 {
				t.Fatalf("role %v: a client has a higher id than the highest", key)
			}
		}
		if r.primary != nil && (r.primary.election == nil || !slices.Contains(r.clients, r.primary)) {
			t.Fatalf("role %v: its primary is not connected", key)
		}
	}
	if n != len(d.clients) {
		t.Fatalf("%d clients in roles, %d in all", n, len(d.clients))
	}
}
