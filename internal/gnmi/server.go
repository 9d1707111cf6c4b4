package gnmi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/clients"
)

// Source is what a server shows. Its methods are safe for concurrent use.
type Source interface {
	// State returns what is known now of a target, of all where it is "". There are none for a name
	// that no target has. A source that has one without a name knows it by every name. Values of leaves
	// that are not wanted may be left out.
	State(target string, wants Wants) []State
	// Changed returns a channel that has a value soon after something that is no counter may have
	// changed, until ctx ends; nil where nothing tells.
	Changed(ctx context.Context) <-chan struct{}
}

// State is what is known of a target, in any order.
type State struct {
	Target string
	Values []Value
}

// Wants are the leaves that are asked for.
type Wants map[*Leaf]bool

// server implements gNMI.
type server struct {
	gpb.UnimplementedGNMIServer
	source  Source
	running context.Context
	budget  *clients.Budget // nil: the process's

	mu     sync.Mutex // guards what follows
	recent map[string]*snapshot
}

func (s *server) clients() *clients.Budget { return cmp.Or(s.budget, clients.Process) }

// Register adds gNMI to a gRPC server. Streams end with running, with its cause.
func Register(s *grpc.Server, source Source, running context.Context) {
	gpb.RegisterGNMIServer(s, &server{source: source, running: running})
}

// Capabilities implements gNMI.
func (s *server) Capabilities(context.Context, *gpb.CapabilityRequest) (*gpb.CapabilityResponse, error) {
	version, _ := proto.GetExtension(gpb.File_github_com_openconfig_gnmi_proto_gnmi_gnmi_proto.Options(), gpb.E_GnmiService).(string)
	return &gpb.CapabilityResponse{SupportedModels: models, SupportedEncodings: encodings, GNMIVersion: version}, nil
}

// Set implements gNMI.
func (s *server) Set(context.Context, *gpb.SetRequest) (*gpb.SetResponse, error) {
	return nil, status.Error(codes.Unimplemented, "gNMI is served to read alone: nothing was set; configurations are set by headgate apply (headgate.v1.FabricService.ApplyConfig)")
}

// Get implements gNMI. Values of JSON are whole subtrees, those of PROTO leaves. A path that none of the
// targets has anything for is NOT_FOUND (gNMI 0.10, 3.3.4); the root is always there.
func (s *server) Get(_ context.Context, r *gpb.GetRequest) (*gpb.GetResponse, error) {
	paths := r.GetPath()
	if len(paths) == 0 {
		paths = []*gpb.Path{nil} // all that the prefix has
	}
	queries, err := s.check("path", r.GetPrefix(), paths, r.GetEncoding(), r.GetUseModels())
	if err != nil {
		return nil, err
	}
	states, err := s.states(r.GetPrefix().GetTarget(), wants(queries...))
	if err != nil {
		return nil, err
	}
	asked := 0
	for _, q := range queries {
		asked += q.count(states)
	}
	if asked > maxValues {
		return nil, status.Errorf(codes.ResourceExhausted, "path: %d values are asked for: want at most %d in one answer: ask for less, or Subscribe", asked, maxValues)
	}
	if cost := int64(asked) * updateBytes; !s.clients().Take(cost, 1) {
		return nil, clients.Full("get")
	} else {
		defer s.clients().Release(cost)
	}
	out := &gpb.GetResponse{}
	for i, q := range queries {
		found := len(r.GetPrefix().GetElem())+len(paths[i].GetElem()) == 0
		for _, state := range states {
			n := notification(r.GetPrefix(), state.Target)
			n.Update = q.updates(state.Values, r.GetEncoding())
			found = found || len(n.Update) > 0
			if r.GetType() == gpb.GetRequest_CONFIG {
				n.Update = nil // all is state
			}
			out.Notification = append(out.Notification, n)
		}
		if !found {
			return nil, status.Errorf(codes.NotFound, "path[%d]: %s: nothing is known of it now", i, pathText(slices.Concat(r.GetPrefix().GetElem(), paths[i].GetElem())))
		}
	}
	return out, nil
}

// maxValues bounds an answer to Get.
const maxValues = 32768

// count returns how many values the query selects.
func (q query) count(states []State) (n int) {
	for _, state := range states {
		for _, v := range state.Values {
			if _, ok := q.selects(v); ok {
				n++
			}
		}
	}
	return n
}

// updates returns what the query selects.
func (q query) updates(values []Value, e gpb.Encoding) []*gpb.Update {
	var list []*gpb.Update
	type root struct {
		*tree
		update *gpb.Update
	}
	roots := map[string]root{}
	for _, v := range values {
		depth, ok := q.selects(v)
		if !ok {
			continue
		}
		if depth == len(v.Leaf.elems) || e == gpb.Encoding_PROTO {
			list = append(list, v.update(e))
			continue
		}
		path := v.path(depth)
		text := pathText(path.GetElem())
		if _, ok := roots[text]; !ok {
			roots[text] = root{newTree(), &gpb.Update{Path: path}}
			list = append(list, roots[text].update)
		}
		roots[text].add(v, depth, e)
	}
	for _, r := range roots {
		r.update.Val = jsonTyped(r.object, e)
	}
	return list
}

func (v Value) update(e gpb.Encoding) *gpb.Update {
	return &gpb.Update{Path: v.path(len(v.Leaf.elems)), Val: typed(v.Is, e)}
}

func notification(prefix *gpb.Path, target string) *gpb.Notification {
	n := &gpb.Notification{Timestamp: time.Now().UnixNano()}
	if target != "" || prefix.GetOrigin() != "" {
		n.Prefix = &gpb.Path{Target: target, Origin: prefix.GetOrigin()}
	}
	return n
}

// states returns the state of a request's target, and NOT_FOUND for one that there is not.
func (s *server) states(target string, w Wants) ([]State, error) {
	if target == "*" {
		target = ""
	}
	states := s.source.State(target, w)
	for i := range states {
		states[i].Values = complete(states[i].Values)
	}
	if len(states) > 0 || target == "" {
		return states, nil
	}
	var known []string
	for _, t := range s.source.State("", nil) {
		known = append(known, t.Target)
	}
	return nil, status.Errorf(codes.NotFound, "prefix.target: %q is not allowed: want one of %s, or * for all", strings.ToValidUTF8(target, "?"), strings.Join(known, ", "))
}

// check reads what requests have in common. field is that of the paths.
func (s *server) check(field string, prefix *gpb.Path, paths []*gpb.Path, e gpb.Encoding, use []*gpb.ModelData) ([]query, error) {
	if err := checkEncoding(e); err != nil {
		return nil, err
	}
	for i, m := range use {
		if !slices.ContainsFunc(models, func(known *gpb.ModelData) bool { return known.GetName() == m.GetName() }) {
			return nil, status.Errorf(codes.Unimplemented, "use_models[%d]: %q is not served: see Capabilities", i, strings.ToValidUTF8(m.GetName(), "?"))
		}
	}
	if len(paths) > maxPaths {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %d of them: want at most %d", field, len(paths), maxPaths)
	}
	list := make([]query, len(paths))
	for i, p := range paths {
		var err error
		if list[i], err = compile(fmt.Sprintf("%s[%d]", field, i), prefix, p); err != nil {
			return nil, err
		}
	}
	return list, nil
}
