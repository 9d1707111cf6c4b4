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

// OpenBest is for Linux only.
func OpenBest(p Named, _ *Users) (Port, Source, error) { return OpenInterface(p) }

// Users is for Linux only.
type Users struct{}

// OpenUsers is for Linux only.
func OpenUsers() (*Users, error) {
	return nil, fmt.Errorf("network interfaces: %w", errors.ErrUnsupported)
}

// Look is for Linux only.
func (*Users) Look(bool) error { return nil }

// Close is for Linux only.
func (*Users) Close() error { return nil }

// Gather is for Linux only.
func Gather(sources []Source, _ int) []Source { return sources }
