package engine_test

// Headgate's own program as Go, for the engine's tests.
import _ "github.com/headgate/headgate/softswitch/native/headgate"
