// Package pacc is the feature that sends congestion notifications: it has the pipeline
// watch the queues, and runs a loop of package pacc over P4Runtime on every switch, unless
// the loops run in the switches themselves.
package pacc

import (
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/pacc/local"
	"github.com/headgate/headgate/units"
)

type feat struct{ hub feature.Hub }

// New returns the feature.
func New(hub feature.Hub) feature.Feature { return &feat{hub: hub} }

// Name implements feature.Feature.
func (*feat) Name() string { return "pacc" }

// The digest of new flows: as many in a list as a write takes, and none held back longer
// than this. BMv2 looks every 100 ms.
const (
	digestMost = 256
	digestHold = 20 * time.Millisecond
)

// watchPart is all that the pipeline does: without any of it there is no loop.
var watchPart = feature.Part{
	Name: "pacc.flows",
	Objects: pipeline.Objects{
		Tables:         []string{ids.TableWatchedQueueName, ids.TableFlowName, ids.TableCongestedFlowName},
		DirectCounters: []string{ids.DirectCounterFlowCounterName, ids.DirectCounterCongestedCounterName},
		Digests:        []string{ids.DigestFlowDigestTName},
	},
	Queues:  ids.HighestQueue + 1, // polls
	Instead: "it sends no congestion notifications",
}

// Parts implements feature.Feature.
func (*feat) Parts() []feature.Part { return []feature.Part{watchPart} }

// Desired implements feature.Feature: an entry for each watched queue, and the learning of
// flows. Where the loop is the switch's own, the entries carry its parameters, and the
// switch learns for itself.
func (*feat) Desired(env *feature.Env, sw string) ([]*p4v1.Entity, error) {
	cfg := env.Config.PACC
	if !cfg.Enabled {
		return nil, nil
	}
	s := env.Config.Switch(sw)
	if s == nil {
		return nil, fmt.Errorf("there is no switch %q", sw)
	}
	if watchPart.On(env.Pipeline, s).Means != feature.Program {
		return nil, env.Refuse(s, "pacc.enabled", "true", watchPart)
	}
	ports, err := portsOf(env, s)
	if err != nil {
		return nil, err
	}
	var c feature.Collect
	for _, p := range ports {
		e, err := env.Pipeline.Entry(ids.TableWatchedQueueName).
			Exact("egress_port", pipeline.Uint(uint64(p.Port))).Exact("queue", pipeline.Uint(uint64(cfg.Queue))).
			Action(ids.ActionWatchName, pipeline.Arg{Name: "threshold", Value: pipeline.Uint(uint64(p.Params.Threshold))}).Entity()
		if err == nil && cfg.At == config.AtSwitch {
			e.GetTableEntry().Metadata = local.Settings{
				Params: p.Params, MaxFlows: cfg.MaxFlows, DSCP: cfg.CNPDSCP, Ageing: cfg.Ageing,
			}.Marshal()
		}
		c.Add(e, err)
	}
	if cfg.At == config.AtController {
		c.Add(env.Pipeline.Digest(ids.DigestFlowDigestTName, digestMost, digestHold.Nanoseconds()))
	}
	return c.Result()
}

// portsOf returns the watched ports of a switch: all that links use.
func portsOf(env *feature.Env, s *config.Switch) ([]pacc.PortConfig, error) {
	var list []pacc.PortConfig
	for _, p := range env.Graph.Ports(s.Name) {
		rate := s.Port(p.Number).Rate
		if rate == 0 {
			l, ok := env.Graph.FindLink(p.Link)
			if !ok {
				return nil, fmt.Errorf("port %d: there is no link %q", p.Number, p.Link)
			}
			rate = l.Rate
		}
		_, params := env.Config.PACCParams(rate)
		list = append(list, pacc.PortConfig{Port: p.Number, Params: params})
	}
	return list, nil
}

// Attach implements feature.Feature.
func (f *feat) Attach(env *feature.Env, sw feature.Switch) feature.Loop {
	cfg := env.Config.PACC
	s := env.Config.Switch(sw.Name())
	if s == nil || watchPart.On(env.Pipeline, s).Means != feature.Program {
		return nil
	}
	switch {
	case !cfg.Enabled:
		return &sweeper{sw: sw}
	case cfg.At != config.AtController:
		return nil // the switch keeps its own table
	}
	ports, err := portsOf(env, s)
	if err != nil || len(ports) == 0 {
		return nil // Desired has said so
	}
	l := &loop{
		hub: f.hub, began: time.Now(), gap: max(minInterval, ports[0].Params.CNPGap.Duration()),
		sw: &overP4Runtime{
			sw: sw, pipe: env.Pipeline, queue: cfg.Queue, ageing: cfg.Ageing, cnp: pacc.CNPBuilder{DSCP: cfg.CNPDSCP},
		},
	}
	if l.Loop, err = pacc.New(pacc.Config{Ports: ports, MaxFlows: cfg.MaxFlows}, l.sw); err != nil {
		f.hub.Event(failed(sw.Name(), err))
		return nil
	}
	return l
}

// minInterval is the finest that the device's loops are called at.
const minInterval = time.Millisecond

// clock converts the wall clock to the loop's.
func (l *loop) clock(now time.Time) units.Time { return units.FromDuration(now.Sub(l.began)) }
