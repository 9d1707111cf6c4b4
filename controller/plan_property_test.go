package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/tests/switchtest"
)

// written holds the updates that the rig's switches got since the last read.
type written struct {
	mu   sync.Mutex
	list map[uint64][]*p4v1.Update // by device
}

func (w *written) take() map[uint64][]*p4v1.Update {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = map[uint64][]*p4v1.Update{}
	return list
}

func (w *written) record(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if r, is := r.(*p4v1.WriteRequest); is {
		w.mu.Lock()
		w.list[r.GetDeviceId()] = append(w.list[r.GetDeviceId()], proto.Clone(r).(*p4v1.WriteRequest).GetUpdates()...) // the server takes r apart
		w.mu.Unlock()
	}
	return next(ctx, r)
}

// editRig is a fabric that is edited at random. Only apply and SetLink change its switches.
type editRig struct {
	t         *testing.T
	rnd       *rand.Rand
	c         *Controller
	addresses []string // that the fabric may use
	writes    *written
	budgets   *weights.Registry
	channels  *priority.Registry
	file      object
	held      map[string]map[string]string // the switches' entries according to the plans, by switch
}

type object = map[string]any

// TestPlanIsWhatApplyChanges makes a thousand random edits to random fabrics. Each plan equals the writes of its apply
// and the changes in the controller, with the same old and new values. plan refuses exactly the files that apply
// refuses, and a plan without changes means an apply without changes.
func TestPlanIsWhatApplyChanges(t *testing.T) {
	const edits = 50
	fabrics := 20
	if race.Enabled { // make realtime runs all of them
		fabrics = 2
	}
	refused, changed := 0, 0
	for seed := range uint64(fabrics) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newEditRig(t, seed)
			for range edits {
				switch r.step() {
				case stepRefused:
					refused++
				case stepChanged:
					changed++
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	t.Logf("%d of %d edits were refused, %d changed something", refused, fabrics*edits, changed)
	if !t.Failed() && (changed < fabrics*edits/2 || refused == 0) {
		t.Error("too few edits change something, or none is refused")
	}
}

func newEditRig(t *testing.T, seed uint64) *editRig {
	r := &editRig{
		t: t, rnd: rand.New(rand.NewPCG(seed, 37)), writes: &written{list: map[uint64][]*p4v1.Update{}},
		budgets: weights.New(weights.Options{}), channels: priority.New(nil), held: map[string]map[string]string{},
	}
	for i := range 3 {
		s := switchtest.New(t, uint64(i+1))
		s.Externs = true
		s.Lose()
		s.Start(grpc.ChainUnaryInterceptor(r.writes.record))
		r.addresses = append(r.addresses, s.Address())
	}
	o := options()
	o.Log = slog.New(slog.DiscardHandler)
	o.Participants = []Participant{r.budgets, r.channels}
	r.c, _ = (&fabric{t: t}).controller(o)
	r.file = object{
		"name": "random", "scale": 1000, "switches": []any{r.newSwitch(0), r.newSwitch(1)}, "hosts": []any{}, "links": []any{},
		"controller": object{"poll_interval": "off", "probe_interval": "off", "unreachable_after": "off", "resync_interval": "off"},
	}
	r.link("s1:1", "s2:1")
	r.host(0)
	r.host(1)
	r.apply(r.file)
	return r
}

func (r *editRig) newSwitch(i int) object {
	return object{"name": fmt.Sprintf("s%d", i+1), "device_id": i + 1, "address": r.addresses[i], "target": "embedded"}
}

func (r *editRig) link(a, b string) {
	r.file["links"] = append(r.file["links"].([]any), object{"a": a, "b": b, "rate": "100Mbps", "delay": "1us"})
}

// host adds a host to a switch, at a random port, which may be taken.
func (r *editRig) host(i int) {
	n, port := 1+r.rnd.IntN(200), 10+r.rnd.IntN(20)
	name := fmt.Sprintf("h%d-%d", i+1, n)
	r.file["hosts"] = append(r.file["hosts"].([]any), object{"name": name, "ipv4": fmt.Sprintf("10.0.%d.%d", i+1, n)})
	r.link(fmt.Sprintf("s%d:%d", i+1, port), name)
}

// The outcomes of an edit.
const (
	stepSame = iota
	stepRefused
	stepChanged
)

// step makes an edit, or another change that an operator may make between two applies.
func (r *editRig) step() int {
	links := r.c.Config().Links
	switch l := links[r.rnd.IntN(len(links))]; {
	case r.rnd.IntN(12) == 0:
		if err := r.c.SetLink(r.t.Context(), l.A.String(), l.B.String(), r.rnd.IntN(3) == 0); err != nil {
			r.t.Fatal(err)
		}
		r.settle()
		r.update(nil)
	case r.rnd.IntN(8) == 0:
		_ = r.budgets.SetBudget(weights.Caller{}, pick(r, "default", "web", "db"), float64(r.rnd.IntN(9)))
	}
	before := copyOf(r.t, r.file)
	for range 1 + r.rnd.IntN(2) {
		r.edit()
	}
	next := r.file
	r.file = before
	return r.apply(next)
}

func pick[T any](r *editRig, list ...T) T { return list[r.rnd.IntN(len(list))] }

// edit changes the file at random; the result may be invalid.
func (r *editRig) edit() {
	section := func(key string) object {
		s, _ := r.file[key].(object)
		if s == nil {
			s = object{}
			r.file[key] = s
		}
		return s
	}
	switches, links := r.file["switches"].([]any), r.file["links"].([]any)
	if len(links) == 0 { // an edit took the last one
		r.link("s1:1", "s2:1")
		return
	}
	sw, li := switches[r.rnd.IntN(len(switches))].(object), links[r.rnd.IntN(len(links))].(object)
	own := func(of object, key string, v object) { // the switch's own section, or none
		if of[key] != nil && r.rnd.IntN(2) == 0 {
			delete(of, key)
		} else {
			of[key] = v
		}
	}
	switch n := r.rnd.IntN(26); n {
	case 0:
		r.file["scale"] = pick(r, 1000, 2000, 0)
	case 1, 2:
		list := []any{}
		for _, name := range []string{"default", "web", "db"} {
			if r.rnd.IntN(2) == 0 {
				list = append(list, object{"name": name, "budget": pick(r, 1, 2, 2.5, 1000)})
			}
		}
		r.file["applications"] = list
	case 3:
		r.host(r.rnd.IntN(len(switches)))
	case 4:
		hosts := r.file["hosts"].([]any)
		if len(hosts) == 0 {
			return
		}
		at := r.rnd.IntN(len(hosts))
		name := hosts[at].(object)["name"]
		r.file["hosts"] = slices.Delete(hosts, at, at+1)
		r.file["links"] = slices.DeleteFunc(links, func(l any) bool { return l.(object)["b"] == name })
	case 5:
		li["rate"] = pick(r, "100Mbps", "50Mbps", "1Gbps")
	case 6:
		li["delay"] = pick(r, "1us", "2us", "0s", "10us")
	case 7:
		p := fmt.Sprint(2 + r.rnd.IntN(3))
		r.link("s1:"+p, "s2:"+p)
	case 8:
		if at := r.rnd.IntN(len(links)); strings.HasPrefix(links[at].(object)["b"].(string), "s") {
			r.file["links"] = slices.Delete(links, at, at+1)
		}
	case 9:
		if len(switches) == 2 {
			r.file["switches"] = append(switches, r.newSwitch(2))
			r.link("s1:7", "s3:1")
			r.link("s2:7", "s3:2")
		} else {
			r.file["switches"] = switches[:2]
			r.file["hosts"] = slices.DeleteFunc(r.file["hosts"].([]any), func(h any) bool { return strings.HasPrefix(h.(object)["name"].(string), "h3-") })
			r.file["links"] = slices.DeleteFunc(links, func(l any) bool { return strings.Contains(fmt.Sprint(l), "s3:") })
		}
	case 10:
		sw["ports"] = []any{object{"number": 1, "rate": pick(r, "100Mbps", "20Mbps"), "queue_limit": pick(r, "1MB", "64KB")}}
	case 11:
		section("qos")["queue_limit"] = pick(r, "1MB", "2MB", "100KB")
	case 12:
		section("qos")["classes"] = []any{object{"dscp": 0, "class": 0}, object{"dscp": pick(r, 8, 26, 48), "class": pick(r, 1, 3, 6), "queue": r.rnd.IntN(8)}}
	case 13:
		section("qos")["ecn"] = []any{object{"queue": pick(r, 0, 1), "kmin": pick(r, "10KB", "100KB"), "kmax": "400KB", "pmax": pick(r, 0.1, 0.2)}}
	case 14:
		own(r.file, "prioplus", object{"base_rtt": pick(r, "8us", "9us"), "priorities": pick(r, 2, 4, 8)})
	case 15:
		own(r.file, "soze", object{"p": pick(r, "3us", "4us"), "k": "37us", "m": pick(r, 0.2, 0.3, 5.0)})
	case 16:
		own(r.file, "punt", object{"rate": pick(r, 0, 100, 50), "burst": pick(r, 10, 100)})
	case 17:
		own(r.file, "source_check", object{"edge_ports": pick(r, true, false)})
	case 18:
		own(r.file, "gateway", object{"ipv4": pick(r, "169.254.1.1", "off", "10.9.9.9"), "proxy": pick(r, true, false)})
	case 19:
		r.file["name"] = pick(r, "random", "other")
	case 20:
		own(r.file, "buffer", object{"policy": pick(r, "dsh", "dt", "sih", "spfc", "static"), "size": pick(r, "4MB", "8MB", "1KB"), "lossless": []any{0}, "threshold": "100KB", "alpha": pick(r, "1/8", "1"), "dsh": object{"log_bits": 2, "exp_bits": 2, "entries": 8}})
	case 21:
		own(sw, "buffer", object{"alpha": pick(r, "1/4", "2"), "pause_quanta": pick(r, 65535, 1000)})
	case 22:
		own(r.file, "ecmp", object{"hash": pick(r, "five-tuple", "queue-pair", "flow-label"), "seed": r.rnd.IntN(3)})
	case 23:
		own(r.file, "pfc_watchdog", object{"detection_time": pick(r, "200ms", "off"), "restoration_time": "400ms", "share": pick(r, 0.98, 1), "action": pick(r, "drop", "forward")})
	case 24:
		own(r.file, "pacc", object{"enabled": pick(r, true, false), "interval": pick(r, "80us", "90us"), "force": true, "max_flows": pick(r, 100, 200)})
	case 25:
		section("controller")["comparisons"] = pick(r, 1, 16, 0)
	}
}

func copyOf(t *testing.T, o object) (out object) {
	text, err := yaml.Marshal(o)
	if err == nil {
		err = yaml.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply plans a file, applies it, and compares the two.
func (r *editRig) apply(file object) int {
	r.t.Helper()
	text, err := yaml.Marshal(file)
	if err != nil {
		r.t.Fatal(err)
	}
	was := r.c.Config()
	own := r.own()
	plan, planned := r.c.Plan(r.t.Context(), "f", text, 0)
	if n := len(r.writes.take()); n > 0 {
		r.t.Fatal("a plan writes")
	}
	_, results, applied := r.c.Apply(r.t.Context(), "f", text)
	if planned != nil || applied != nil {
		if planned == nil || applied == nil {
			r.t.Fatalf("plan says %v, apply %v, of\n%s", planned, applied, text)
		}
		if got := r.own(); !reflect.DeepEqual(got, own) || len(r.writes.take()) > 0 {
			r.t.Fatalf("an apply that is refused changes something: %v, %v", pb.Diff("", own, got), applied)
		}
		return stepRefused
	}
	for _, res := range results {
		if res.Error != "" {
			r.t.Fatalf("%s: %s, of\n%s", res.Name, res.Error, text)
		}
	}
	r.file = file
	r.update(plan.Switches)
	r.patch("controller", own, plan.Controller)
	if got := r.own(); !maps.Equal(got, own) {
		r.t.Fatalf("the plan leaves out %v, of\n%s", pb.Diff("", own, got), text)
	}
	if was != nil && !reflect.DeepEqual(parts(was), parts(r.c.Config())) && len(plan.Controller) == 0 {
		r.t.Fatalf("the plan leaves out a change of the configuration from\n%s\nto\n%s", was.Source, text)
	}
	if len(plan.Controller) > 0 || slices.ContainsFunc(plan.Switches, func(p *pb.SwitchPlan) bool { return len(p.Changes) > 0 }) {
		return stepChanged
	}
	return stepSame
}

// parts returns all settings of a configuration.
func parts(c *config.Config) []any {
	list := []any{c.Name, c.Scale, c.Switches, c.Hosts, c.Links, c.Applications, c.Controller}
	for _, s := range Sections() {
		list = append(list, c.Section(s.Key))
	}
	return list
}

// own returns the controller's own state, by table and key.
func (r *editRig) own() map[string]string {
	list := map[string]string{}
	add := func(table string, by map[string]string) {
		for key, v := range by {
			list[table+" "+key] = v
		}
	}
	if c := r.c.Config(); c != nil {
		add("configuration", c.Values(Sections()...))
	}
	for _, b := range r.budgets.Budgets() {
		if b.Limit != 0 {
			list["budget "+b.Application] = b.Limit.String()
		}
	}
	plan, _ := r.channels.Plan()
	channels, _ := r.channels.List()
	for _, p := range channels {
		list[fmt.Sprintf("channel priority %d", p.Number)] = fmt.Sprintf("target %v, limit %v over a base of %v", p.Channel.Target, p.Channel.Limit, plan.Base)
	}
	for _, p := range r.c.HostParameters() {
		list["host parameter "+strings.TrimSpace(p.Law+" "+p.Name)] = p.Value
	}
	add("link", r.c.links.disabled())
	return list
}

// settle waits until the switches have their desired state.
func (r *editRig) settle() {
	for _, res := range r.c.awaitResults(r.t.Context(), r.c.snapshot()) {
		if res.Error != "" {
			r.t.Fatal(res)
		}
	}
}

// patch applies changes to values. The old values must be those that the changes name.
func (r *editRig) patch(who string, values map[string]string, list []*pb.Change) {
	for _, c := range list {
		key := c.Table + " " + c.Key
		old, is := values[key]
		if is == (c.Kind == pb.Change_KIND_INSERT) || old != c.Old || c.Kind == pb.Change_KIND_MODIFY && c.Old == c.New {
			r.t.Errorf("%s has %q (%v): %v", who, old, is, c)
		}
		if c.Kind == pb.Change_KIND_DELETE {
			delete(values, key)
		} else {
			values[key] = c.New
		}
	}
}

// update compares a switch's writes with a plan (nil for none), and records them.
func (r *editRig) update(plans []*pb.SwitchPlan) {
	got := r.writes.take()
	for _, s := range r.c.Config().Switches {
		var plan []*pb.Change
		for _, p := range plans {
			if p.Name == s.Name {
				plan = p.Changes
			}
		}
		if r.held[s.Name] == nil || len(plan) > 0 && plan[0].Table == "pipeline" {
			r.held[s.Name] = map[string]string{}
		}
		pipe, err := r.c.opts.Pipelines(r.c.Config(), s)
		if err != nil {
			r.t.Fatal(err)
		}
		var wrote []*pb.Change
		for _, u := range got[s.DeviceID] {
			named := pipe.Named(u.GetEntity())
			c := &pb.Change{Kind: pb.Change_Kind(u.GetType()), New: named.Value()}
			c.Table, c.Key = named.Place()
			old, known := r.held[s.Name][c.Table+" "+c.Key]
			if c.Kind == pb.Change_KIND_MODIFY && !known { // a default entry with the program's own value
				for _, p := range plan {
					if p.Table == c.Table && p.Key == c.Key {
						old = p.Old
					}
				}
				r.held[s.Name][c.Table+" "+c.Key] = old
			}
			c.Old = old
			if c.Kind == pb.Change_KIND_DELETE {
				c.New = ""
			}
			wrote = append(wrote, c)
		}
		r.patch(s.Name, r.held[s.Name], wrote)
		if plans == nil {
			continue
		}
		pushed := len(plan) > 0 && plan[0].Table == "pipeline"
		plan = slices.DeleteFunc(slices.Clone(plan), func(c *pb.Change) bool {
			// A program has default entries, which are unknown before the switch runs it.
			asIs := pushed && c.Kind == pb.Change_KIND_MODIFY && !slices.ContainsFunc(wrote, func(w *pb.Change) bool { return sameChange(w, c) })
			if asIs {
				r.held[s.Name][c.Table+" "+c.Key] = c.New
			}
			return c.Table == "pipeline" || asIs
		})
		if !slices.EqualFunc(plan, wrote, sameChange) {
			r.t.Errorf("%s: the plan has\n%v\nand the switch got\n%v", s.Name, plan, wrote)
		}
	}
}
