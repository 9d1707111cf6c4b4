// Package outcome says what became of a change: it was made, it was not, or nobody knows. A client that
// does not know names its change with a request id and asks again; the result of the first time is kept with
// the change (Done) and answered again.
package outcome

import (
	"errors"
	"fmt"
)

// ErrUnknown says that it is unknown whether a change was made, will be made, or was not.
var ErrUnknown = errors.New("outcome unknown")

// ErrNotLeader says that another controller leads, or will.
var ErrNotLeader = errors.New("this controller does not lead the cluster any more")

// Unknown says that a change may have been made. err is why nobody knows.
func Unknown(err error) error {
	return fmt.Errorf("%w: the change may have been made; ask again with the same request id: %w", ErrUnknown, err)
}

// NotMadeError is a change that was not made because it could not be made durable.
type NotMadeError struct{ Err error }

// Error says what the store said.
func (e *NotMadeError) Error() string {
	return fmt.Sprintf("nothing was changed, the state store failed: %v", e.Err)
}

// Unwrap returns the store's error.
func (e *NotMadeError) Unwrap() error { return e.Err }

// Tells reports whether an error says if a change that a store did not acknowledge was made.
func Tells(err error) bool {
	var not *NotMadeError
	return errors.Is(err, ErrUnknown) || errors.As(err, &not)
}

// Of is the error of a change that a store did not acknowledge with err: one that wraps ErrUnknown or a
// *NotMadeError; nil where err is. No other function may say that nothing was changed.
func Of(err error) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return &NotMadeError{err}
}
