package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/preview"
	"github.com/headgate/headgate/units"
)

// previewFlags choose the traffic of a preview.
type previewFlags struct {
	traffic, law string
	plot         string
	seed         uint64
	seeds        int
}

func (p *previewFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.traffic, "traffic", "", "traffic of the preview: a `file` with an experiment's flows (.yaml) or a trace (.csv) (default: what hosts reported and switches counted)")
	f.StringVar(&p.law, "law", "", "`law` of flows without a law of their own (default: dcqcn-vendor if switches mark or notify, else none)")
	f.StringVar(&p.plot, "plot", "", "draw the preview into this `file`, .svg, .png or .pdf")
	f.Uint64Var(&p.seed, "seed", 1, "seed of the preview's first run")
	f.IntVar(&p.seeds, "seeds", 3, "number of seeds of the preview")
}

// check finds flags that mean nothing without a preview.
func (p *previewFlags) check(f *pflag.FlagSet, on bool, with string) error {
	for _, name := range []string{"traffic", "law", "seed", "seeds", "plot"} {
		if f.Changed(name) && !on {
			return fmt.Errorf("--%s: belongs to a preview, want %s too", name, with)
		}
	}
	if p.seeds < 1 || p.seeds > maxSeeds {
		return fmt.Errorf("--seeds: %d is not allowed: want 1 to %d", p.seeds, maxSeeds)
	}
	if p.plot != "" {
		if err := plotting.Check(p.plot); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	return nil
}

const maxSeeds = 1000

// preview simulates traffic on the running configuration and on a new one, in this process. The controller only
// returns the running configuration and the traffic that it has seen.
func (p *previewFlags) preview(ctx context.Context, e *env, file, text string) (result *preview.Preview, generation uint64, err error) {
	planned, err := command.ParseConfig(file, text)
	if err != nil {
		return nil, 0, err
	}
	running, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return nil, 0, err
	}
	o := preview.Options{After: planned, Down: map[string]bool{}, Seed: p.seed, Seeds: p.seeds}
	if running.GetConfig() != "" {
		if o.Before, err = command.ParseConfig("the running configuration", running.GetConfig()); err != nil {
			return nil, 0, err
		}
	}
	for i, l := range running.GetLinks() {
		if l.GetState() == pb.PortStatus_STATE_DOWN && o.Before != nil && i < len(o.Before.Links) {
			o.Down[o.Before.Links[i].Name] = true
		}
	}
	if o.Traffic, err = p.load(ctx, e, cmp.Or(o.Before, planned)); err != nil {
		return nil, 0, err
	}
	show := command.NewProgress(os.Stderr)
	defer show.Clear()
	o.Watch = show.Update
	if result, err = preview.Run(ctx, o); err == nil && p.plot != "" {
		err = result.Plot(p.plot)
	}
	return result, running.GetGeneration(), err
}

// load returns the file's traffic, or the traffic that the controller has seen on the running configuration.
func (p *previewFlags) load(ctx context.Context, e *env, running *config.Config) (preview.Traffic, error) {
	law := cmp.Or(p.law, preview.DefaultLaw(running))
	if p.traffic != "" {
		return preview.ReadTraffic(p.traffic, law)
	}
	seen, err := e.host().GetTraffic(ctx, &pb.GetTrafficRequest{})
	if err != nil {
		return preview.Traffic{}, err
	}
	ports, err := portsOf(ctx, e, running, seen)
	if err != nil {
		return preview.Traffic{}, err
	}
	return preview.Observed(running, seen, ports, law)
}

// require predicts the effects of a configuration. If the prediction violates requirements, the error names all
// of them. Otherwise require sets two parts of r: the generation of the running configuration, so that the new
// one is applied only over it, and the predictions, which the controller compares with its measurements.
func (p *previewFlags) require(ctx context.Context, e *env, r *pb.ApplyConfigRequest, requirements []string) error {
	var list []preview.Requirement
	for _, text := range requirements {
		one, err := preview.ParseRequirement(text)
		if err != nil {
			return fmt.Errorf("--require: %w", err)
		}
		list = append(list, one)
	}
	predicted, generation, err := p.preview(ctx, e, r.GetFile(), r.GetConfig())
	if err != nil {
		return err
	}
	var missed []string
	for _, one := range list {
		if err := one.Check(predicted); err != nil {
			missed = append(missed, err.Error())
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("--require: %s; nothing was sent to the switches", strings.Join(missed, "; "))
	}
	if r.ExpectGeneration != nil && r.GetExpectGeneration() != generation {
		return fmt.Errorf("--expect-generation: is %d, but the prediction is for a change of generation %d, which is in force; nothing was sent to the switches", r.GetExpectGeneration(), generation)
	}
	r.ExpectGeneration = &generation
	r.PredictedTraffic = predicted.Traffic
	for _, m := range predicted.Measures {
		if v := value(m.After); v != nil {
			r.Predictions = append(r.Predictions, &pb.Prediction{Measure: m.Name, Unit: m.Unit, Mean: *v, Low: m.After.Low, High: m.After.High})
		}
	}
	return nil
}

func (p *previewFlags) print(ctx context.Context, e *env, m *pb.PlanConfigResponse, file, config string, table func(io.Writer)) error {
	if e.Format == command.Table { // the plan is visible while the preview runs
		if err := e.Tabs(table); err != nil {
			return err
		}
	}
	start := time.Now()
	result, _, err := p.preview(ctx, e, file, config)
	if err != nil {
		return err
	}
	if e.Format == command.Table {
		_, _ = fmt.Fprintln(e.Out)
		return e.drawPreview(result, time.Since(start))
	}
	plan, err := pb.JSON(m)
	if err != nil {
		return err
	}
	text, err := json.Marshal(struct {
		Plan    json.RawMessage  `json:"plan"`
		Preview *preview.Preview `json:"preview"`
	}{plan, result})
	if err != nil {
		return err
	}
	return e.Raw(text)
}

func (e *env) drawPreview(p *preview.Preview, took time.Duration) error {
	_, _ = fmt.Fprintf(e.Out, "Preview of %s, %s, times and rates at line rate; %.3g million packet-hops in %v.\n", command.Clean(p.Traffic), units.Count(p.Seeds, "seed"), float64(p.Hops)/1e6, took.Round(100*time.Millisecond))
	for _, n := range p.Notes {
		_, _ = fmt.Fprintf(e.Out, "! %s\n", command.Clean(n))
	}
	if err := e.Tabs(func(w io.Writer) { drawMeasures(w, p.Measures) }); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(e.Out)
	if err := e.Tabs(func(w io.Writer) { drawGroups(w, p.Groups) }); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(e.Out)
	return e.Tabs(func(w io.Writer) { drawLinks(w, p.Worst()) })
}

// drawMeasures shows each measure that has a value in any seed.
func drawMeasures(w io.Writer, list []preview.Measure) {
	row(w, "MEASURE", "UNIT", "BEFORE", "AFTER", "CHANGE")
	for _, m := range list {
		if value(m.Before) != nil || value(m.After) != nil {
			row(w, m.Name, m.Unit, m.Before, m.After, change(m.Before, m.After))
		}
	}
}

// value is a range's mean, nil without one.
func value(r *preview.Range) *float64 {
	if r == nil {
		return nil
	}
	return r.Mean
}

// change is the difference of two means in percent of the first.
func change(before, after *preview.Range) string {
	b, a := value(before), value(after)
	switch {
	case b == nil || a == nil:
		return "–"
	case *a == *b:
		return "="
	case *b == 0:
		return fmt.Sprintf("%+.3g", *a)
	}
	return fmt.Sprintf("%+.0f %%", 100*(*a-*b)/math.Abs(*b))
}

func drawGroups(w io.Writer, list []preview.Group) {
	row(w, "GROUP", "", "FLOWS", "ENDED", "VICTIMS", "GOODPUT Gb/s", "FCT µs", "SLOWDOWN")
	for _, g := range list {
		for _, side := range []struct {
			name string
			s    *preview.GroupSide
		}{{"before", g.Before}, {"after", g.After}} {
			if s := side.s; s != nil {
				row(w, g.Name, side.name, s.Flows, s.Done, s.Victims, s.Goodput, s.FCT, s.Slowdown)
			}
		}
	}
}

// mostLinks is how many links are listed, in the order of preview.Preview.Worst.
const mostLinks = 16

func drawLinks(w io.Writer, list []preview.Link) {
	row(w, "LINK", "PAUSED % BEFORE", "AFTER", "LOAD % BEFORE", "AFTER", "HEADROOM KB BEFORE", "AFTER", "DROPS BEFORE", "AFTER")
	for _, l := range list[:min(len(list), mostLinks)] {
		b, a := cmp.Or(l.Before, &preview.LinkSide{}), cmp.Or(l.After, &preview.LinkSide{})
		row(w, l.From+"→"+l.To, b.Paused, a.Paused, b.Load, a.Load, b.Headroom, a.Headroom, b.Drops, a.Drops)
	}
	if more := len(list) - mostLinks; more > 0 {
		_, _ = fmt.Fprintf(w, "%d more of %d with a PAUSE, headroom in use or drops\n", more, len(list))
	}
	if len(list) == 0 {
		_, _ = fmt.Fprintln(w, "no link is paused, has headroom in use or drops")
	}
}

// portWatch is how long ports are watched: about ten polls, which come every 100 ms by default.
const portWatch = time.Second

// portsOf gets the hosts' reports. If some of the configuration's hosts neither report nor were
// counted, it watches the ports for a second.
func portsOf(ctx context.Context, e *env, c *config.Config, seen *pb.GetTrafficResponse) (p preview.Ports, err error) {
	flows, err := e.host().ListFlows(ctx, &pb.ListFlowsRequest{})
	if err != nil {
		return p, err
	}
	if p.Hosts = flows.GetHosts(); len(p.Unseen(c, seen)) == 0 {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, portWatch)
	defer cancel()
	stream, err := e.fabric().StreamTelemetry(ctx, &pb.StreamTelemetryRequest{})
	if err != nil {
		return p, err
	}
	type port struct {
		node   string
		number uint32
	}
	first := map[port]*pb.TelemetrySample{}
	p.Rates = map[string]units.Rate{}
	for {
		v, err := stream.Recv()
		switch {
		case status.Code(err) == codes.DeadlineExceeded, errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return p, err
		}
		at := port{v.GetSwitch(), v.GetPort()}
		old := first[at]
		if old == nil || v.GetDepartureBytes() < old.GetDepartureBytes() { // the switch was restarted
			first[at] = v
		} else if took := v.GetTime().AsTime().Sub(old.GetTime().AsTime()); took > 0 && c.Host(v.GetPeer()) != nil {
			p.Rates[v.GetPeer()] = units.RateOf(units.Bytes(v.GetDepartureBytes()-old.GetDepartureBytes()), units.FromDuration(took))
		}
	}
}
