// Package arch links the P4 architectures into the engine that the embedded switch runs: v1model
// and PSA. The engine chooses a program's architecture from its JSON.
package arch

import (
	_ "github.com/headgate/headgate/softswitch/arch/psa"     // BMv2's psa_switch
	_ "github.com/headgate/headgate/softswitch/arch/v1model" // BMv2's simple_switch
)
