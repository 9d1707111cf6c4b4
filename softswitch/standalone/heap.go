package standalone

import "os"

// spareBytes is the size of spareHeap, 32 MB. A Write of a thousand updates leaves some 0.4 MB of
// garbage. An idle switch uses none of the 32 MB.
const spareBytes = 32 << 20

// spareHeap returns memory that the caller keeps and never touches, so that no physical memory
// backs it. The garbage collector runs when the heap has doubled and counts this memory, so a
// small switch does not collect after every few megabytes of messages. spareHeap returns nil if
// the environment sets GOGC or GOMEMLIMIT.
func spareHeap() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, spareBytes)
}
