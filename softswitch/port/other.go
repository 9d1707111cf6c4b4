//go:build !linux

package port

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpenInterface fails, because AF_PACKET exists only on Linux.
func OpenInterface(p Named) (Port, Source, error) {
	return nil, nil, fmt.Errorf("interface %s: %w", p.Name, errors.ErrUnsupported)
}

// OpenBest does what OpenInterface does.
func OpenBest(p Named, _ *IfaceUsers) (Port, Source, error) { return OpenInterface(p) }

// IfaceUsers exists only on Linux.
type IfaceUsers struct{}

// OpenIfaceUsers works only on Linux.
func OpenIfaceUsers() (*IfaceUsers, error) {
	return nil, fmt.Errorf("network interfaces: %w", errors.ErrUnsupported)
}

// Look does nothing outside of Linux.
func (*IfaceUsers) Look(bool) error { return nil }

// Close does nothing outside of Linux.
func (*IfaceUsers) Close() error { return nil }

// Gather returns the sources unchanged outside of Linux.
func Gather(sources []Source, _ int, _ time.Duration) []Source { return sources }

// OpenXDP does what OpenInterface does.
func OpenXDP(p Named) (Port, Source, error) { return OpenInterface(p) }

// LinkEvents exists only on Linux.
type LinkEvents struct{}

// OpenLinkEvents works only on Linux.
func OpenLinkEvents() (*LinkEvents, error) {
	return nil, fmt.Errorf("link events: %w", errors.ErrUnsupported)
}

// Run waits for the end of ctx.
func (*LinkEvents) Run(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}
