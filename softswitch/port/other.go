//go:build !linux

package port

import (
	"context"
	"errors"
	"fmt"
)

// OpenInterface is for Linux only.
func OpenInterface(p Named) (Port, Source, error) {
	return nil, nil, fmt.Errorf("interface %s: %w", p.Name, errors.ErrUnsupported)
}

// OpenBest is for Linux only.
func OpenBest(p Named, _ *IfaceUsers) (Port, Source, error) { return OpenInterface(p) }

// IfaceUsers is for Linux only.
type IfaceUsers struct{}

// OpenIfaceUsers is for Linux only.
func OpenIfaceUsers() (*IfaceUsers, error) {
	return nil, fmt.Errorf("network interfaces: %w", errors.ErrUnsupported)
}

// Look is for Linux only.
func (*IfaceUsers) Look(bool) error { return nil }

// Close is for Linux only.
func (*IfaceUsers) Close() error { return nil }

// Gather is for Linux only.
func Gather(sources []Source, _ int) []Source { return sources }

// OpenXDP is for Linux only.
func OpenXDP(p Named) (Port, Source, error) { return OpenInterface(p) }

// LinkEvents are for Linux only.
type LinkEvents struct{}

// OpenLinkEvents is for Linux only.
func OpenLinkEvents() (*LinkEvents, error) {
	return nil, fmt.Errorf("link events: %w", errors.ErrUnsupported)
}

// Run waits for the end of ctx.
func (*LinkEvents) Run(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}
