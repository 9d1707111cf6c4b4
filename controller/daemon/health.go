package daemon

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/controller/serving/metrics"
	"github.com/headgate/headgate/controller/view"
)

// ready says whether what changes can be kept, and whether the fabric is as the configuration wants it, switch by switch.
func (d *daemon) ready() []metrics.Check {
	list := []metrics.Check{{Part: "state store", Err: d.db.Err()}}
	if d.auditFile != nil {
		list = append(list, metrics.Check{Part: "audit log", Err: d.auditFile.Err()})
	}
	fabric := d.core.Fabric()
	configuration := metrics.Check{Part: "configuration"}
	if fabric.Name == "" {
		configuration.Err = errors.New("none was applied yet")
	}
	if why := d.refused.Load(); why != nil {
		configuration.Err = *why
	}
	list = append(list, configuration)
	for _, s := range fabric.Switches {
		c := metrics.Check{Part: "switch " + s.Name}
		if s.State != view.Ready {
			c.Err = fmt.Errorf("%v: %s", s.State, s.Err)
		}
		list = append(list, c)
	}
	return list
}
