package engine_test

// The architectures, and two programs as Go, for the engine's tests.
import (
	_ "github.com/headgate/headgate/softswitch/arch"
	_ "github.com/headgate/headgate/softswitch/native/headgate"
	_ "github.com/headgate/headgate/softswitch/native/l3"
)
