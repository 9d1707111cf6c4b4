package engine_test

// Our own program as Go, which tests of the engine run.
import _ "github.com/headgate/headgate/softswitch/native/headgate"
