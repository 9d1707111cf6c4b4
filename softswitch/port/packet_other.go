//go:build !linux

package port

import (
	"errors"
	"fmt"
)

// OpenInterface is for Linux only.
func OpenInterface(p Named) (Port, Source, error) {
	return nil, nil, fmt.Errorf("interface %s: %w", p.Name, errors.ErrUnsupported)
}
