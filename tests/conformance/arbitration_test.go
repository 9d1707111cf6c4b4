package conformance

import (
	"fmt"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/tests/dataplane/target"
)

// script is a sequence of events of a fresh switch's clients. The names are those of sonic-pins' cases where
// there is one. Package arbitration tests the rules alone, and more of them.
type script struct {
	name  string
	steps []step
}

// step is a client's action and the messages that clients get for it.
type step struct {
	client int
	does   string // "leaves", or "id N", "id N role NAME", "no id", "device N"
	told   string // "CLIENT:STATUS/highest election id", in order for each client
	ends   codes.Code
	bmv2   string // BMv2's messages if they differ ("-" is none) ...
	stays  bool   // ... or the fact that it does not end the stream
}

func scripts() []script {
	return []script{
		{"PrimaryConnectionWithElectionId", []step{{client: 1, does: "id 1", told: "1:OK/1"}}},
		{"PrimaryConnectionWithElectionIdZero", []step{{client: 1, does: "id 0", told: "1:OK/0"}}},
		{"NoElectionIdIsAlwaysBackupConnection", []step{
			{client: 1, does: "no id", told: "1:NotFound/-", bmv2: "1:OK/0"},
		}},
		{"DeviceIdMustMatch", []step{{client: 1, does: "device 2", ends: codes.NotFound, bmv2: "1:OK/2", stays: true}}},
		{"DeviceIdCannotChangeAtController", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 1, does: "device 2", ends: codes.FailedPrecondition},
		}},
		{"PrimaryAndBackupConnections", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/2"},
		}},
		{"NotifyAllConnectionsForNewPrimary", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 3", told: "2:OK/3 1:AlreadyExists/3"},
		}},
		{"NotifyAllConnectionsWhenPrimaryDisconnects", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/2"},
			{client: 1, does: "leaves", told: "2:NotFound/2", bmv2: "2:OK/1"},
		}},
		{"NotifyAllConnectionsIfPrimaryIncreasesItsElectionId", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/2"},
			{client: 1, does: "id 3", told: "1:OK/3 2:AlreadyExists/3", bmv2: "1:OK/3"},
		}},
		{"DoNotNotifyIfBackupIncreasesItsElectionId", []step{
			{client: 1, does: "id 3", told: "1:OK/3"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/3"},
			{client: 2, does: "id 2", told: "2:AlreadyExists/3"},
			{client: 1, does: "leaves", told: "2:NotFound/3", bmv2: "2:OK/2"},
		}},
		{"NotifyAllConnectionsWhenPrimaryBecomesBackup", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/2"},
			{client: 1, does: "no id", told: "1:NotFound/2 2:NotFound/2", bmv2: "1:AlreadyExists/1 2:OK/1"},
		}},
		{"PrimaryConnectionCanReestablishAfterGoingDown", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 1, does: "leaves"},
			{client: 2, does: "id 2", told: "2:OK/2"},
		}},
		{"PrimaryConnectionCanReestablishAfterBecomingBackup", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 1", told: "2:AlreadyExists/2"},
			{client: 1, does: "no id", told: "1:NotFound/2 2:NotFound/2", bmv2: "1:AlreadyExists/1 2:OK/1"},
			{client: 1, does: "id 2", told: "1:OK/2 2:AlreadyExists/2"},
		}},
		{"BackupCanReuseElectionIdWhenPrimaryDisconnects", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "no id", told: "2:AlreadyExists/2"},
			{client: 1, does: "leaves", told: "2:NotFound/2", bmv2: "2:OK/0"},
			{client: 2, does: "id 2", told: "2:OK/2"},
		}},
		{"ConnectionCannotBecomePrimaryWithLowerElectionId", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 1, does: "leaves"},
			{client: 2, does: "id 1", told: "2:NotFound/2", bmv2: "2:OK/1"},
		}},
		{"PrimaryCanSendDuplicateArbitrationRequests", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 1, does: "id 2", told: "1:OK/2", bmv2: "-"},
		}},
		{"TwoConnectionsCannotReuseElectionId", []step{
			{client: 1, does: "id 2", told: "1:OK/2"},
			{client: 2, does: "id 2", ends: codes.InvalidArgument},
		}},
		{"ConnectionCannotChangeItsRole", []step{
			{client: 1, does: "id 2 role A", told: "1:OK/2"},
			{client: 1, does: "id 2 role B", ends: codes.FailedPrecondition, bmv2: "-", stays: true},
		}},
		{"RolesHaveTheirOwnPrimary", []step{
			{client: 1, does: "id 2 role A", told: "1:OK/2"},
			{client: 2, does: "id 1 role B", told: "2:OK/1", bmv2: "2:AlreadyExists/2"},
		}},
	}
}

// play runs the script.
func (s script) play(r *rig) {
	clients := map[int]*session{}
	for i, st := range s.steps {
		c := clients[st.client]
		if c == nil {
			c = r.open()
			clients[st.client] = c
		}
		told, ends := st.told, st.ends
		if r.ownArbitration && st.bmv2 != "" {
			told = strings.TrimPrefix(st.bmv2, "-")
		}
		if r.ownArbitration && st.stays {
			ends = codes.OK
		}
		if st.does == "leaves" {
			c.close()
		} else {
			c.arbitrate(st.update(r))
		}
		if ends != codes.OK {
			c.ends(ends)
		}
		if st.does == "leaves" || ends != codes.OK {
			delete(clients, st.client)
		}
		for want := range strings.FieldsSeq(told) {
			var n int
			var what string
			if _, err := fmt.Sscanf(want, "%d:%s", &n, &what); err != nil {
				r.Fatal(err)
			}
			if got := describe(clients[n].next(patience)); got != what {
				r.Fatalf("step %d (%s): client %d is told %s, want %s", i, st.does, n, got, what)
			}
		}
		for n, c := range clients {
			if m := r.quiet(c); m != nil {
				r.Fatalf("step %d (%s): client %d is also told %v", i, st.does, n, m)
			}
		}
	}
}

func (st step) update(r *rig) *p4v1.MasterArbitrationUpdate {
	m := device(nil)
	words := strings.Fields(st.does)
	for ; len(words) >= 2; words = words[2:] {
		var n uint64
		fmt.Sscan(words[1], &n)
		switch words[0] {
		case "id":
			m.ElectionId = &p4v1.Uint128{Low: n}
		case "device":
			m.DeviceId, m.ElectionId = n, &p4v1.Uint128{Low: 2}
		case "role":
			m.Role = &p4v1.Role{Name: words[1]}
		case "no":
		default:
			r.Fatalf("step %q", st.does)
		}
	}
	return m
}

// describe formats an arbitration update as in a script.
func describe(m *p4v1.StreamMessageResponse) string {
	a := m.GetArbitration()
	if a == nil {
		return fmt.Sprint(m)
	}
	id := "-"
	if a.ElectionId != nil {
		id = fmt.Sprint(a.ElectionId.Low)
	}
	return fmt.Sprintf("%v/%s", codes.Code(a.GetStatus().GetCode()), id)
}

// quiet returns a client's unexpected messages.
func (r *rig) quiet(c *session) *p4v1.StreamMessageResponse {
	r.Helper()
	if r.noStreamError {
		return c.next(r.settle / 4)
	}
	// Messages of a stream keep their order, so a requested error comes last.
	c.send(&p4v1.StreamMessageRequest{})
	m := c.next(patience)
	if codes.Code(m.GetError().GetCanonicalCode()) == codes.Unimplemented {
		return nil
	}
	return m
}

// push tries to set the pipeline with an election id.
func (r *rig) push(id *p4v1.Uint128, p *program) error {
	_, err := r.client.SetForwardingPipelineConfig(r.context(), &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: target.DeviceID, ElectionId: id,
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: p.config(),
	})
	return err
}

func (r *rig) code(what string, err error, want codes.Code) {
	r.Helper()
	if got := details(err); (err == nil) != (want == codes.OK) || err != nil && codes.Code(got[0].CanonicalCode) != want {
		r.Errorf("%s: %v, want %v", what, err, want)
	}
}

func testBackupCannotPush(r *rig) {
	p := loadProgram(r.T, "route")
	first, backup := r.open(), r.open()
	first.arbitrate(device(&p4v1.Uint128{Low: 2}))
	first.told(codes.OK)
	backup.arbitrate(device(&p4v1.Uint128{Low: 1}))
	backup.told(codes.AlreadyExists)
	r.code("a backup pushes", r.push(&p4v1.Uint128{Low: 1}, p), codes.PermissionDenied)
	r.code("a client without election id pushes", r.push(nil, p), codes.PermissionDenied)
	r.code("the primary pushes", r.push(&p4v1.Uint128{Low: 2}, p), codes.OK)
}

func testBackupCannotWrite(r *rig) {
	p := r.load("route") // with election id 1
	next := r.open()
	next.arbitrate(device(&p4v1.Uint128{Low: 2}))
	next.told(codes.OK)
	r.primary.told(codes.AlreadyExists)
	write := func(id *p4v1.Uint128) error {
		_, err := r.client.Write(r.context(), &p4v1.WriteRequest{DeviceId: target.DeviceID, ElectionId: id,
			Updates: []*p4v1.Update{insert(p.entry("routes", lpm(network, 16), 0, p.do("forward", nextHop, 3)))}})
		return err
	}
	r.code("a backup writes", write(&p4v1.Uint128{Low: 1}), codes.PermissionDenied)
	r.code("nobody's election id writes", write(&p4v1.Uint128{Low: 3}), codes.PermissionDenied)
	r.code("a client without election id writes", write(nil), codes.PermissionDenied)
	r.code("the primary writes", write(&p4v1.Uint128{Low: 2}), codes.OK)
	if n := len(r.read(of(&p4v1.TableEntry{TableId: p.table("routes")}))); n != 1 { // reading is free
		r.Errorf("%d entries, want 1", n)
	}
}

// A client that has left cannot write any more.
func testNobodyWritesAlone(r *rig) {
	p := r.load("route")
	r.primary.close()
	update := insert(p.entry("routes", lpm(network, 16), 0, p.do("forward", nextHop, 3)))
	r.code("a primary that left writes", r.try(update), codes.PermissionDenied)
	_, err := r.client.Write(r.context(), &p4v1.WriteRequest{DeviceId: target.DeviceID, Updates: []*p4v1.Update{update}})
	want := codes.PermissionDenied
	if r.openWhenAlone {
		want = codes.OK
	}
	r.code("a client without stream and election id writes", err, want)
}

// A message that the switch does not know gets an error at most.
func testInvalidStreamMessage(r *rig) {
	s := r.open()
	s.send(&p4v1.StreamMessageRequest{})
	if !r.noStreamError {
		if m := s.next(patience); codes.Code(m.GetError().GetCanonicalCode()) != codes.Unimplemented {
			r.Errorf("told %v, want an error with %v", m, codes.Unimplemented)
		}
	}
	s.arbitrate(device(&p4v1.Uint128{Low: 1}))
	s.told(codes.OK)
}
