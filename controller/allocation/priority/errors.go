package priority

import (
	"errors"
	"fmt"
)

// Errors of a Registry, to be tested with errors.Is; RangeError and TakenError with errors.As.
var (
	ErrNoPlan = errors.New("the configuration has no section prioplus: want one to have virtual priorities")
	ErrFull   = errors.New("every virtual priority is allocated: release one, or raise prioplus.priorities")
	ErrFree   = errors.New("is not allocated")
)

// RangeError is a priority outside the range.
type RangeError struct{ Number, Priorities int }

// Error implements error.
func (e *RangeError) Error() string {
	return fmt.Sprintf("priority %d is not allowed: want 1 to %d (prioplus.priorities)", e.Number, e.Priorities)
}

// TakenError is a priority that another application has.
type TakenError struct {
	Number int
	Owner  string
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("priority %d belongs to application %q: want another, or have it released", e.Number, e.Owner)
}
