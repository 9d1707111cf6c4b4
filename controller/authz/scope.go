package authz

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// named are requests about one application.
type named interface{ GetApplication() string }

// checkScope refuses a message that is about what its caller has nothing to do with. Flows of others
// the registry refuses, which knows whose they are.
func (a *Authorizer) checkScope(c Caller, method string, m any) error {
	if r, ok := m.(*pb.HostReport); ok && c.hosts != nil && r.GetHost() != "" && !slices.Contains(c.hosts, r.GetHost()) {
		return a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("host: %v may attach as %s, not as %q", c.Identity, strings.Join(c.hosts, ", "), r.GetHost()))
	}
	if c.Applications == nil {
		return nil
	}
	var list []named
	switch r := m.(type) {
	case *pb.SetWeightsRequest:
		for _, one := range r.GetWeights() {
			list = append(list, one)
		}
	case named:
		list = append(list, r)
	}
	for _, r := range list {
		if name := r.GetApplication(); !slices.Contains(c.Applications, name) {
			return a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("application: %q is not one of %v: want %s", name, c.Identity, strings.Join(c.Applications, ", ")))
		}
	}
	return nil
}
