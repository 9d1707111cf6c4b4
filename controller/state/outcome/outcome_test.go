package outcome

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestBookIsBounded(t *testing.T) {
	var b Book
	b.Add(nil)
	for i := range MaxKept + 10 {
		b.Add(&Done{Key: fmt.Sprint(i)})
	}
	if _, ok := b.Get("9"); ok || len(b.All()) != MaxKept || b.All()[0].Key != "10" {
		t.Errorf("%d are kept, the oldest is %v", len(b.All()), b.All()[0].Key)
	}
	b.Add(&Done{Key: "large", Result: []byte(strings.Repeat("1", MaxBytes))})
	if all := b.All(); len(all) != 1 || all[0].Key != "large" || b.bytes != all[0].size() || len(b.byKey) != 1 {
		t.Errorf("%d are kept, of %d bytes", len(all), b.bytes)
	}
	b.Add(&Done{Key: "large", Digest: "other"})
	if d, _ := b.Get("large"); d.Digest != "" || len(b.All()) != 1 {
		t.Error("the first result is lost")
	}
}

func TestRequest(t *testing.T) {
	var none *Request
	if none.Again(nil) || none.DoneWith(1) != nil || RequestFromContext(t.Context()) != nil {
		t.Error("there is a request")
	}
	r := &Request{Done: Done{Key: "k", Digest: "d"}}
	d := r.DoneWith([]int{1, 2})
	if RequestFromContext(WithRequest(t.Context(), r)) != r || r.Again(nil) || d.Key != "k" || string(d.Result) != "[1,2]" {
		t.Errorf("%+v", d)
	}
	r.Earlier = d
	var got []int
	if !r.Again(&got) || len(got) != 2 || !r.Again(nil) {
		t.Errorf("%v", got)
	}
}

func TestPending(t *testing.T) {
	var none *Pending
	none.Begin()()
	var p Pending
	ended, open := p.Begin(), p.Begin()
	ended()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it does not wait: %v", err)
	}
	open()
	if err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
}

func TestOf(t *testing.T) {
	if FromStore(nil) != nil {
		t.Error("there is an error")
	}
	full := errors.New("disk full")
	for _, tc := range []struct {
		err     error
		unknown bool
	}{{Unknown(full), true}, {fmt.Errorf("etcd: %w", Unknown(full)), true}, {full, false}, {ErrNotLeader, false}} {
		err := FromStore(tc.err)
		if errors.Is(err, ErrUnknown) != tc.unknown || !Tells(err) || strings.Contains(err.Error(), "nothing was changed") == tc.unknown {
			t.Errorf("%v", err)
		}
	}
}
