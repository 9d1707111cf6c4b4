package units

import "fmt"

// FieldError says which field of a configuration is wrong, what it is, what is allowed
// and, where it takes arithmetic to see that, the arithmetic.
type FieldError struct {
	Field   string // as in JSON: policy, ports[3].rate, dsh.window, …
	Value   string // with its unit
	Allowed string
	Because string // may be empty
}

func (e *FieldError) Error() string {
	s := fmt.Sprintf("%s is %s: allowed is %s", e.Field, e.Value, e.Allowed)
	if e.Because != "" {
		s += "; " + e.Because
	}
	return s
}
