//go:build !linux

package port

import (
	"context"
	"errors"
	"fmt"
)

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
