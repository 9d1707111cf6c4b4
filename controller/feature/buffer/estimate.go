package buffer

import (
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/estimate"
	"github.com/headgate/headgate/units"
)

// reportCapability is DSH's estimate of egress queues where nothing in the switch acts on it: polls
// bring it up (pollreport.Estimate).
var reportCapability = feature.Capability{
	Name: "buffer.dsh_report",
	Objects: pipeline.Objects{
		Tables:  []string{ids.TableLog2BytesName, ids.TableLog2TicksName, ids.TableExp2Name, ids.TableHeadroomForName, estimate.PortTable},
		Headers: []string{ids.HeaderPacketOutName, ids.HeaderPacketInName},
	},
	Instead: "polls report no estimate of what headroom an egress queue calls for",
}

// estimates returns the entries with which a chip estimates what its egress queues need under
// DSH, and none where the program has no such tables: the traffic manager has its thresholds
// without them.
func estimates(env *feature.Env) ([]*p4v1.Entity, error) {
	s := env.Switch
	if !Of(s).Shares() || !reportCapability.In(env.Pipeline) {
		return nil, nil
	}
	h, numbers, _ := Headroom(env.Config, s)
	layout, err := h.Layout()
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", Of(s).Policy, err)
	}
	chip := estimate.Config{Chip: s.Target.Chip(), Precision: h.DSH.Precision, Entries: h.DSH.Entries}
	for i, number := range numbers {
		chip.Ports = append(chip.Ports, estimate.Port{Number: number, Rate: h.Ports[i].Rate, Headroom: layout.Phi[i]})
	}
	tables, err := estimate.New(chip)
	var fault *units.FieldError
	if errors.As(err, &fault) {
		return nil, yamlnode.Fault{Field: env.Config.Origin(s, "buffer.dsh"), Text: fmt.Sprintf("makes tables of DSH's estimate that the switch %q cannot hold: %v", s.Name, fault)}
	}
	if err != nil {
		return nil, fmt.Errorf("estimate of policy %s: %w", Of(s).Policy, err)
	}
	var c feature.EntityList
	for _, t := range tables.Entries() {
		c.Add(Entity(env.Pipeline, t))
	}
	return c.Result()
}
