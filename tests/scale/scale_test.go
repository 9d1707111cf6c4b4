package scale

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/tests/lag"
)

var (
	sizes     = flag.String("sizes", "100,300,1000", "numbers of switches")
	entries   = flag.Int("entries", 1000, "hosts, which are reached by the prefixes of their leaves")
	scattered = flag.Bool("scattered", false, "the hosts of a leaf have no prefix in common, so that each is an entry of every switch")
	idle      = flag.Duration("idle", 20*time.Second, "how long the processor time of an idle fabric is measured")
	keys      = flag.String("keys", "poll_interval: 30s, probe_interval: 3s, probe_timeout: 9s", "keys of the section controller")
	plot      = flag.String("plot", "", "draw growth by size, or a soak's samples over time, into this file, an SVG or PNG")
	profile   = flag.String("profile", "", "keep the controller's heap profiles under this prefix, and those of its processor time in each part of TestScale")
)

// measured is the result for one size.
type measured struct {
	Switches int
	Entries  int     // of the switch with the fewest entries
	Ready    float64 // seconds from the start of the process until all switches were ready
	ReadyCPU float64 // processor seconds of the controller until then
	Heap     float64 // bytes, after a garbage collection, once all were ready
	RSS      float64 // bytes, at the same time
	Peak     float64 // bytes, the largest RSS in the whole run
	Farm     float64 // bytes of live heap of the process with the switches, once all were ready
	Down, Up event
	Idle     float64 // cores: processor time over time, without events
	Scrape   float64 // bytes
	ScrapeIn float64 // seconds
	Plan     float64 // seconds; the plan is empty
	PlanCPU  float64 // without Idle meanwhile
	Late     float64 // seconds, the machine's largest delay
	Lost     int     // sessions that ended, and switches that became degraded
}

// event is the cost of taking a link out of service, or putting it back. It is the median of several by Last; CPU
// is their mean.
type event struct {
	Call     float64 // seconds until SetLink returned
	Last     float64 // seconds until the last write was acknowledged
	CPU      float64 // processor seconds of the controller, until a tenth of a second after the last write
	Switches int     // number of switches written
	Writes   int     // RPCs
}

// TestScale measures one controller with growing fabrics.
func TestScale(t *testing.T) {
	if os.Getenv("HEADGATE_SCALE") == "" {
		t.Skip("needs HEADGATE_SCALE=1: it takes minutes and gigabytes of memory")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(40)) // of the switches' heap, which has gigabytes
	var all []measured
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-sizes: %v", err)
		}
		t.Run(text, func(t *testing.T) {
			m := measure(t, n)
			all = append(all, m)
			line, _ := json.Marshal(m)
			t.Logf("%s", line)
		})
	}
	t.Log("\n" + table(all))
	if *plot != "" && len(all) > 1 {
		if err := draw(*plot, all); err != nil {
			t.Error(err)
		}
	}
}

func measure(t *testing.T, n int) measured {
	ctx := t.Context()
	late := lag.Watch()
	f := newFarm(t, newFabric(n, *entries))
	m := measured{Switches: n}
	began := time.Now()
	yaml := f.yaml(f.addresses(), controllerKeys())
	d := newDaemon(t, t.TempDir(), yaml)
	d.ready(n)
	m.Ready, m.ReadyCPU = time.Since(began).Seconds(), d.cpu().Seconds()
	d.keep("ready")
	m.Heap, m.RSS = float64(d.heap()), float64(d.memory(resident))
	r, err := d.api.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m.Entries = math.MaxInt
	for _, s := range r.Switches {
		m.Entries = min(m.Entries, int(s.Entries))
	}
	m.Farm = f.heap(t)
	touched := f.touched(t, yaml)
	var downs, ups []event
	ended := d.sample("links")
	for range events {
		downs, ups = append(downs, f.event(t, d, false, touched)), append(ups, f.event(t, d, true, touched))
	}
	m.Down, m.Up = median(downs), median(ups)
	ended()
	before := d.cpu()
	ended = d.sample("idle")
	time.Sleep(*idle)
	m.Idle = (d.cpu() - before).Seconds() / idle.Seconds()
	ended()
	began = time.Now()
	m.Scrape = float64(len(d.get("http://" + d.metrics + "/metrics")))
	m.ScrapeIn = time.Since(began).Seconds()
	began, before, ended = time.Now(), d.cpu(), d.sample("plan")
	changes, err := d.plan(ctx)
	if err != nil || changes != 0 {
		t.Errorf("the plan has %d changes, want none: %v", changes, err)
	}
	m.Plan = time.Since(began).Seconds()
	m.PlanCPU = (d.cpu() - before).Seconds() - m.Idle*m.Plan
	ended()
	m.Peak = float64(d.memory(peak))
	m.Late, m.Lost = late().Seconds(), d.logged("event=session.disconnected")+d.logged("event=session.degraded")
	return m
}

// events is the number of times that the link is taken out of service and put back.
const events = 5

// median returns the event with the median time of the last acknowledged write, and the mean processor time of all.
func median(list []event) event {
	slices.SortFunc(list, func(a, b event) int { return cmp.Compare(a.Last, b.Last) })
	e := list[len(list)/2]
	e.CPU = 0
	for _, x := range list {
		e.CPU += x.CPU / float64(len(list))
	}
	return e
}

// uplink is the first leaf's first uplink, the link of the events.
func (fm *farm) uplink() (a, b string) { return fm.link(len(fm.links) - 2*len(fm.leaves)) }

// touched returns the number of switches whose routes change without the uplink.
func (fm *farm) touched(t *testing.T, yaml []byte) (n int) {
	t.Helper()
	cfg, err := config.Parse("fabric.yaml", yaml, nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	g := topology.New(cfg)
	a, b := fm.uplink()
	names, err := g.Between(a, b)
	if err != nil {
		t.Fatal(err)
	}
	with := g.Routes(topology.State{})
	without := g.Routes(topology.State{DownLinks: map[string]bool{names[0]: true}})
	for _, s := range cfg.Switches {
		if !slices.EqualFunc(with.ForSwitch(s.Name), without.ForSwitch(s.Name), func(x, y topology.Route) bool { return slices.Equal(x.NextHops, y.NextHops) }) {
			n++
		}
	}
	return n
}

// event takes the uplink out of service, or puts it back. It waits until the affected switches have been written
// and all have been quiet for a second. Other switches must not be written.
func (fm *farm) event(t *testing.T, d *daemon, up bool, touched int) event {
	t.Helper()
	fm.begin()
	a, b := fm.uplink()
	before, began := d.cpu(), time.Now()
	if _, err := d.api.SetLink(t.Context(), &pb.SetLinkRequest{A: a, B: b, Up: up}); err != nil {
		t.Fatal(err)
	}
	e := event{Call: time.Since(began).Seconds()}
	for {
		time.Sleep(10 * time.Millisecond)
		n, _, last := fm.written()
		quiet := time.Since(last)
		if n >= touched && quiet > 100*time.Millisecond && e.CPU == 0 {
			e.CPU = (d.cpu() - before).Seconds()
		}
		if n >= touched && quiet > time.Second {
			break
		}
		if time.Since(began) > 10*time.Minute {
			t.Fatalf("%d switches were written to after a link event, want %d", n, touched)
		}
	}
	var last time.Time
	e.Switches, e.Writes, last = fm.written()
	e.Last = last.Sub(began).Seconds()
	if e.Switches != touched {
		t.Errorf("%d switches were written to after a link event that touches %d", e.Switches, touched)
	}
	return e
}

// heap returns this process's live heap after a garbage collection, in bytes.
func (fm *farm) heap(t *testing.T) float64 {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if *profile != "" {
		w, err := os.Create(*profile + "switches.heap")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := pprof.WriteHeapProfile(w); err != nil {
			t.Fatal(err)
		}
	}
	return float64(m.HeapAlloc)
}

// controllerKeys returns the flag -keys as lines of the section controller.
func controllerKeys() string {
	var b strings.Builder
	for _, kv := range strings.Split(*keys, ",") {
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(kv))
	}
	return b.String()
}

// keep saves a profile of the heap.
func (d *daemon) keep(name string) {
	if *profile == "" {
		return
	}
	if err := os.WriteFile(*profile+name+".heap", d.get("http://"+d.pprof+"/debug/pprof/heap?gc=1"), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// sample saves a processor profile of the next ten seconds; ended waits for it.
func (d *daemon) sample(name string) (ended func()) {
	if *profile == "" {
		return func() {}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := os.WriteFile(*profile+name+".cpu", d.get("http://"+d.pprof+"/debug/pprof/profile?seconds=10"), 0o644); err != nil {
			d.t.Error(err)
		}
	})
	return wg.Wait
}

// table prints the measurements, one column per size.
func table(all []measured) string {
	var b strings.Builder
	row := func(name string, value func(measured) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, m := range all {
			fmt.Fprintf(&b, " %s |", value(m))
		}
		b.WriteString("\n")
	}
	mb := func(v float64) string { return fmt.Sprintf("%.0f MB", v/1e6) }
	cost := func(e event) string {
		return fmt.Sprintf("%.2f s; %d writes to %d switches; %.2f CPU s", e.Last, e.Writes, e.Switches, e.CPU)
	}
	row("switches", func(m measured) string { return strconv.Itoa(m.Switches) })
	row("entries of each, at least", func(m measured) string { return strconv.Itoa(m.Entries) })
	row("time to ready", func(m measured) string { return fmt.Sprintf("%.1f s; %.1f CPU s", m.Ready, m.ReadyCPU) })
	row("controller's heap, live", func(m measured) string { return mb(m.Heap) })
	row("controller's RSS, then; at most", func(m measured) string { return mb(m.RSS) + "; " + mb(m.Peak) })
	row("switches' heap, live", func(m measured) string {
		return fmt.Sprintf("%s; %.0f B an entry", mb(m.Farm), m.Farm/float64(m.Switches*m.Entries))
	})
	row("link out of service, until the last write is acknowledged", func(m measured) string { return cost(m.Down) })
	row("link back", func(m measured) string { return cost(m.Up) })
	row("idle, of one core", func(m measured) string { return fmt.Sprintf("%.0f %%", 100*m.Idle) })
	row("scrape", func(m measured) string { return fmt.Sprintf("%.2f MB in %.2f s", m.Scrape/1e6, m.ScrapeIn) })
	row("plan, empty", func(m measured) string { return fmt.Sprintf("%.1f s; %.1f CPU s", m.Plan, m.PlanCPU) })
	row("sessions lost, switches called degraded", func(m measured) string { return strconv.Itoa(m.Lost) })
	row("a timer was late by at most", func(m measured) string { return fmt.Sprintf("%.0f ms", 1e3*m.Late) })
	return b.String()
}

// draw plots growth by size. Values that grow with the number of switches are drawn per switch, so a rising line
// means faster growth.
func draw(file string, all []measured) error {
	type line struct {
		name string
		of   func(measured) float64
	}
	panel := func(title, unit string, lines ...line) plotting.Panel {
		p := plotting.Panel{Title: title, X: "switches", Y: unit}
		for _, l := range lines {
			drawn := plotting.Line{Name: l.name}
			for _, m := range all {
				drawn.X, drawn.Y = append(drawn.X, float64(m.Switches)), append(drawn.Y, l.of(m))
			}
			p.Lines = append(p.Lines, drawn)
		}
		return p
	}
	each := func(ms func(measured) float64) func(measured) float64 {
		return func(m measured) float64 { return 1e3 * ms(m) / float64(m.Switches) }
	}
	return plotting.Save(file,
		panel("memory of the controller", "MB",
			line{"RSS, at most", func(m measured) float64 { return m.Peak / 1e6 }},
			line{"live heap", func(m measured) float64 { return m.Heap / 1e6 }}),
		panel("processor time", "ms a switch",
			line{"until all are ready", each(func(m measured) float64 { return m.ReadyCPU })},
			line{"empty plan", each(func(m measured) float64 { return m.PlanCPU })}),
		panel("processor time of a link event", "ms a switch",
			line{"out of service", each(func(m measured) float64 { return m.Down.CPU })},
			line{"back", each(func(m measured) float64 { return m.Up.CPU })}),
		panel("a link event, until the last write is acknowledged", "s",
			line{"out of service", func(m measured) float64 { return m.Down.Last }},
			line{"back", func(m measured) float64 { return m.Up.Last }}),
		panel("idle", "% of a core", line{"idle", func(m measured) float64 { return 100 * m.Idle }}),
	)
}
