// Package pacc is the feature that sends congestion notifications: it has the pipeline
// watch the queues, and runs a loop of package cnpgen over P4Runtime on every switch, unless
// the loops run in the switches themselves.
package pacc

import (
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

type feat struct {
	callbacks feature.Callbacks
	latest    feature.LastValue[state]
	tables    feature.LastValue[*observed.Table]
}

// Digests of new flows and queue pairs: a list has at most as many as a write takes, and is held back for at most
// digestHold. BMv2 looks every 100 ms.
const (
	digestMost = 256
	digestHold = 20 * time.Millisecond
)

// watchCapability is the pipeline's part of PACC. Without it there is no loop.
var watchCapability = feature.Capability{
	Name: "pacc.flows",
	Objects: pipeline.Objects{
		Tables:         []string{ids.TableWatchedQueueName, ids.TableFlowName, ids.TableCongestedFlowName},
		DirectCounters: []string{ids.DirectCounterFlowCounterName, ids.DirectCounterCongestedCounterName},
		Digests:        []string{ids.DigestFlowDigestTName},
	},
	Queues:  ids.HighestQueue + 1, // polls
	Instead: "it sends no congestion notifications",
}

// ipv6Capability is the pipeline's part of PACC for IPv6.
var ipv6Capability = feature.Capability{
	Name: "pacc.ipv6",
	Objects: pipeline.Objects{
		Tables:         flowtable.IPv6.Names(),
		DirectCounters: []string{ids.DirectCounterFlowIPv6CounterName, ids.DirectCounterCongestedIPv6CounterName},
		Digests:        []string{flowtable.IPv6.FlowDigestName, flowtable.IPv6.QueuePairDigestName},
	},
	Instead: "IPv6 flows get no congestion notifications",
}

func families(pipe *pipeline.Pipeline) []*flowtable.Family {
	if ipv6Capability.InProgram(pipe) {
		return flowtable.Families()
	}
	return []*flowtable.Family{&flowtable.IPv4}
}

// queuePairCapability is the learning of sources' queue pairs from acknowledgements.
var queuePairCapability = feature.Capability{
	Name:    "pacc.queue_pairs",
	Objects: pipeline.Objects{Tables: []string{ids.TableQueuePairName}, Digests: []string{ids.DigestQueuePairDigestTName}},
	Instead: "its congestion notifications carry queue pair 0, which Headgate's hosts take for all their flows to an address",
}

// New returns the feature.
func New(callbacks feature.Callbacks) *feature.Feature {
	f := &feat{callbacks: callbacks}
	return &feature.Feature{
		Name: "pacc", Capabilities: []feature.Capability{watchCapability, queuePairCapability, ipv6Capability},
		Section: config.Section{Key: "pacc", Read: read, Check: check}, Desired: desired, Attach: f.attach, Status: f.status, Counted: f.counted,
	}
}

// desired is feature.Feature.Desired: an entry for each watched queue, and the learning of flows and queue pairs. A switch with a loop
// of its own gets its parameters in the entries, and learns for itself.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	cfg := FromConfig(env.Config)
	var c feature.EntityList
	learns := queuePairCapability.InProgram(env.Pipeline)
	if learns {
		// By default the table reports nothing.
		for _, of := range families(env.Pipeline) {
			action := of.KnowQueuePairName
			if cfg.Enabled {
				action = of.LearnQueuePairName
			}
			c.Add(env.Pipeline.Default(of.QueuePairName).Action(action).Entity())
		}
	}
	if !cfg.Enabled {
		return c.Result()
	}
	if env.Provider(watchCapability) != pb.ByProgram {
		return nil, env.Refuse("pacc.enabled", "true", watchCapability)
	}
	for _, p := range portsOf(env) {
		w := flowtable.Watched{Port: p.Port, Queue: cfg.Queue, Threshold: p.Params.Threshold}
		if cfg.At == AtSwitch {
			w.Settings = cnpgen.Settings{Params: p.Params, MaxFlows: cfg.MaxFlows, DSCP: cfg.CNPDSCP, Ageing: cfg.Ageing}.Marshal()
		}
		c.Add(p4rtmsg.Entity(w.Entry()), nil)
	}
	if cfg.At == AtController {
		for _, of := range families(env.Pipeline) {
			c.Add(env.Pipeline.Digest(of.FlowDigestName, digestMost, digestHold.Nanoseconds()))
			if learns {
				c.Add(env.Pipeline.Digest(of.QueuePairDigestName, digestMost, digestHold.Nanoseconds()))
			}
		}
	}
	return c.Result()
}

// portsOf returns the watched ports of a switch: all that links use.
func portsOf(env *feature.Env) []cnpgen.PortConfig {
	var list []cnpgen.PortConfig
	for _, p := range env.Graph.Ports(env.Switch.Name) {
		_, params := FromConfig(env.Config).Params(env.Config, p.Rate)
		list = append(list, cnpgen.PortConfig{Port: p.Number, Params: params})
	}
	return list
}

func (f *feat) attach(env *feature.Env, sw feature.Switch) feature.Loop {
	cfg := FromConfig(env.Config)
	f.latest.Forget(sw.Name())
	f.tables.Forget(sw.Name())
	if env.Provider(watchCapability) != pb.ByProgram {
		return nil
	}
	if !cfg.Enabled {
		s := &sweeper{sw: sw}
		for _, of := range families(env.Pipeline) {
			s.tables = append(s.tables, of.Learned()...)
		}
		if !queuePairCapability.InProgram(env.Pipeline) {
			s.tables = slices.DeleteFunc(s.tables, func(id uint32) bool { return id == flowtable.IPv4.QueuePair })
		}
		return feature.Every{Period: sweepInterval, Do: s.tick}
	}
	ports := portsOf(env)
	if len(ports) == 0 {
		return nil
	}
	table := &observed.Table{}
	if cfg.At != AtController { // the switch keeps its own flows
		f.tables.Set(sw.Name(), table)
		r := &reader{sw: &overP4Runtime{sw: sw, families: families(env.Pipeline)}, meter: cnpgen.NewMeter(cfg.MaxFlows), table: table}
		return feature.Every{Period: readEvery, Do: r.tick}
	}
	table.Together = ports[0].Params.Interval.Duration() // all ports are read, in turn, within this interval
	l := &loop{
		callbacks: f.callbacks, latest: &f.latest, began: time.Now(), gap: max(minInterval, ports[0].Params.CNPGap.Duration()),
		sw: &overP4Runtime{
			sw: sw, pipe: env.Pipeline, families: families(env.Pipeline), queue: cfg.Queue, ageing: cfg.Ageing, cnp: cnpgen.CNPBuilder{DSCP: cfg.CNPDSCP},
		},
	}
	lc := cnpgen.LoopConfig{
		Ports: ports, MaxFlows: cfg.MaxFlows, Phases: cnpgen.Phases(ports[0].Params.Interval, len(ports), phases),
		Counted: func(sent map[cnpgen.FlowKey]uint64) { table.Counted(l.sw.now, sent) },
	}
	if queuePairCapability.InProgram(env.Pipeline) {
		lc.QueuePairs = l.sw
	}
	var err error
	if l.Loop, err = cnpgen.NewLoop(lc, l.sw); err != nil {
		f.callbacks.Event(failed(sw.Name(), err))
		return nil
	}
	f.tables.Set(sw.Name(), table)
	return l
}

// phases bounds the groups in which ports tick, because each group reads all counters over P4Runtime.
const phases = 4

// minInterval is the shortest interval at which the device calls loops.
const minInterval = time.Millisecond

// clock converts the wall clock to the loop's.
func (l *loop) clock(now time.Time) units.Time { return units.FromDuration(now.Sub(l.began)) }
