package daemon

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	bt "github.com/headgate/headgate/tests/browsertest"
	"github.com/headgate/headgate/tests/oidctest"
)

// TestPageOverTLS: a browser sees nothing of the fabric before it shows a token, and nothing after it has logged out.
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
		bt.Is(t, "document.cookie", ""), // hidden from scripts
		bt.Until("!document.getElementById('logout').hidden"),
		chromedp.Click("#logout"), outside,
	); err != nil {
		t.Fatal(err)
	}
}

// TestPageByIssuer: a browser logs in at an OpenID Connect issuer on another site. A user without a grant gets an
// explanation.
func TestPageByIssuer(t *testing.T) {
	ctx := bt.Start(t)
	g := newGuarded(t)
	i := oidctest.New(t, g.Authority, "localhost")
	i.Form = true
	g.write(t, "policy.yaml", fmt.Sprintf("grants:\n  - {who: 'cn:alice', role: admin}\n  - {who: 'oidc:carol@lab', role: viewer}\noidc: {issuer: %q, audience: headgate, claim: email, ca: ca.pem}\n", i.URL))
	conn, _ := serve(t, g.options(t))
	if _, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	page := "https://" + g.metrics + "/"
	outside := bt.Until("!document.getElementById('login').hidden && !document.getElementById('oidc').hidden")
	login := func(email string) chromedp.Tasks {
		return chromedp.Tasks{
			chromedp.Click("#oidc a"), bt.Until("document.title === 'Issuer' && document.activeElement.id === 'email'"),
			chromedp.KeyEvent(email + kb.Enter),
		}
	}
	if err := chromedp.Run(ctx, bt.Window{Width: 820, Height: 1100}.Set(),
		chromedp.Navigate(page), outside, login("dave@lab"),
		bt.Until("location.pathname === '/login/oidc/callback' && document.body.innerText.includes('oidc:dave@lab has no role')"),
		chromedp.Navigate(page), outside, login("carol@lab"),
		bt.Until("location.pathname === '/' && !document.getElementById('fabric-parts').hidden && document.querySelectorAll('#fabric a.node').length > 0"),
		bt.Is(t, "document.cookie", ""), // hidden from scripts
		chromedp.Reload(), bt.Until("document.querySelectorAll('#fabric a.node').length > 0 && !document.getElementById('logout').hidden"),
		chromedp.Click("#logout"), outside,
		bt.Is(t, "document.querySelectorAll('#fabric a.node').length", "0"),
	); err != nil {
		t.Fatal(err)
	}
	if a := i.Asked; a.Get("response_type") != "code" || a.Get("code_challenge_method") != "S256" || a.Get("redirect_uri") != page+"login/oidc/callback" {
		t.Errorf("the issuer was asked %v", a)
	}
}
