package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/units"
)

func watchEvents(ctx context.Context, e *env, recent uint32) error {
	stream, err := e.fabric().WatchEvents(ctx, &pb.WatchEventsRequest{Recent: recent})
	if err != nil {
		return err
	}
	return follow(ctx, e, stream, follower[*pb.Event]{lines: func(v *pb.Event) []string {
		severity := strings.TrimPrefix(v.GetSeverity().String(), "SEVERITY_")
		return []string{fmt.Sprintf("%s %-7s %-12s %-18s %s", clock(v.GetTime()), severity, v.GetSubject(), v.GetKind(), v.GetMessage())}
	}})
}

func watchTelemetry(ctx context.Context, e *env, switches []string) error {
	stream, err := e.fabric().StreamTelemetry(ctx, &pb.StreamTelemetryRequest{Switches: switches})
	if err != nil {
		return err
	}
	type key struct {
		node string
		port uint32
	}
	type state struct {
		sample *pb.TelemetrySample
		rate   units.Rate
	}
	ports := map[key]state{}
	missed := uint64(0)
	at := func(v *pb.TelemetrySample) key { return key{v.GetSwitch(), v.GetPort()} }
	cells := func(s state) []any {
		v := s.sample
		queued := uint64(0)
		for _, b := range v.GetQueueBytes() {
			queued += uint64(b)
		}
		return []any{v.GetSwitch(), v.GetPort(), v.GetPeer(), s.rate, units.Bytes(queued), duration(v.GetQueueingDelay()), v.GetDrops()}
	}
	return follow(ctx, e, stream, follower[*pb.TelemetrySample]{
		record: func(v *pb.TelemetrySample) {
			s := state{sample: v}
			if old := ports[at(v)].sample; old != nil && v.GetDepartureBytes() >= old.GetDepartureBytes() {
				s.rate = units.RateOf(units.Bytes(v.GetDepartureBytes()-old.GetDepartureBytes()),
					units.FromDuration(v.GetTime().AsTime().Sub(old.GetTime().AsTime())))
			}
			ports[at(v)] = s
			missed += v.GetMissed()
		},
		lines: func(v *pb.TelemetrySample) []string {
			var out []string
			if v.GetMissed() > 0 {
				out = append(out, "missed "+units.Count(v.GetMissed(), "sample"))
			}
			c := cells(ports[at(v)])
			return append(out, clock(v.GetTime())+fmt.Sprintf(" %s:%d to %s  rate %v  queued %v  delay %v  drops %d", c...))
		},
		draw: func(w io.Writer) {
			row(w, "SWITCH", "PORT", "PEER", "RATE", "QUEUED", "DELAY", "DROPS")
			for _, k := range slices.SortedFunc(maps.Keys(ports), func(a, b key) int {
				return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.port, b.port))
			}) {
				row(w, cells(ports[k])...)
			}
			if missed > 0 {
				_, _ = fmt.Fprintf(w, "missed %s\n", units.Count(missed, "sample"))
			}
		},
	})
}

func watchWeights(ctx context.Context, e *env, application string) error {
	stream, err := e.weight().WatchWeights(ctx, &pb.WatchWeightsRequest{Application: application})
	if err != nil {
		return err
	}
	flows, budgets := map[string]*pb.FlowWeight{}, map[string]*pb.Budget{}
	return follow(ctx, e, stream, follower[*pb.WeightUpdate]{
		record: func(u *pb.WeightUpdate) {
			switch {
			case u.GetFull():
				clear(flows)
				clear(budgets)
			case u.GetBudget() != nil:
				budgets[u.GetBudget().GetApplication()] = u.GetBudget()
			case u.GetFlow() == nil:
			case u.GetDeleted():
				delete(flows, flowText(u.GetFlow().GetFlow()))
			default:
				flows[flowText(u.GetFlow().GetFlow())] = u.GetFlow()
			}
		},
		lines: func(u *pb.WeightUpdate) []string {
			now := clock(timestamppb.New(e.Now()))
			switch {
			case u.GetFull() && u.GetMissed() > 0:
				return []string{fmt.Sprintf("%s missed %s; the full state follows", now, units.Count(u.GetMissed(), "change"))}
			case u.GetBudget() != nil:
				return []string{fmt.Sprintf("%s application %s budget %s", now, u.GetBudget().GetApplication(), limit(u.GetBudget().GetLimit()))}
			case u.GetFlow() == nil:
				return nil
			case u.GetDeleted():
				return []string{fmt.Sprintf("%s %s deleted", now, flowText(u.GetFlow().GetFlow()))}
			}
			return []string{fmt.Sprintf("%s %s application %s weight %v", now, flowText(u.GetFlow().GetFlow()), u.GetFlow().GetApplication(), u.GetFlow().GetWeight())}
		},
		draw: func(w io.Writer) {
			sums := map[string]float64{}
			var list []*pb.FlowWeight
			for _, k := range slices.Sorted(maps.Keys(flows)) {
				list = append(list, flows[k])
				sums[flows[k].GetApplication()] += flows[k].GetWeight()
			}
			var limits []*pb.Budget
			for _, name := range slices.Sorted(maps.Keys(budgets)) {
				limits = append(limits, &pb.Budget{Application: name, Limit: budgets[name].GetLimit(), Used: sums[name]})
			}
			drawWeights(w, list, limits)
		},
	})
}

func watchFlows(ctx context.Context, e *env) error {
	stream, err := e.host().WatchFlows(ctx, &pb.WatchFlowsRequest{})
	if err != nil {
		return err
	}
	hosts := map[string]*pb.HostReport{}
	return follow(ctx, e, stream, follower[*pb.HostReport]{
		record: func(r *pb.HostReport) {
			if r.GetDetached() {
				delete(hosts, r.GetHost())
				return
			}
			hosts[r.GetHost()] = r
		},
		lines: func(r *pb.HostReport) []string {
			if r.GetDetached() {
				return []string{fmt.Sprintf("%s %s left", clock(timestamppb.New(e.Now())), r.GetHost())}
			}
			var out []string
			for _, f := range r.GetFlows() {
				out = append(out, fmt.Sprintf("%s %s %s  weight %v  rate %v  maxqd %v  rtt %v", clock(r.GetTime()), r.GetHost(), flowText(f.GetFlow()),
					f.GetWeight(), units.Rate(f.GetRateBps()), duration(f.GetMaxQd()), duration(f.GetRtt())))
			}
			return out
		},
		draw: func(w io.Writer) {
			flowHead(w, e.Wide)
			for _, name := range slices.Sorted(maps.Keys(hosts)) {
				flowRows(w, hosts[name], e.Wide)
			}
		},
	})
}

func newWatchCommand() *cobra.Command {
	var recent uint32
	events := ask("events", "Events: sessions, ports, reconciles, configurations", func(ctx context.Context, e *env) error {
		return watchEvents(ctx, e, recent)
	})
	events.Flags().Uint32VarP(&recent, "last", "n", 10, "`number` of past events to begin with")
	var app string
	weights := ask("weights", "The flows' weights, then every change", func(ctx context.Context, e *env) error {
		return watchWeights(ctx, e, app)
	})
	weights.Flags().StringVar(&app, "app", "", "only this `application`")
	completeFlag(weights, "app", applicationNames)
	var switches []string
	telemetry := ask("telemetry", "Queues, delays and rates of the ports", func(ctx context.Context, e *env) error {
		return watchTelemetry(ctx, e, switches)
	})
	telemetry.Flags().StringSliceVar(&switches, "switch", nil, "only these `switches`")
	completeFlag(telemetry, "switch", switchNames)

	cmd := &cobra.Command{Use: "watch", Short: "Follow events, telemetry, weights or flows: a live table on a terminal, else lines"}
	command.AddOutputFlag(cmd)
	return command.OneOf(cmd, events, telemetry, weights,
		ask("flows", "Rates, weights and delays of the flows, from hosts' reports", watchFlows))
}
