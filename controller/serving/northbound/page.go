package northbound

import (
	"encoding/base64"
	"slices"
	"strings"
)

// paged is a request for a page of a list (AIP-158).
type paged interface {
	GetPageSize() uint32
	GetPageToken() string
}

// page returns the part of a list that a request asks for, and the token of the next page, empty on the last. The
// list is ordered by key. A token holds the last key of its page. So elements that are added or removed between two
// calls do not shift the others.
func page[T any](list []T, r paged, key func(T) string) (part []T, next string, err error) {
	if token := r.GetPageToken(); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(last) == 0 {
			return nil, "", invalid("page_token", "%q is not allowed: want next_page_token of the previous answer", clean(token))
		}
		first, found := slices.BinarySearchFunc(list, string(last), func(v T, last string) int { return strings.Compare(key(v), last) })
		if found {
			first++
		}
		list = list[first:]
	}
	size := r.GetPageSize()
	if size == 0 || uint64(len(list)) <= uint64(size) {
		return list, "", nil
	}
	return list[:size], base64.RawURLEncoding.EncodeToString([]byte(key(list[size-1]))), nil
}
