package slots

import "testing"

func TestList(t *testing.T) {
	var l List[int]
	var first *int
	const n = 5*chunk + 1
	for i := range n {
		at := l.Add()
		if *at != 0 {
			t.Fatalf("element %d begins as %d, want 0", i, *at)
		}
		*at = i
		if i == 0 {
			first = at
		}
	}
	if l.Len() != n || l.At(0) != first {
		t.Errorf("%d elements, the first at %p, want %d at %p", l.Len(), l.At(0), n, first)
	}
	sum := 0
	for v := range l.All {
		if *v == n-1 {
			break
		}
		sum += *v
	}
	if want := (n - 1) * (n - 2) / 2; sum != want {
		t.Errorf("elements add up to %d, want %d", sum, want)
	}
}
