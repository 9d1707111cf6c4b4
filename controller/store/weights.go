package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/headgate/headgate/controller/weights"
)

// The records are the file's own types, so that the registry's may change without it.
type (
	flowRecord struct {
		Weight      int64  `json:"weight_millionths"`
		Application string `json:"application"`
		Host        string `json:"host,omitempty"`
	}
	budgetRecord struct {
		Limit      int64 `json:"limit_millionths"`
		Configured int64 `json:"configured_millionths"`
	}
	entryRecord struct {
		Time        time.Time `json:"time"`
		Peer        string    `json:"peer"`
		Application string    `json:"application,omitempty"`
		Flow        string    `json:"flow,omitempty"`
		Previous    string    `json:"previous"` // numbers as text: JSON has no NaN
		Value       string    `json:"value"`
		What        string    `json:"what"`
		Refused     string    `json:"refused,omitempty"`
	}
)

// CommitWeights implements weights.Keeper.
func (s *Store) CommitWeights(c weights.Commit) error {
	if s.db == nil {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		flows, budgets := bucket(tx, bucketFlows), bucket(tx, bucketBudgets)
		for _, f := range c.Put {
			r := flowRecord{Weight: int64(f.Weight), Application: f.Application, Host: f.Host}
			if err := put(flows, []byte(f.Key.String()), r); err != nil {
				return err
			}
		}
		for _, k := range c.Delete {
			if err := flows.Delete([]byte(k.String())); err != nil {
				return err
			}
		}
		for _, b := range c.Budgets {
			name := []byte(b.Application)
			if b.Limit == 0 && b.Configured == 0 {
				if err := budgets.Delete(name); err != nil {
					return err
				}
				continue
			}
			if err := put(budgets, name, budgetRecord{int64(b.Limit), int64(b.Configured)}); err != nil {
				return err
			}
		}
		return s.append(bucket(tx, bucketAudit), c.Audit)
	})
}

// append adds audit entries and removes the oldest over the limit. Sequence numbers have no
// gaps, so the first one to keep follows from the last.
func (s *Store) append(audit *bbolt.Bucket, entries []weights.Entry) error {
	for _, e := range entries {
		n, err := audit.NextSequence()
		if err != nil {
			return err
		}
		r := entryRecord{
			Time: e.Time, Peer: e.Peer, Application: e.Application, Flow: e.Flow.String(),
			Previous: float(e.Previous), Value: float(e.Value), What: e.What, Refused: e.Refused,
		}
		if err := put(audit, number(n), r); err != nil {
			return err
		}
	}
	last := audit.Sequence()
	if last <= uint64(s.audit) {
		return nil
	}
	var old [][]byte
	c := audit.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) <= last-uint64(s.audit); k, _ = c.Next() {
		old = append(old, k)
	}
	for _, k := range old {
		if err := audit.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// LoadWeights implements weights.Keeper.
func (s *Store) LoadWeights() (state weights.State, err error) {
	if s.db == nil {
		return state, nil
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		err := each(tx, bucketFlows, func(key []byte, r flowRecord) error {
			k, err := weights.ParseKey(string(key))
			if err == nil && (r.Weight <= 0 || r.Weight > int64(weights.MaxWeight)) {
				err = fmt.Errorf("weight of %d millionths", r.Weight)
			}
			state.Flows = append(state.Flows, weights.Flow{
				Key: k, Weight: weights.Weight(r.Weight), Application: r.Application, Host: r.Host,
			})
			return err
		})
		if err != nil {
			return err
		}
		err = each(tx, bucketBudgets, func(key []byte, r budgetRecord) error {
			state.Budgets = append(state.Budgets, weights.Budget{
				Application: string(key), Limit: weights.Weight(r.Limit), Configured: weights.Weight(r.Configured),
			})
			return nil
		})
		if err != nil {
			return err
		}
		return each(tx, bucketAudit, func(_ []byte, r entryRecord) error {
			e := weights.Entry{Time: r.Time, Peer: r.Peer, Application: r.Application, What: r.What, Refused: r.Refused}
			var err error
			if r.Flow != "" {
				if e.Flow, err = weights.ParseKey(r.Flow); err != nil {
					return err
				}
			}
			if e.Previous, err = strconv.ParseFloat(r.Previous, 64); err != nil {
				return err
			}
			if e.Value, err = strconv.ParseFloat(r.Value, 64); err != nil {
				return err
			}
			state.Audit = append(state.Audit, e)
			return nil
		})
	})
	if err != nil {
		return weights.State{}, fmt.Errorf("state file %s: %w", s.db.Path(), err)
	}
	return state, nil
}

// each decodes every record of a bucket, in key order.
func each[T any](tx *bbolt.Tx, name []byte, fn func(key []byte, r T) error) error {
	return bucket(tx, name).ForEach(func(k, v []byte) error {
		var r T
		err := json.Unmarshal(v, &r)
		if err == nil {
			err = fn(k, r)
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", name, k, err)
		}
		return nil
	})
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
