package command

import "context"

// Daemon is an annotation of commands that run until a signal ends them. They end well then.
const Daemon = "daemon"

// Interrupted is the error of a command that Ctrl-C ended, with what that means for its results. It is
// a context.Canceled.
type Interrupted string

// Error implements error.
func (e Interrupted) Error() string { return "interrupted: " + string(e) }

// Is implements errors.Is.
func (Interrupted) Is(target error) bool { return target == context.Canceled }
