//go:build !linux

package port

import (
	"errors"
	"fmt"
)

// OpenXDP is for Linux only.
func OpenXDP(p Named) (Port, Source, error) {
	return nil, nil, fmt.Errorf("interface %s: %w", p.Name, errors.ErrUnsupported)
}
