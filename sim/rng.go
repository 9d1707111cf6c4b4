package sim

import (
	"hash/fnv"
	"math/rand/v2"
)

// Stream returns the random stream of the component called name in the run of a seed. What
// one component draws does not move another.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails (hash.Hash)
	return rand.New(rand.NewPCG(splitmix(seed), h.Sum64()))
}

// splitmix is splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that mixes.
func splitmix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
