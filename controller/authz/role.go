package authz

import (
	"slices"

	"github.com/headgate/headgate/controller/allocation/weights"
)

// Role is a set of methods.
type Role string

// The roles. Each is for itself; who needs two is granted two.
const (
	Viewer      Role = "viewer"      // sees the fabric, changes nothing
	Operator    Role = "operator"    // runs the fabric: configurations, links, weights, budgets, priorities
	Application Role = "application" // sets weights and priorities of its own applications
	Host        Role = "host"        // attaches as itself
	Admin       Role = "admin"       // everything, the policy too
)

// Roles are all roles.
var Roles = []Role{Viewer, Operator, Application, Host, Admin}

// anyone is the role of those without one.
const anyone Role = ""

// A method's roles. Admin has every method.
var (
	free     = []Role{anyone}
	reading  = []Role{Viewer, Operator}
	own      = []Role{Viewer, Operator, Application} // an application sees its own
	changing = []Role{Operator}
	weighing = []Role{Operator, Application}
	hosts    = []Role{Host}
)

// methods is who may call what. Metrics stands for the metrics of Prometheus.
var methods = map[string][]Role{
	"/headgate.v1.FabricService/GetFabric":       reading,
	"/headgate.v1.FabricService/ListSwitches":    reading,
	"/headgate.v1.FabricService/PlanConfig":      changing, // it reads files and calls addresses
	"/headgate.v1.FabricService/ApplyConfig":     changing,
	"/headgate.v1.FabricService/ConfirmConfig":   changing,
	"/headgate.v1.FabricService/ListHistory":     reading,
	"/headgate.v1.FabricService/GetPredictions":  reading,
	"/headgate.v1.FabricService/SetLink":         changing,
	"/headgate.v1.FabricService/WatchEvents":     reading,
	"/headgate.v1.FabricService/StreamTelemetry": reading,

	"/headgate.v1.StateService/BackupState":   changing, // it has the audit log
	"/headgate.v1.StateService/ReplaceMember": changing,

	"/headgate.v1.WeightService/SetWeight":    weighing,
	"/headgate.v1.WeightService/SetWeights":   weighing,
	"/headgate.v1.WeightService/DeleteFlow":   weighing,
	"/headgate.v1.WeightService/ListWeights":  own,
	"/headgate.v1.WeightService/WatchWeights": own,
	"/headgate.v1.WeightService/SetBudget":    changing,
	"/headgate.v1.WeightService/ListAudit":    changing,
	"/headgate.v1.WeightService/ExportAudit":  changing,

	"/headgate.v1.PriorityService/AllocatePriority": weighing,
	"/headgate.v1.PriorityService/ReleasePriority":  weighing,
	"/headgate.v1.PriorityService/ListPriorities":   own,
	"/headgate.v1.PriorityService/WatchPriorities":  own,

	"/headgate.v1.HostService/Attach":     hosts,
	"/headgate.v1.HostService/ListFlows":  reading,
	"/headgate.v1.HostService/WatchFlows": reading,
	"/headgate.v1.HostService/GetTraffic": reading,

	"/gnmi.gNMI/Capabilities": reading,
	"/gnmi.gNMI/Get":          reading,
	"/gnmi.gNMI/Subscribe":    reading,
	"/gnmi.gNMI/Set":          reading, // which it refuses to all

	// Whoever restarts processes asks for their health, and has no certificate.
	"/grpc.health.v1.Health/Check": free,
	"/grpc.health.v1.Health/List":  free,
	"/grpc.health.v1.Health/Watch": free,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      reading,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": reading,

	Metrics: reading,
}

// Metrics is the method that a scrape counts as.
const Metrics = "GET /metrics"

// Known reports whether a method has roles; one without is refused to everybody.
func Known(method string) bool { return methods[method] != nil }

// rights is what the policy grants to an identity, all grants together.
type rights struct {
	roles        []Role
	applications []string // of the role application
	hosts        []string // of the role host
	paying       []string // applications of the role host
}

// allow reports whether a method is in the rights, and to what it is confined.
func (r rights) allow(method string) (c confined, ok bool) {
	list := methods[method]
	if slices.Contains(list, anyone) {
		return c, true
	}
	for _, role := range r.roles {
		switch {
		case role == Admin && list != nil, role != Application && role != Host && slices.Contains(list, role):
			return confined{}, true
		case role == Application && slices.Contains(list, role):
			c.applications, ok = r.applications, true
		case role == Host && slices.Contains(list, role):
			c.hosts, ok = r.hosts, true
			if !slices.Contains(r.paying, AnyApplication) {
				c.applications = append([]string{weights.DefaultApplication}, r.paying...)
			}
		}
	}
	return c, ok
}

// confined is what a call must stay in; nil is everything.
type confined struct{ applications, hosts []string }

func (c confined) equal(d confined) bool {
	return slices.Equal(c.applications, d.applications) && slices.Equal(c.hosts, d.hosts)
}
