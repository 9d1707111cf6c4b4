package entity

// ordered is a map that remembers the order in which keys came, so that reads are the same
// every time. The zero value is empty.
type ordered[V any] struct {
	keys []uint32
	at   map[uint32]int // place in keys
	vals map[uint32]V
}

func (o *ordered[V]) get(k uint32) (V, bool) { v, ok := o.vals[k]; return v, ok }

func (o *ordered[V]) len() int { return len(o.keys) }

func (o *ordered[V]) set(k uint32, v V) {
	if o.at == nil {
		o.at, o.vals = map[uint32]int{}, map[uint32]V{}
	}
	if _, ok := o.at[k]; !ok {
		o.at[k] = len(o.keys)
		o.keys = append(o.keys, k)
	}
	o.vals[k] = v
}

// remove moves the last key to the place of k: removing takes constant time.
func (o *ordered[V]) remove(k uint32) {
	i, ok := o.at[k]
	if !ok {
		return
	}
	last := o.keys[len(o.keys)-1]
	o.keys[i], o.at[last] = last, i
	o.keys = o.keys[:len(o.keys)-1]
	delete(o.at, k)
	delete(o.vals, k)
}

// each calls f for every value in order; f must not change the map.
func (o *ordered[V]) each(f func(k uint32, v V)) {
	for _, k := range o.keys {
		f(k, o.vals[k])
	}
}
