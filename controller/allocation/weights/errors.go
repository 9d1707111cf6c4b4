package weights

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownFlow says that the registry holds no such flow.
var ErrUnknownFlow = errors.New("no such flow")

// ErrFull says that the registry holds as many flows as it can.
var ErrFull = fmt.Errorf("the weight registry is full: at most %d flows", MaxFlows)

// InvalidError is a value that can never be accepted.
type InvalidError struct {
	Field   string // such as weight, application or src_port
	Value   string
	Allowed string
}

// Error names the field, the value and what is allowed.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s is not allowed: want %s", e.Field, e.Value, e.Allowed)
}

// BudgetError is a change that an application's budget does not allow. Before and After are the
// application's sums of the changed flows' weights.
type BudgetError struct {
	Application   string
	Limit, Used   Weight
	Before, After Weight
	LowersLimit   bool // the change was to the limit itself
	Asked         Weight
}

// Error shows the arithmetic.
func (e *BudgetError) Error() string {
	if e.LowersLimit {
		return fmt.Sprintf("application %q: a budget of %v is below the %v in use; lower or delete weights first, or set at least %v",
			e.Application, e.Asked, e.Used, e.Used)
	}
	return fmt.Sprintf("application %q is over its budget: in use %v - before %v + asked %v = %v > limit %v; at most %v can be asked",
		e.Application, e.Used, e.Before, e.After, e.Used-e.Before+e.After, e.Limit, max(0, e.Limit-e.Used+e.Before))
}

// UnknownApplicationError is a weight for an application without a budget, where other applications
// have budgets.
type UnknownApplicationError struct {
	Application string
	Named       []string
}

// Error says which applications there are.
func (e *UnknownApplicationError) Error() string {
	const most = 20
	named := e.Named
	if len(named) > most {
		named = append(named[:most:most], fmt.Sprintf("and %d more", len(named)-most))
	}
	return fmt.Sprintf("application %q has no budget: name it under applications in the configuration, set a budget for it, or use one of %s",
		e.Application, strings.Join(named, ", "))
}

// ForeignError is a flow of an application that is not one of the caller's.
type ForeignError struct {
	Flow  Key
	Owner string
}

// Error says whose it is.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("flow %v is of application %q, which the policy does not grant to the caller", e.Flow, e.Owner)
}
