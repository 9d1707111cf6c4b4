package controller

import (
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/linkprobe"
	"github.com/headgate/headgate/controller/feature/pacc"
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
		buffer.New, // before those that take the answers to polls: it looks at all of them
		pacc.New,   // before telemetry, which takes the answers to all polls
		telemetry.New,
		linkprobe.New,
	}
}
