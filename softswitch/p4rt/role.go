package p4rt

import (
	"fmt"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// scope is what a role may do, decoded from its configuration. A nil scope is full access.
//
// P4Runtime leaves the form of role.config to server and client. Here it is a
// google.protobuf.Struct with up to three fields. A missing field allows everything:
//
//	objects:    list of names of P4Info objects (tables, counters, …) that the role writes,
//	            reads when it asks by role, and is notified of; a final * matches any rest,
//	            and "pre" is the packet replication engine
//	packet_in:  bool, whether its primary receives packet-ins
//	packet_out: bool, whether its primary may send packet-outs
type scope struct {
	all       bool
	names     map[string]bool
	prefixes  []string
	packetIn  bool
	packetOut bool
}

func parseScope(cfg *anypb.Any) (*scope, error) {
	if cfg == nil {
		return nil, nil
	}
	var st structpb.Struct
	if err := cfg.UnmarshalTo(&st); err != nil {
		return nil, fmt.Errorf("it is %q, allowed is a google.protobuf.Struct: %w", cfg.TypeUrl, err)
	}
	sc := &scope{all: true, names: map[string]bool{}, packetIn: true, packetOut: true}
	for key, v := range st.Fields {
		switch key {
		case "objects":
			list, ok := v.Kind.(*structpb.Value_ListValue)
			if !ok {
				return nil, fmt.Errorf("objects is not a list")
			}
			sc.all = false
			for i, x := range list.ListValue.GetValues() {
				name, ok := x.GetKind().(*structpb.Value_StringValue)
				if !ok || name.StringValue == "" {
					return nil, fmt.Errorf("objects[%d] is not a name", i)
				}
				if p, wild := strings.CutSuffix(name.StringValue, "*"); wild {
					sc.prefixes = append(sc.prefixes, p)
				} else {
					sc.names[name.StringValue] = true
				}
			}
		case "packet_in", "packet_out":
			b, ok := v.Kind.(*structpb.Value_BoolValue)
			if !ok {
				return nil, fmt.Errorf("%s is not a bool", key)
			}
			if key == "packet_in" {
				sc.packetIn = b.BoolValue
			} else {
				sc.packetOut = b.BoolValue
			}
		default:
			return nil, fmt.Errorf("field %q is unknown, allowed are objects, packet_in and packet_out", key)
		}
	}
	return sc, nil
}

func checkRoleConfig(key arbitration.RoleKey, cfg *anypb.Any) error {
	if key == (arbitration.RoleKey{}) {
		return fmt.Errorf("the default role has full access and takes no configuration")
	}
	_, err := parseScope(cfg)
	return err
}

// allows reports whether the object with an id is in scope; 0 is the packet replication
// engine.
func (sc *scope) allows(s *schema.Schema, id uint32) bool {
	if sc == nil || sc.all {
		return true
	}
	name := "pre"
	if id != 0 {
		name = s.NameOf(id)
	}
	if sc.names[name] {
		return true
	}
	for _, p := range sc.prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// mayWrite checks the sender of a request that changes the switch, and returns the sender's scope.
func (s *Server) mayWrite(device uint64, key arbitration.RoleKey, election *p4v1.Uint128) (*scope, error) {
	s.arbMu.Lock()
	defer s.arbMu.Unlock()
	return s.scopes[key], s.arb.MayWrite(device, key, election)
}
