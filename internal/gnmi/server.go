// Package gnmi serves the state of switches over gNMI, in OpenConfig's models: interfaces, queues and
// buffers. State is read-only; only the ports of a Setter can be set. The controller serves its fabric with
// it, and the embedded switch itself; each is a Source.
//
// schema.go lists the served leaves: leaves of OpenConfig's models, and of our own headgate-buffer.yang where
// OpenConfig has none. The list replaces structs that ygot generates. Those of openconfig-interfaces and
// openconfig-qos, with their imports, would add megabytes to the binary for some sixty leaves. ygot's packages
// for paths are not used either: they link glog, which starts a goroutine and defines flags.
package gnmi

import (
	"cmp"
	"context"
	"encoding/json"
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

// Source provides a server's data. Its methods are safe for concurrent use.
type Source interface {
	// State returns the present state of a target, or of all targets if target is "". It returns none for an
	// unknown target. A source of a single target without a name accepts every name. Values of leaves outside
	// wants may be left out.
	State(target string, wants Wants) []State
	// Changed returns a channel that has a value soon after a leaf other than a counter may have changed, until
	// ctx ends. It returns nil if the source does not report changes.
	Changed(ctx context.Context) <-chan struct{}
}

// State is a target's leaves, in any order.
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

	mu     sync.Mutex // guards the fields below
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

// Setter is a Source whose ports can change. Set makes the changes in their order, and returns the
// error of the first that fails; those before it stay.
type Setter interface {
	SetPorts(ctx context.Context, changes []PortChange) error
}

// PortChange gives a port an interface; "" takes it away.
type PortChange struct {
	Port      string // the key of /interfaces/interface
	Interface string
}

// Set implements gNMI, for ports alone: an update of /interfaces/interface[name=PORT]/config/description gives
// a port an interface, a delete of /interfaces/interface[name=PORT] takes it away.
func (s *server) Set(ctx context.Context, r *gpb.SetRequest) (*gpb.SetResponse, error) {
	setter, ok := s.source.(Setter)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "gNMI is served to read alone: nothing was set; configurations are set by headgate apply (headgate.v1.FabricService.ApplyConfig)")
	}
	if n := len(r.GetDelete()) + len(r.GetReplace()) + len(r.GetUpdate()); n == 0 || n > maxPaths {
		return nil, status.Errorf(codes.InvalidArgument, "%d changes: want 1 to %d", n, maxPaths)
	}
	var changes []PortChange
	out := &gpb.SetResponse{Prefix: r.GetPrefix(), Timestamp: time.Now().UnixNano()}
	take := func(op gpb.UpdateResult_Operation, path *gpb.Path, text string, last ...string) error {
		e := slices.Concat(r.GetPrefix().GetElem(), path.GetElem())
		names := make([]string, len(e))
		for i := range e {
			names[i] = e[i].GetName()
		}
		if want := append([]string{"interfaces", "interface"}, last...); !slices.Equal(names, want) || len(e[1].GetKey()) != 1 || e[1].GetKey()["name"] == "" {
			return status.Errorf(codes.InvalidArgument, "%s cannot be set: want a delete of /interfaces/interface[name=PORT], or an update of /interfaces/interface[name=PORT]/config/description", pathText(e))
		}
		changes = append(changes, PortChange{e[1].GetKey()["name"], text})
		out.Response = append(out.Response, &gpb.UpdateResult{Path: path, Op: op})
		return nil
	}
	for _, p := range r.GetDelete() { // deletes come first (gNMI 0.10, 3.4.3)
		if err := take(gpb.UpdateResult_DELETE, p, ""); err != nil {
			return nil, err
		}
	}
	for i, u := range slices.Concat(r.GetReplace(), r.GetUpdate()) {
		op := gpb.UpdateResult_UPDATE
		if i < len(r.GetReplace()) {
			op = gpb.UpdateResult_REPLACE
		}
		name, err := text(u.GetVal())
		if err != nil {
			return nil, err
		}
		if err := take(op, u.GetPath(), name, "config", "description"); err != nil {
			return nil, err
		}
	}
	if err := setter.SetPorts(ctx, changes); err != nil {
		return nil, err
	}
	return out, nil
}

// text returns a value that is an interface's name.
func text(v *gpb.TypedValue) (name string, err error) {
	switch x := v.GetValue().(type) {
	case *gpb.TypedValue_StringVal:
		name = x.StringVal
	case *gpb.TypedValue_JsonVal:
		err = json.Unmarshal(x.JsonVal, &name)
	case *gpb.TypedValue_JsonIetfVal:
		err = json.Unmarshal(x.JsonIetfVal, &name)
	}
	if err != nil || name == "" || len(name) > maxInterfaceName {
		return "", status.Errorf(codes.InvalidArgument, "description: want the name of a network interface, 1 to %d bytes, as a string", maxInterfaceName)
	}
	return name, nil
}

// maxInterfaceName is Linux' IFNAMSIZ without the byte 0.
const maxInterfaceName = 15

// Get implements gNMI. JSON values are whole subtrees, PROTO values are leaves. A path that none of the
// targets has anything for is NOT_FOUND (gNMI 0.10, 3.3.4); the root is always there.
func (s *server) Get(ctx context.Context, r *gpb.GetRequest) (*gpb.GetResponse, error) {
	paths := r.GetPath()
	if len(paths) == 0 {
		paths = []*gpb.Path{nil} // all that the prefix has
	}
	queries, err := s.check(ctx, "path", r.GetPrefix(), paths, r.GetEncoding(), r.GetUseModels())
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
				n.Update = nil // every leaf is state
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

// updates returns the leaves that the query selects.
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

// states returns the state of a request's target, and NOT_FOUND for an unknown target.
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

// check checks the common parts of requests. field is the name of the paths' field.
func (s *server) check(ctx context.Context, field string, prefix *gpb.Path, paths []*gpb.Path, e gpb.Encoding, use []*gpb.ModelData) ([]query, error) {
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
		if ctx.Err() != nil { // many requests may wait for the processor when the server ends
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		var err error
		if list[i], err = compile(fmt.Sprintf("%s[%d]", field, i), prefix, p); err != nil {
			return nil, err
		}
	}
	return list, nil
}
