package control

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/tables/buffer"
)

// PFCSession installs the clone session of a port's PFC frames.
func PFCSession(port uint32) *p4v1.Update { return cloneSession(buffer.Session(port), port) }
