// Package gnmiport learns from a switch which of its ports are up. P4Runtime has no port state, but many switches
// serve gNMI at the same address, and OpenConfig's interfaces have an oper-status.
package gnmiport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// Numbers says how a gNMI model numbers ports. Leaf is the leaf of an interface's state that holds the port's number in
// P4Runtime. All is set if one subscription may name all interfaces.
type Numbers struct {
	Leaf string
	All  bool
}

// The leaves of known models.
var (
	// OpenConfig is openconfig-p4rt's model, which the embedded switch serves.
	OpenConfig = Numbers{Leaf: "id", All: true}
	// Stratum takes oper-status of one interface at a time, and calls the number ifindex.
	Stratum = Numbers{Leaf: "ifindex"}
)

// errNone is a switch without interfaces.
var errNone = errors.New("it shows no interfaces")

// Follow calls tell with the state of all ports of a switch, by number, whenever it changes. It
// returns the reason when ctx ends or the switch ends the stream. A switch without gNMI costs one
// call. tell may keep the maps.
func Follow(ctx context.Context, conn grpc.ClientConnInterface, n Numbers, tell func(map[uint32]pb.PortStatus_State)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := gpb.NewGNMIClient(conn)
	ports, err := numbers(ctx, client, n.Leaf)
	if err != nil {
		return err
	}
	if len(ports) == 0 {
		return errNone
	}
	list := &gpb.SubscriptionList{Mode: gpb.SubscriptionList_STREAM, Encoding: gpb.Encoding_PROTO}
	add := func(name string) {
		list.Subscription = append(list.Subscription, &gpb.Subscription{Path: state(name, "oper-status"), Mode: gpb.SubscriptionMode_ON_CHANGE})
	}
	if n.All {
		add("*")
	} else {
		for name := range ports {
			add(name)
		}
	}
	known := map[uint32]pb.PortStatus_State{}
	return subscribe(ctx, client, list, func(n *gpb.Notification) {
		before := maps.Clone(known)
		each(n, func(name string, v *gpb.TypedValue) {
			if port, ok := ports[name]; ok {
				known[port] = states[v.GetStringVal()]
			}
		})
		if !maps.Equal(before, known) {
			tell(maps.Clone(known))
		}
	})
}

// states are the oper-status values of OpenConfig that count as a port's state.
var states = map[string]pb.PortStatus_State{
	"UP": pb.PortStatus_STATE_UP, "DOWN": pb.PortStatus_STATE_DOWN, "LOWER_LAYER_DOWN": pb.PortStatus_STATE_DOWN, "NOT_PRESENT": pb.PortStatus_STATE_DOWN,
}

// numbers returns the ports' numbers by the names of their interfaces.
func numbers(ctx context.Context, client gpb.GNMIClient, leaf string) (map[string]uint32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := &gpb.SubscriptionList{
		Mode: gpb.SubscriptionList_ONCE, Encoding: gpb.Encoding_PROTO,
		Subscription: []*gpb.Subscription{{Path: state("*", leaf)}},
	}
	ports := map[string]uint32{}
	err := subscribe(ctx, client, list, func(n *gpb.Notification) {
		each(n, func(name string, v *gpb.TypedValue) {
			if v != nil {
				ports[name] = uint32(v.GetUintVal())
			}
		})
	})
	return ports, err
}

// state is the path of a leaf of an interface's state.
func state(name, leaf string) *gpb.Path {
	return &gpb.Path{Elem: []*gpb.PathElem{
		{Name: "interfaces"}, {Name: "interface", Key: map[string]string{"name": name}}, {Name: "state"}, {Name: leaf},
	}}
}

// each calls f with each interface in a notification and its value, nil for a deleted one.
func each(n *gpb.Notification, f func(name string, v *gpb.TypedValue)) {
	name := func(p *gpb.Path) string {
		for _, list := range [][]*gpb.PathElem{n.GetPrefix().GetElem(), p.GetElem()} {
			for _, e := range list {
				if _, bare, ok := strings.Cut(e.GetName(), ":"); e.GetName() == "interface" || ok && bare == "interface" {
					return e.GetKey()["name"]
				}
			}
		}
		return ""
	}
	for _, p := range n.GetDelete() {
		f(name(p), nil)
	}
	for _, u := range n.GetUpdate() {
		f(name(u.GetPath()), u.GetVal())
	}
}

// subscribe passes the notifications of a subscription to take. With mode ONCE it returns nil once all have come;
// otherwise it goes on until the stream ends.
func subscribe(ctx context.Context, client gpb.GNMIClient, list *gpb.SubscriptionList, take func(*gpb.Notification)) error {
	stream, err := client.Subscribe(ctx)
	if err != nil {
		return err
	}
	// If sending fails, Recv returns the reason.
	_ = stream.Send(&gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Subscribe{Subscribe: list}})
	for {
		r, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("gNMI: %w", err)
		}
		if r.GetSyncResponse() && list.GetMode() == gpb.SubscriptionList_ONCE {
			return nil
		}
		take(r.GetUpdate())
	}
}
