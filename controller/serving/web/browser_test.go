package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	bt "github.com/headgate/headgate/tests/browsertest"
)

// open shows a page of the small fabric in a browser, and returns a function that runs actions in
// it.
func open(t *testing.T) (url string, run func(...chromedp.Action)) {
	t.Helper()
	ctx := bt.Start(t)
	server := httptest.NewServer(handler(small()))
	t.Cleanup(server.Close)
	return server.URL, func(list ...chromedp.Action) {
		t.Helper()
		if err := chromedp.Run(ctx, list...); err != nil {
			var dom string
			_ = chromedp.Run(ctx, chromedp.Evaluate("document.body ? document.body.innerText : ''", &dom))
			t.Fatalf("%v\n%s", err, dom)
		}
	}
}

const (
	ready   = "document.querySelectorAll('#charts canvas').length >= 3"
	title   = "document.getElementById('title').textContent"
	focused = "(document.activeElement.id || document.activeElement.getAttribute('href'))"
)

// TestSizes: in desktop, tablet and phone sizes, with light and dark colours, the page shows the fabric, and nothing
// overflows the window.
func TestSizes(t *testing.T) {
	url, run := open(t)
	for _, w := range []bt.Window{{Width: 1440, Height: 900}, {Width: 820, Height: 1100, Dark: true}, {Width: 390, Height: 844, Touch: true}, {Width: 390, Height: 844, Dark: true, Touch: true}} {
		t.Run(fmt.Sprintf("%d dark=%v", w.Width, w.Dark), func(t *testing.T) {
			run(w.Set(), chromedp.Navigate(url), bt.Until(ready),
				bt.Is(t, "document.documentElement.scrollWidth <= innerWidth", "true"),
				bt.Is(t, "document.getElementById('name').textContent", "two <b>switches</b>"), // the text is a name
				bt.Is(t, "document.getElementById('summary').textContent", "generation 7 · 1 of 2 switches ready · 1 of 4 links down · 1 port paused · 2 flows"),
				bt.Is(t, "['.ready', '.disconnected', 'circle.queue[r]', '.pause[d]', '.victim[d]', 'line.down'].map(s => document.querySelectorAll('#fabric ' + s).length > 0)", "true,true,true,true,true,true"),
				// A sending host has a loaded link: the half that leads away from h1 is wide.
				bt.Is(t, `Number(document.querySelector('[data-key="s1:1-h1"] line:nth-of-type(2)').getAttribute('stroke-width')) > 8`, "true"),
				bt.Is(t, "document.querySelectorAll('#flow-table tr[data-key]').length", "3"), // the host's heading and two flows
				bt.Is(t, "document.querySelector('#charts .cnps .empty').textContent", "Within ten minutes no congestion notification was sent."),
				bt.Is(t, "[...document.querySelectorAll('#map, #detail, #flows, #events, #history')].every(e => e.getBoundingClientRect().right <= innerWidth)", "true"),
			)
		})
	}
}

// TestKeyboard: a user gets from the page's address to a flow's rates without a mouse. The focus stays in place while
// the page is updated.
func TestKeyboard(t *testing.T) {
	url, run := open(t)
	updates := func(n int) chromedp.Action {
		return bt.Until(fmt.Sprintf("(window.marks ??= new Set()).add(document.getElementById('clock').textContent).size > %d", n))
	}
	run(bt.Window{Width: 1440, Height: 900}.Set(), chromedp.Navigate(url), bt.Until(ready),
		chromedp.KeyEvent("/"), bt.Is(t, focused, "search"),
		chromedp.Evaluate("document.getElementById('search').value = ''", nil), // DevTools types the / nevertheless
		chromedp.KeyEvent("h1:1001"), bt.Until("document.querySelectorAll('#found a[href]').length === 1"),
		chromedp.KeyEvent(kb.ArrowDown), bt.Is(t, focused, "#flow%2F10.0.0.1%3A1001%2C10.0.0.2%3A50151"),
		chromedp.KeyEvent(kb.Enter), bt.Until(title+" === 'h1:1001 → h2:50151'"), bt.Is(t, focused, "title"),
		bt.Until("document.querySelector('#charts .flows canvas')"),
		bt.Is(t, "document.getElementById('facts').innerText.includes('soze') && document.querySelectorAll('#charts .flows .key li').length === 1", "true"),
		// The share stands beside the rate.
		bt.Until("/M?b\\/s of 750 Mb\\/s/.test(document.querySelector('#charts .flows .key b').textContent)"),
		chromedp.Focus(`#fabric a.node[data-key="s1"]`), chromedp.Evaluate("window.held = document.activeElement", nil), updates(2),
		bt.Is(t, "document.activeElement === window.held && window.held.dataset.key", "s1"),
		chromedp.KeyEvent(kb.Enter), bt.Until(title+" === 's1'"),
		// Empty queues are left out.
		bt.Is(t, `document.querySelector('[data-key="Queues that hold something"] tbody').innerText.trim().split('\n').length`, "1"),
		chromedp.Focus("#filter"), chromedp.KeyEvent("probes"), updates(4), bt.Is(t, focused+" + document.getElementById('filter').value", "filterprobes"),
		bt.Is(t, "[...document.querySelectorAll('#event-rows a')].map(a => a.textContent)", "s1:2-s2:2,s1,s2"),
		chromedp.Focus(`#history-rows a[href="#apply%2F7"]`), chromedp.KeyEvent(kb.Enter),
		bt.Until("document.querySelectorAll('#diff del, #diff ins').length === 2"), bt.Is(t, "document.querySelector('#diff ins').textContent", "+ scale: 20\n"),
	)
}

// TestTap: a tap has the same effect as a click.
func TestTap(t *testing.T) {
	url, run := open(t)
	tap := func(selector string) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var at []float64
			find := fmt.Sprintf("(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()", selector)
			if err := chromedp.Evaluate(find, &at).Do(ctx); err != nil {
				return err
			}
			if err := input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at[0], Y: at[1]}}).Do(ctx); err != nil {
				return err
			}
			return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
		})
	}
	run(bt.Window{Width: 390, Height: 844, Touch: true}.Set(), chromedp.Navigate(url), bt.Until(ready),
		tap(`#fabric a.node[data-key="s2"] rect`), bt.Until(title+" === 's2'"),
		bt.Is(t, "document.getElementById('facts').innerText.includes('connection refused')", "true"),
		tap(`#fabric a.link[data-key="s1:2-s2:2"] .hit`), bt.Until(title+" === 's1:2 – s2:2'"),
	)
}
