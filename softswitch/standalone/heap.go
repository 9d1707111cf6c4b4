package standalone

import "os"

// spareBytes is how much garbage there may be at least, 32 MB: a Write of a thousand updates leaves some
// 0.4 MB. An idle switch uses none of it.
const spareBytes = 32 << 20

// spareHeap returns memory to hold and never to touch, so that there is none behind it. The collector, which
// runs when the heap has doubled, counts it all the same, and a small switch does not collect after every
// few megabytes of messages. It returns none where the environment says when to collect.
func spareHeap() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, spareBytes)
}
