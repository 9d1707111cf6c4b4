package schema

import (
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/engine"
)

// Action validates an action of the table: an entry's action or, with asDefault, the table's
// default. It returns the action in canonical form and fills call, whose memory it reuses. Errors
// are INVALID_ARGUMENT, or PERMISSION_DENIED if the action's scope forbids the use.
func (t *Table) Action(call *engine.ActionCall, in *p4v1.Action, asDefault bool) (*p4v1.Action, error) {
	r := t.Actions[in.GetActionId()]
	if r == nil {
		return nil, status.Errorf(codes.InvalidArgument, "table %q: action_id is 0x%x, which is none of its actions", t.Name, in.GetActionId())
	}
	if asDefault && r.Scope == p4configv1.ActionRef_TABLE_ONLY {
		return nil, status.Errorf(codes.PermissionDenied, "table %q: action %q is @tableonly and cannot be its default", t.Name, r.Name)
	}
	if !asDefault && r.Scope == p4configv1.ActionRef_DEFAULT_ONLY {
		return nil, status.Errorf(codes.PermissionDenied, "table %q: action %q is @defaultonly and cannot be an entry's", t.Name, r.Name)
	}
	return r.call(call, in)
}

// call validates an action's parameters.
func (a *Action) call(call *engine.ActionCall, in *p4v1.Action) (*p4v1.Action, error) {
	bad := func(format string, args ...any) (*p4v1.Action, error) {
		return nil, status.Errorf(codes.InvalidArgument, "action %q: "+format, append([]any{a.Name}, args...)...)
	}
	call.Name = a.Name
	call.Args = slices.Grow(call.Args[:0], len(a.Params))[:len(a.Params)]
	clear(call.Args)
	out := in // copied only if a parameter is not in canonical form, which is rare
	for i, p := range in.Params {
		at := slices.IndexFunc(a.Params, func(q *Param) bool { return q.ID == p.GetParamId() })
		if at < 0 {
			return bad("params[%d].param_id is %d, which is none of its parameters", i, p.GetParamId())
		}
		if call.Args[at] != nil {
			return bad("parameter %q is given twice", a.Params[at].Name)
		}
		v, err := a.Params[at].number(a.Params[at].what, p.Value)
		if err != nil {
			return bad("%v", err)
		}
		if call.Args[at] = v; len(v) != len(p.Value) {
			if out == in {
				out = &p4v1.Action{ActionId: a.ID, Params: slices.Clone(in.Params)}
			}
			out.Params[i] = &p4v1.Action_Param{ParamId: p.ParamId, Value: v}
		}
	}
	for i, v := range call.Args {
		if v == nil {
			return bad("parameter %q is missing", a.Params[i].Name)
		}
	}
	return out, nil
}
