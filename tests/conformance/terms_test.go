package conformance

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/tests/dataplane/target"
)

// The leaders of a cluster have election ids with their terms in the upper half. Once a switch knows a later
// leader, an earlier one can neither write nor push nor become primary, whatever the lower half is. On BMv2 this
// holds only while the later leader is connected; after that, BMv2 lets the next best connected client write.
func testTerms(r *rig) {
	id := func(term, low uint64) *p4v1.Uint128 { return &p4v1.Uint128{High: term, Low: low} }
	route := loadProgram(r.T, "route")
	entry := func(addr uint64) *p4v1.Update {
		return insert(route.entry("routes", lpm(addr, 32), 0, route.do("forward", nextHop, 3)))
	}
	push := func(as *p4v1.Uint128) codes.Code {
		_, err := r.client.SetForwardingPipelineConfig(r.context(), &p4v1.SetForwardingPipelineConfigRequest{
			DeviceId: target.DeviceID, ElectionId: as, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: route.config(),
		})
		return status.Code(err)
	}
	write := func(as *p4v1.Uint128, u *p4v1.Update) codes.Code {
		_, err := r.client.Write(r.context(), &p4v1.WriteRequest{DeviceId: target.DeviceID, ElectionId: as, Updates: []*p4v1.Update{u}})
		return status.Code(err)
	}
	is := func(what string, got, want codes.Code) {
		r.Helper()
		if got != want {
			r.Errorf("%s: %v, want %v", what, got, want)
		}
	}

	early := r.open()
	early.arbitrate(device(id(5, 1)))
	early.told(codes.OK)
	is("the first leader pushes", push(id(5, 1)), codes.OK)
	is("and writes", write(id(5, 1), entry(network)), codes.OK)

	later := r.open()
	later.arbitrate(device(id(7, 1)))
	later.told(codes.OK)
	early.told(codes.AlreadyExists)
	is("an earlier leader writes", write(id(5, 1), entry(network+1)), codes.PermissionDenied)
	is("an earlier leader pushes", push(id(5, 1)), codes.PermissionDenied)
	again := r.open() // it has restarted
	again.arbitrate(device(id(5, 1<<60)))
	again.told(codes.AlreadyExists)
	is("it writes with a large lower half", write(id(5, 1<<60), entry(network+1)), codes.PermissionDenied)
	is("the leader writes", write(id(7, 1), entry(network+1)), codes.OK)
	r.reads(&p4v1.TableEntry{TableId: route.table("routes")}, entry(network).GetEntity().GetTableEntry(), entry(network+1).GetEntity().GetTableEntry())

	again.close()
	later.close()
	want := codes.NotFound
	if r.ownArbitration {
		want = codes.OK
	}
	early.told(want)
	want = codes.PermissionDenied
	if r.ownArbitration {
		want = codes.OK
	}
	is("an earlier leader writes when the later one has gone", write(id(5, 1), entry(network+2)), want)
}
