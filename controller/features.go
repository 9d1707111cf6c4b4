package controller

import (
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/linkprobe"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/routing"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/feature/telemetry"
)

// features returns the features, one line each. They are asked in this order, which
// matters only for messages from switches: the first that knows one takes it.
func features() []feature.Constructor {
	return []feature.Constructor{
		routing.New,
		qos.New,
		soze.New,
		telemetry.New,
		linkprobe.New,
	}
}
