package weights

import (
	"fmt"
	"math"
	"strconv"
)

// Weight is a weight or a sum of weights in millionths. Söze's weights are real numbers
// (§3.4); a fixed point makes sums exact, so that 0.1 + 0.2 fits a budget of 0.3 and no
// order of changes drifts away from the true sum.
type Weight int64

// One is the weight 1; MinWeight and MaxWeight bound a flow's weight, MaxLimit a budget.
// MaxFlows flows of MaxWeight still fit into an int64.
const (
	One       Weight = 1_000_000
	MinWeight        = One / 1_000_000
	MaxWeight        = One * 1_000_000
	MaxLimit         = One * 1_000_000_000
	MaxFlows         = 1 << 20
)

// FromFloat checks a flow's weight and rounds it to the nearest millionth. Not finite, zero,
// negative and out of range values give an *InvalidError.
func FromFloat(v float64) (Weight, error) {
	if !(v >= MinWeight.Float() && v <= MaxWeight.Float()) {
		return 0, &InvalidError{Field: "weight", Value: format(v), Allowed: fmt.Sprintf("a finite number from %v to %v", MinWeight, MaxWeight)}
	}
	return Weight(math.RoundToEven(v * float64(One))), nil
}

// LimitFromFloat checks a budget; 0 means no limit.
func LimitFromFloat(v float64) (Weight, error) {
	if v == 0 {
		return 0, nil
	}
	if !(v >= MinWeight.Float() && v <= MaxLimit.Float()) {
		return 0, &InvalidError{Field: "limit", Value: format(v), Allowed: fmt.Sprintf("a finite number from %v to %v, or 0 for no limit", MinWeight, MaxLimit)}
	}
	return Weight(math.RoundToEven(v * float64(One))), nil
}

// Float returns the weight as the number that people and protocols use.
func (w Weight) Float() float64 { return float64(w) / float64(One) }

// String writes the exact decimal number.
func (w Weight) String() string {
	return strconv.FormatFloat(w.Float(), 'f', -1, 64)
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
