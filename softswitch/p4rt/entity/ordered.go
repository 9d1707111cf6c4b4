package entity

// ordered is a map that remembers the order in which keys were added, so that every read gives the
// same order. The zero value is empty.
type ordered[K comparable, V any] struct {
	at    map[K]int // index in items
	items []item[K, V]
}

type item[K comparable, V any] struct {
	key   K
	value V
}

func (o *ordered[K, V]) get(k K) (v V, ok bool) {
	i, ok := o.at[k]
	if ok {
		v = o.items[i].value
	}
	return v, ok
}

func (o *ordered[K, V]) len() int { return len(o.items) }

func (o *ordered[K, V]) set(k K, v V) {
	if i, ok := o.at[k]; ok {
		o.items[i].value = v
		return
	}
	if o.at == nil {
		o.at = map[K]int{}
	}
	o.at[k] = len(o.items)
	o.items = append(o.items, item[K, V]{k, v})
}

// remove removes k in constant time: it moves the last item to the place of k.
func (o *ordered[K, V]) remove(k K) {
	i, ok := o.at[k]
	if !ok {
		return
	}
	last := len(o.items) - 1
	o.at[o.items[last].key] = i
	o.items[i] = o.items[last]
	o.items[last] = item[K, V]{}
	o.items = o.items[:last]
	delete(o.at, k)
}

// all yields every item in order; the map must not change meanwhile.
func (o *ordered[K, V]) all(yield func(K, V) bool) {
	for _, x := range o.items {
		if !yield(x.key, x.value) {
			return
		}
	}
}

// read calls f for the value of key k, or for every value if k is zero. It returns false if there
// is no such key.
func (o *ordered[K, V]) read(k K, f func(V)) bool {
	var zero K
	if k == zero {
		for _, v := range o.all {
			f(v)
		}
		return true
	}
	v, ok := o.get(k)
	if ok {
		f(v)
	}
	return ok
}
