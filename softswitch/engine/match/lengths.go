package match

import "slices"

// fewLengths is the number of prefix lengths up to which hash tables are faster than a trie.
const fewLengths = 4

// lengths holds a hash table for each prefix length, the longest first, for keys of one word. With
// more than fewLengths lengths it turns into a trie.
type lengths struct {
	key  *Key
	list []length
	trie *prefixes // nil until there are more than fewLengths lengths
}

type length struct {
	mask uint64 // of the prefix and the exact fields, the same for all entries
	bits int
	m    wordMap[Entry]
}

func (x *lengths) Find(key []uint64, s *Scratch) *Entry {
	if x.trie != nil {
		return x.trie.Find(key, s)
	}
	for i := range x.list {
		l := &x.list[i]
		if e := l.m.get(key[0] & l.mask); e != nil {
			return e
		}
	}
	return nil
}

// at returns the index of a prefix length, or the index at which it would be inserted.
func (x *lengths) at(bits int) (int, bool) {
	return slices.BinarySearchFunc(x.list, bits, func(l length, bits int) int { return bits - l.bits })
}

func (x *lengths) Same(e *Entry) *Entry {
	if x.trie != nil {
		return x.trie.Same(e)
	}
	i, ok := x.at(e.priority)
	if !ok {
		return nil
	}
	return x.list[i].m.get(e.short[0])
}

func (x *lengths) Add(e *Entry) {
	i, ok := x.at(e.priority)
	switch {
	case x.trie != nil:
		x.trie.Add(e)
		return
	case !ok && len(x.list) == fewLengths:
		x.trie = newPrefixes(x.key)
		for i := range x.list {
			x.list[i].m.each(x.trie.Add)
		}
		x.list = nil
		x.trie.Add(e)
		return
	case !ok:
		x.list = slices.Insert(x.list, i, length{mask: e.short[1], bits: e.priority})
	}
	x.list[i].m.put(e.short[0], e)
}

func (x *lengths) Remove(e *Entry) {
	if x.trie != nil {
		x.trie.Remove(e)
		return
	}
	i, _ := x.at(e.priority)
	x.list[i].m.del(e.short[0])
	if x.list[i].m.n == 0 {
		x.list = slices.Delete(x.list, i, i+1)
	}
}
