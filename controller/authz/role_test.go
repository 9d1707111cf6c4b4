package authz

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestEveryMethodHasRoles: a method that is missing in the table would be refused to everyone; this
// test finds it first.
func TestEveryMethodHasRoles(t *testing.T) {
	left := map[string]bool{}
	for m := range methods {
		left[m] = true
	}
	services := pb.File_api_headgate_v1_headgate_proto.Services()
	for i := range services.Len() {
		list := services.Get(i).Methods()
		for j := range list.Len() {
			name := full(list.Get(j))
			if !Known(name) {
				t.Errorf("%s has no roles", name)
			}
			delete(left, name)
		}
	}
	for name := range left {
		if len(name) > 13 && name[:13] == "/headgate.v1." {
			t.Errorf("%s has roles and does not exist", name)
		}
	}
	if services.Len() < 4 {
		t.Errorf("only %d services were walked", services.Len())
	}
}

func full(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// TestTable names, for each role, methods at the upper and lower end of its rights.
func TestTable(t *testing.T) {
	const fabric, weight, host = "/headgate.v1.FabricService/", "/headgate.v1.WeightService/", "/headgate.v1.HostService/"
	for _, c := range []struct {
		role     Role
		yes, not []string
	}{
		{Viewer, []string{fabric + "GetFabric", Metrics, weight + "ListWeights"}, []string{fabric + "ApplyConfig", fabric + "PlanConfig", weight + "SetWeight", weight + "ListAudit", host + "Attach"}},
		{Operator, []string{fabric + "ApplyConfig", weight + "SetBudget", weight + "ListAudit"}, []string{host + "Attach"}},
		{Application, []string{weight + "SetWeight", weight + "WatchWeights"}, []string{weight + "SetBudget", fabric + "GetFabric", host + "Attach", Metrics}},
		{Host, []string{host + "Attach"}, []string{fabric + "GetFabric", weight + "SetWeight", host + "ListFlows"}},
		{Admin, []string{fabric + "ApplyConfig", host + "Attach", Metrics}, []string{fabric + "Nothing"}},
		{"", []string{"/grpc.health.v1.Health/Check"}, []string{fabric + "GetFabric", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Metrics}},
	} {
		r := rights{roles: []Role{c.role}, applications: []string{"web"}, hosts: []string{"h1"}}
		for _, m := range c.yes {
			if _, ok := r.allow(m); !ok {
				t.Errorf("%q may not call %s", c.role, m)
			}
		}
		for _, m := range c.not {
			if _, ok := r.allow(m); ok {
				t.Errorf("%q may call %s", c.role, m)
			}
		}
	}
	if c, _ := (rights{roles: []Role{Application}, applications: []string{"web"}}).allow(weight + "SetWeight"); len(c.applications) != 1 {
		t.Errorf("an application is confined to %v", c)
	}
	if c, _ := (rights{roles: []Role{Application, Operator}, applications: []string{"web"}}).allow(weight + "SetWeight"); c.applications != nil {
		t.Errorf("an operator that is an application too is confined to %v", c)
	}
}
