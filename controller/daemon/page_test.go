package daemon

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	bt "github.com/headgate/headgate/tests/browsertest"
)

// TestPageOverTLS: a browser sees nothing of the fabric until it shows a token, and nothing any more after it has logged
// out.
func TestPageOverTLS(t *testing.T) {
	const token = "aaaaaaaaaaaaaaaaaaaaaaaa"
	ctx := bt.Start(t)
	g := newGuarded(t)
	g.write(t, "tokens", "carol "+token+"\n")
	g.write(t, "policy.yaml", "grants:\n  - {who: 'cn:alice', role: admin}\n  - {who: 'token:carol', role: viewer}\ntokens: tokens\n")
	conn, _ := serve(t, g.options(t))
	if _, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	inside := bt.Until("!document.getElementById('fabric-parts').hidden && document.querySelectorAll('#fabric a.node').length > 0")
	outside := bt.Until("!document.getElementById('login').hidden && document.activeElement.id === 'token'")
	if err := chromedp.Run(ctx, bt.Window{Width: 390, Height: 844}.Set(),
		chromedp.Navigate("https://"+g.metrics+"/"), outside,
		bt.Is(t, "document.querySelectorAll('#fabric a.node').length", "0"),
		chromedp.KeyEvent("wrong"+kb.Enter), bt.Until("document.getElementById('refusal').textContent.includes('the token is not known')"),
		bt.Is(t, "document.activeElement.id", "token"),
		chromedp.KeyEvent(token+kb.Enter), inside,
		bt.Is(t, "document.cookie", ""), // scripts do not see it
		bt.Until("!document.getElementById('logout').hidden"),
		chromedp.Click("#logout"), outside,
	); err != nil {
		t.Fatal(err)
	}
}
