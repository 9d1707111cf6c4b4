package northbound

import (
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// FabricToProto returns a fabric as the API has it.
func FabricToProto(f view.Fabric) *pb.GetFabricResponse {
	out := &pb.GetFabricResponse{Name: clean(f.Name), Config: clean(f.Config), Generation: f.Generation}
	for _, s := range f.Switches {
		out.Switches = append(out.Switches, &pb.Switch{Name: clean(s.Name), DeviceId: s.DeviceID, Address: clean(s.Address)})
	}
	for _, h := range f.Hosts {
		host := &pb.Host{Name: clean(h.Name), Mac: clean(h.MAC)}
		for _, ip := range h.Addresses {
			if ip.Is4() {
				host.Ipv4 = ip.String()
			} else {
				host.Ipv6 = ip.String()
			}
		}
		out.Hosts = append(out.Hosts, host)
	}
	for _, l := range f.Links {
		out.Links = append(out.Links, &pb.Link{
			A: endpointToProto(l.A), B: endpointToProto(l.B), RateBps: l.RateBPS, Delay: view.Duration(l.Delay), State: l.State, Reason: clean(l.Reason),
		})
	}
	return out
}

func endpointToProto(e view.Endpoint) *pb.Endpoint {
	return &pb.Endpoint{Node: clean(e.Node), Port: e.Port}
}

// SwitchToProto returns a switch as the API has it.
func SwitchToProto(s view.Switch) *pb.SwitchStatus {
	out := &pb.SwitchStatus{
		Name: clean(s.Name), DeviceId: s.DeviceID, Address: clean(s.Address), State: s.State, Error: clean(s.Err),
		Since: view.Stamp(s.Since), Entries: uint64(max(s.Entries, 0)), Reconciles: s.Reconciles,
		Features: s.Status, Status: tablesToProto(s.Status), ElectionId: clean(s.ElectionID), Program: s.Program, Tables: s.Tables,
	}
	for _, c := range s.Capabilities {
		out.Capabilities = append(out.Capabilities, &pb.Capability{Name: clean(c.Name), Supported: c.Supported, By: clean(c.By), Detail: clean(c.Detail)})
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, &pb.PortStatus{Port: p.Number, Peer: clean(p.Peer), State: p.State, Reason: clean(p.Reason)})
	}
	return out
}

// tablesToProto returns features' tables for people.
func tablesToProto(s *pb.FeatureStatus) (list []*pb.StatusTable) {
	now := time.Now()
	for _, t := range view.Tables {
		rows := t.Rows(s)
		if len(rows) == 0 {
			continue
		}
		out := &pb.StatusTable{Feature: t.Feature, Name: t.Name, Keys: t.Keys}
		for _, c := range t.Columns {
			out.Columns = append(out.Columns, &pb.StatusColumn{Head: c.GetHead(), Metric: c.GetMetric(), Help: c.GetHelp()})
		}
		for _, r := range rows {
			row := &pb.StatusRow{Keys: r.Keys}
			for _, v := range r.Values {
				row.Values = append(row.Values, valueToProto(v, now))
			}
			out.Rows = append(out.Rows, row)
		}
		list = append(list, out)
	}
	return list
}

func valueToProto(v any, now time.Time) *pb.StatusValue {
	out := &pb.StatusValue{Shown: view.Text(v, now)}
	switch v := v.(type) {
	case string:
		out.Value = &pb.StatusValue_Text{Text: v}
	case bool:
		out.Value = &pb.StatusValue_Truth{Truth: v}
	case uint64:
		out.Value = &pb.StatusValue_Count{Count: v}
	case float64:
		out.Value = &pb.StatusValue_Number{Number: v}
	case units.Bytes:
		out.Value = &pb.StatusValue_Bytes{Bytes: uint64(v)}
	case time.Duration:
		out.Value = &pb.StatusValue_Ns{Ns: uint64(v)}
	case time.Time:
		out.Value = &pb.StatusValue_Time{Time: view.Stamp(v)}
	}
	return out
}

// PlansToProto returns the plans of switches, and of what has no name, as the API has them.
func PlansToProto(plans []view.Plan, notes []string) *pb.PlanConfigResponse {
	out := &pb.PlanConfigResponse{Notes: notes}
	for _, p := range plans {
		if p.Switch == "" {
			out.Controller = planToProto(p).GetChanges()
			continue
		}
		out.Switches = append(out.Switches, planToProto(p))
	}
	return out
}

func planToProto(p view.Plan) *pb.SwitchPlan {
	out := &pb.SwitchPlan{Name: clean(p.Switch), Unreachable: clean(p.Unreachable), Tables: p.Tables}
	for _, n := range p.Notes {
		out.Notes = append(out.Notes, clean(n))
	}
	for _, c := range p.Changes {
		out.Changes = append(out.Changes, &pb.Change{
			Kind: c.Kind, Text: clean(c.String()), Table: clean(c.Table), Key: clean(c.Key), Old: clean(c.Old), New: clean(c.New),
		})
	}
	return out
}

// EventToProto returns an event as the API has it.
func EventToProto(e view.Event) *pb.Event {
	out := &pb.Event{
		Time: view.Stamp(e.Time), Severity: e.Severity, Subject: clean(e.Subject), Kind: clean(e.Kind), Message: clean(e.Message),
		Port: e.Port, Since: view.Stamp(e.Since),
	}
	if e.Class != nil {
		class := uint32(*e.Class)
		out.Class = &class
	}
	return out
}

func sampleToProto(s view.Sample) *pb.TelemetrySample {
	return &pb.TelemetrySample{
		Time: view.Stamp(s.Time), Switch: clean(s.Switch), Port: s.Port, Peer: clean(s.Peer), QueueBytes: s.QueueBytes[:],
		QueueingDelay: view.Duration(s.QueueingDelay), DepartureBytes: s.DepartureBytes, DeparturePackets: s.DeparturePackets, Drops: s.Drops,
	}
}

func keyFromProto(k *pb.FlowKey) (weights.Key, error) {
	return weights.NewKey(k.GetSrcIpv4(), k.GetDstIpv4(), k.GetSrcPort(), k.GetDstPort())
}

func keyToProto(k weights.Key) *pb.FlowKey {
	if k == (weights.Key{}) {
		return nil
	}
	return &pb.FlowKey{
		SrcIpv4: k.Src().Addr().String(), DstIpv4: k.Dst().Addr().String(), SrcPort: uint32(k.Src().Port()), DstPort: uint32(k.Dst().Port()),
	}
}

func flowToProto(f weights.Flow) *pb.FlowWeight {
	return &pb.FlowWeight{Flow: keyToProto(f.Key), Weight: f.Weight.Float(), Application: f.Application, Host: f.Host}
}

func budgetToProto(b weights.Budget) *pb.Budget {
	return &pb.Budget{Application: b.Application, Limit: b.Limit.Float(), Used: b.Used.Float()}
}

func entryToProto(e audit.Entry) *pb.AuditEntry {
	flow, _ := weights.ParseKey(e.Flow) // an entry about no flow has none
	return &pb.AuditEntry{
		Time: view.Stamp(e.Time), Peer: clean(e.Peer), Application: clean(e.Application), Flow: keyToProto(flow),
		Previous: e.Previous, Value: e.Value, What: e.What, Refused: clean(e.Refused), Subject: clean(e.Subject),
		Identity: clean(e.Identity), Before: clean(e.Before), After: clean(e.After), Count: uint32(max(e.Count, 0)),
	}
}
