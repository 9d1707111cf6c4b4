package externs

import (
	"strings"
	"testing"
)

func TestWeights(t *testing.T) {
	for _, w := range []Weights{{1}, {0: 3, 2: MaxWeight, 7: 1}} {
		if got, err := ReadWeights(w.Entity().GetExternEntry(), 8); err != nil || got != w {
			t.Errorf("%v is read as %v, %v", w, got, err)
		}
	}
	for want, fields := range map[string]map[string]any{
		`field "queue_8" of the weights is unknown, want queue_0 to queue_7`: {"queue_8": 1.0},
		`field "queue_01" of the weights is unknown`:                         {"queue_01": 1.0},
		`field "1" of the weights is unknown`:                                {"1": 1.0},
		"the weight of queue_1 is 0, want an integer from 1 to 1000":         {"queue_1": 0.0},
		"the weight of queue_1 is 1001, want an integer from 1 to 1000":      {"queue_1": 1001.0},
		"the weight of queue_1 is 1.5, want an integer from 1 to 1000":       {"queue_1": 1.5},
		"the weight of queue_1 is x, want an integer from 1 to 1000":         {"queue_1": "x"},
		"the weights are empty, want a weight of a queue":                    {},
	} {
		if got, err := ReadWeights(pack(WeightsID, fields).GetExternEntry(), 8); err == nil || !strings.Contains(err.Error(), want) || got != (Weights{}) {
			t.Errorf("%v: %v, error %v, want %s", fields, got, err, want)
		}
	}
}
