package engine_test

// The architectures, and Headgate's own program as Go, for the engine's tests.
import (
	_ "github.com/headgate/headgate/softswitch/arch"
	_ "github.com/headgate/headgate/softswitch/native/headgate"
)
