package audit

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"
)

// A log has the newest entries, all of them or those of an application.
func TestList(t *testing.T) {
	l := New(Options{Limit: 3})
	for i := range 20 {
		l.Append(Entry{Value: float64(i), Application: []string{"a", "b"}[i%2]})
		if n := len(l.List("", 100)); n != min(i+1, 3) {
			t.Fatalf("after %d entries %d are kept", i+1, n)
		}
	}
	for _, c := range []struct {
		application string
		n           int
		want        []float64
	}{{"", 2, []float64{18, 19}}, {"b", 9, []float64{17, 19}}, {"a", 1, []float64{18}}, {"c", 9, nil}} {
		var got []float64
		for _, e := range l.List(c.application, c.n) {
			got = append(got, e.Value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the last %d of %q are %v, want %v", c.n, c.application, got, c.want)
		}
	}
}

type keeper struct {
	kept []Entry
	err  error
}

func (k *keeper) ListAudit(_ string, n int) []Entry { return k.kept[max(0, len(k.kept)-n):] }

func (k *keeper) CommitAudit(entries []Entry) error {
	if k.err == nil {
		k.kept = append(k.kept, entries...)
	}
	return k.err
}

// A log begins with the kept entries. It stamps, keeps and shows each new entry; an entry that
// cannot be kept is still shown.
func TestLog(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := &keeper{kept: []Entry{{What: Weight}}}
	l := New(Options{Keeper: k, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	l.Record(Entry{What: LinkUp}, nil)
	l.Record(Entry{What: Apply}, errors.New("no"))
	if len(k.kept) != 3 || k.kept[2].Refused != "no" || k.kept[1].Refused != "" || !k.kept[1].Time.Equal(now) {
		t.Errorf("kept: %+v", k.kept)
	}
	k.err = errors.New("full")
	l.Record(Entry{What: Release}, nil)
	if got := l.List("", 9); len(k.kept) != 3 || len(got) != 4 || got[0].What != Weight || got[3].What != Release {
		t.Errorf("kept %+v, shown %+v", k.kept, got)
	}
	k.err = nil
	l.Record(Entry{What: Policy}, nil)
	if got := l.List("", 2); len(got) != 2 || got[0].What != Policy && got[1].What != Policy {
		t.Errorf("the last two are %+v, want that of the policy among them", got)
	}
}

// The layout of a line in the state file. JSON itself cannot hold NaN.
func TestEntryJSON(t *testing.T) {
	e := Entry{Peer: "p", Flow: "10.0.0.1:1,10.0.0.2:2", Previous: 1.5, Value: math.Inf(1), What: Weight}
	text, err := json.Marshal(e)
	const want = `{"time":"0001-01-01T00:00:00Z","peer":"p","flow":"10.0.0.1:1,10.0.0.2:2","previous":1.5,"what":"weight","value":"+Inf"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var back Entry
	if err := json.Unmarshal(text, &back); err != nil || back != e {
		t.Errorf("%+v, %v", back, err)
	}
}
