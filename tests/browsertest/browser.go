// Package browsertest lets tests look at pages with Chromium, through its DevTools protocol.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Window is the browser window of a page.
type Window struct {
	Width, Height int64
	Dark          bool
	Touch         bool // a phone's: taps, and no mouse
}

// Start starts Chromium for a test and returns the context of its only tab, which lives for two minutes. An
// exception in a page's script fails the test. The test is skipped if Chromium is missing or does not start.
func Start(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not on the PATH: it is in Debian's package chromium")
	}
	profile, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // a browser's last process can outlive the first
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			t.Errorf("the page's script fails: %v", e.ExceptionDetails)
		}
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	return ctx
}

// Set gives the tab a window.
func (w Window) Set() chromedp.Action {
	scheme := "light"
	if w.Dark {
		scheme = "dark"
	}
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(w.Width, w.Height, 1, w.Touch),
		emulation.SetTouchEmulationEnabled(w.Touch),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	}
}

// patience is how long a page may take to reach a state.
const patience = time.Minute

// Until waits until an expression of JavaScript is true, on the page that is shown at that time.
func Until(expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		return evaluate(ctx, expression, func(got string) bool { return got != "" }, "&& 'true' || ''")
	})
}

// Is checks that an expression of JavaScript has a value, as text.
func Is(t *testing.T, expression, want string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		return evaluate(ctx, expression, func(got string) bool {
			if got != want {
				t.Errorf("%s is %q, want %q", expression, got, want)
			}
			return true
		}, "")
	})
}

// evaluate evaluates an expression until done accepts the value. There is no value while another page loads.
func evaluate(ctx context.Context, expression string, done func(string) bool, more string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var got string
		err := chromedp.Evaluate("String(("+expression+")"+more+")", &got).Do(ctx)
		switch {
		case err == nil && done(got):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("%s: not within %v (%w)", expression, patience, err)
		}
	}
}
