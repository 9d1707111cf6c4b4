//lint:file-ignore SA1019 clients older than P4Runtime 1.4 number their roles

package arbitration

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"
)

func TestMayWrite(t *testing.T) {
	d := New(Options{DeviceID: device})
	check := func(what string, dev uint64, role, id string, want codes.Code) {
		t.Helper()
		var e *p4v1.Uint128
		if id != "" {
			e = election(id)
		}
		if err := d.MayWrite(dev, Key(role, 0), e); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	apply := func(s step) {
		t.Helper()
		if _, err := d.run(s); err != nil {
			t.Fatal(err)
		}
	}
	check("before anyone connected", device, "", "0.1", codes.PermissionDenied)
	check("unset id before anyone connected", device, "", "", codes.PermissionDenied)
	apply(step{client: 1, election: "0.2"})
	apply(step{client: 2, election: "0.1"})
	check("the primary", device, "", "0.2", codes.OK)
	check("a backup", device, "", "0.1", codes.PermissionDenied)
	check("an id nobody has", device, "", "0.3", codes.PermissionDenied)
	check("an unset id", device, "", "", codes.PermissionDenied)
	check("another device", 8, "", "0.2", codes.NotFound)
	check("an unknown role", device, "a", "0.2", codes.NotFound)
	apply(step{client: 3, role: "a"})
	check("a role without primary", device, "a", "0.2", codes.PermissionDenied)
	apply(step{client: 1, gone: true})
	check("a primary that left", device, "", "0.2", codes.PermissionDenied)
	apply(step{client: 2, election: "0.2"})
	check("its successor with the same id", device, "", "0.2", codes.OK)
	apply(step{client: 2})
	check("a primary that withdrew", device, "", "0.2", codes.PermissionDenied)
}

func TestQueries(t *testing.T) {
	d := New(Options{DeviceID: device})
	if !d.KnowsRole(RoleKey{}) || d.KnowsRole(Key("a", 0)) {
		t.Error("only the default role is known at first")
	}
	if _, _, ok := d.RoleOf(1); ok {
		t.Error("a client has a role before its first update")
	}
	m := &p4v1.MasterArbitrationUpdate{DeviceId: device, Role: &p4v1.Role{Id: 4}, ElectionId: &p4v1.Uint128{Low: 1}}
	out, err := d.Update(1, m)
	if err != nil {
		t.Fatal(err)
	}
	if got := out[len(out)-1].Update.Role.Id; got != 4 {
		t.Errorf("role id %d, want 4", got)
	}
	if key, primary, ok := d.RoleOf(1); !ok || !primary || key != Key("", 4) {
		t.Errorf("RoleOf = %v, %v, %v", key, primary, ok)
	}
	n := 0
	d.Primaries(func(k RoleKey, c Client) { n++ })
	if n != 1 {
		t.Errorf("%d primaries", n)
	}
	m = &p4v1.MasterArbitrationUpdate{DeviceId: device, Role: &p4v1.Role{Name: "a", Config: &anypb.Any{}}}
	if _, err := d.Update(2, m); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a configuration without a scheme: %v", err)
	}
	if d.Config(Key("a", 0)) != nil || Key("a", 4) != Key("a", 0) {
		t.Error("roles are mixed up")
	}
}

// Random events keep the invariants, and MayWrite lets exactly the primaries write.
func TestRandomEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := New(Options{DeviceID: device})
		roles := []string{"", "a"}
		ids := []string{"", "0.0", "0.1", "0.2", "1.0"}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			s := step{
				client:   Client(rapid.IntRange(1, 4).Draw(t, "client")),
				gone:     rapid.Bool().Draw(t, "gone"),
				role:     rapid.SampledFrom(roles).Draw(t, "role"),
				election: rapid.SampledFrom(ids).Draw(t, "election"),
			}
			if _, err := d.run(s); err != nil {
				d.Disconnect(s.client)
			}
			d.invariants(t)
			for _, name := range roles {
				writers := 0
				for _, id := range ids[1:] {
					if d.MayWrite(device, Key(name, 0), election(id)) == nil {
						writers++
					}
				}
				r := d.roles[Key(name, 0)]
				if want := r != nil && r.primary != nil; writers > 1 || (writers == 1) != want {
					t.Fatalf("role %q: %d election ids may write, primary %v", name, writers, want)
				}
			}
		}
	})
}
