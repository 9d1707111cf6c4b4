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

// rights are an identity's rights from all its grants.
type rights struct {
	roles        []Role
	applications []string // of the role application
	hosts        []string // of the role host
	paying       []string // applications of the role host
}

// allow reports whether a method is in the rights, and to what it is confined.
func (r rights) allow(method string) (c confined, ok bool) {
	list := methods[method].roles
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

// confined bounds a call to applications or hosts; nil is no bound.
type confined struct{ applications, hosts []string }

func (c confined) equal(d confined) bool {
	return slices.Equal(c.applications, d.applications) && slices.Equal(c.hosts, d.hosts)
}
