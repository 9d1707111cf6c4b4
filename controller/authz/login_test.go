package authz_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/tests/oidctest"
)

// browser is a client of a rig's guarded page. It follows links and keeps cookies.
type browser struct {
	*http.Client
	url string
}

func newBrowser(t *testing.T, r *rig) *browser {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/fabric", func(w http.ResponseWriter, q *http.Request) {
		code, why := r.guard.Request(q)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, why)
	})
	mux.Handle("/", r.guard.Login())
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the issuer has another CA
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{Client: &http.Client{Transport: transport, Jar: jar}, url: server.URL}
}

// do sends a request and returns the answer's code, body and cookies.
func (b *browser) do(t *testing.T, method, path, form string, header ...string) (int, string, []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header["Set-Cookie"]
}

func (b *browser) expect(t *testing.T, what, method, path, form string, code int, text string, header ...string) {
	t.Helper()
	if got, said, _ := b.do(t, method, path, form, header...); got != code || !strings.Contains(said, text) {
		t.Errorf("%s: %d %q, want %d with %q", what, got, said, code, text)
	}
}

// TestLogin: a browser shows a token once and gets a cookie that scripts and other sites cannot use.
func TestLogin(t *testing.T) {
	r := start(t, "", policy)
	r.write(t, "tokens", "ci "+bearer+"\nother bbbbbbbbbbbbbbbbbbbbbbbb\n")
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, r)
	b.expect(t, "before", "GET", "/api/fabric", "", http.StatusUnauthorized, "want a client certificate or a token")
	b.expect(t, "ways", "GET", "/login", "", http.StatusOK, `{"inside":false,"oidc":false,"token":true}`)
	b.expect(t, "a wrong token", "POST", "/login", "token=cccccccccccccccccccccccc", http.StatusUnauthorized, "the token is not known")
	b.expect(t, "no token", "POST", "/login", "", http.StatusUnauthorized, "the token is not known")
	b.expect(t, "a long token", "POST", "/login", "token="+strings.Repeat("a", 4000), http.StatusBadRequest, "want at most 3800")
	b.expect(t, "a token without a role", "POST", "/login", "token=bbbbbbbbbbbbbbbbbbbbbbbb", http.StatusForbidden, "token:other has no role")
	b.expect(t, "another site's form", "POST", "/login", "token="+bearer, http.StatusForbidden, "cross-origin", "Sec-Fetch-Site", "cross-site")
	b.expect(t, "still", "GET", "/api/fabric", "", http.StatusUnauthorized, "")
	code, said, cookies := b.do(t, "POST", "/login", "token="+bearer)
	if want := "__Host-headgate=" + bearer + "; Path=/; HttpOnly; Secure; SameSite=Strict"; code != http.StatusNoContent || len(cookies) != 1 || cookies[0] != want {
		t.Errorf("%d %q, cookies %q, want %q", code, said, cookies, want)
	}
	b.expect(t, "inside", "GET", "/api/fabric", "", http.StatusOK, "")
	b.expect(t, "ways inside", "GET", "/login", "", http.StatusOK, `"inside":true`)
	b.expect(t, "a header before the cookie", "GET", "/api/fabric", "", http.StatusUnauthorized, "", "Authorization", "Bearer nobody")
	r.write(t, "tokens", "")
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	b.expect(t, "a token that was withdrawn", "GET", "/api/fabric", "", http.StatusUnauthorized, "")
	b.expect(t, "out", "POST", "/logout", "", http.StatusNoContent, "")
	b.expect(t, "ways outside", "GET", "/login", "", http.StatusOK, `"inside":false`)
	b.expect(t, "no issuer", "GET", "/login/oidc", "", http.StatusNotFound, "want oidc in the policy")

	w := httptest.NewRecorder()
	r.guard.Login().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/login?token="+bearer, nil))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "want TLS") {
		t.Errorf("in plain text: %d %s", w.Code, w.Body)
	}
}

// TestLoginByIssuer: an issuer's confirmation logs in the browser that began the login, once.
func TestLoginByIssuer(t *testing.T) {
	r := start(t, "", policy)
	i := oidctest.New(t, r.Authority, "127.0.0.1")
	r.write(t, "policy.yaml", strings.Replace(policy, "grants:", fmt.Sprintf("oidc: {issuer: %q, audience: headgate, claim: email, ca: ca.pem}\ngrants:\n  - {who: 'oidc:carol@lab', role: viewer}", i.URL), 1))
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"email": "carol@lab", "email_verified": true}
	with := func(more map[string]any) func() map[string]any {
		return func() map[string]any {
			all := map[string]any{"nonce": i.Asked.Get("nonce")}
			maps.Copy(all, claims)
			maps.Copy(all, more)
			return all
		}
	}
	for _, c := range []struct {
		name   string
		more   map[string]any
		code   int
		text   string
		inside int
	}{
		{"another login's token", map[string]any{"nonce": "x"}, http.StatusUnauthorized, "for another login", http.StatusUnauthorized},
		{"another audience", map[string]any{"aud": "x"}, http.StatusUnauthorized, "the token is refused", http.StatusUnauthorized},
		{"nobody of the policy", map[string]any{"email": "dave@lab"}, http.StatusForbidden, "has no role", http.StatusUnauthorized},
		{"carol", nil, http.StatusOK, "url=/", http.StatusOK},
	} {
		b := newBrowser(t, r)
		i.Claims = with(c.more)
		b.expect(t, c.name, "GET", "/login/oidc", "", c.code, c.text)
		b.expect(t, c.name+", then", "GET", "/api/fabric", "", c.inside, "")
		b.expect(t, c.name+", again", "GET", "/login/oidc/callback?code=once&state="+i.Asked.Get("state"), "", http.StatusBadRequest, "no login was begun")
	}
	if a := i.Asked; a.Get("response_type") != "code" || a.Get("client_id") != "headgate" || a.Get("scope") != "openid profile email" {
		t.Errorf("the issuer was asked %v", a)
	}
	b := newBrowser(t, r)
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	code, _, cookies := b.do(t, "GET", "/login/oidc", "")
	if code != http.StatusFound || len(cookies) != 1 || !strings.HasSuffix(cookies[0], "; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("%d, cookies %q", code, cookies)
	}
	b.expect(t, "an answer for another login", "GET", "/login/oidc/callback?code=once&state="+url.QueryEscape("x"), "", http.StatusBadRequest, "for another login")
	b.do(t, "GET", "/login/oidc", "")
	i.Asked = url.Values{"code_challenge": {"x"}, "code_challenge_method": {"S256"}}
	u, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	state, _, _ := strings.Cut(b.Jar.Cookies(u)[0].Value, ".")
	b.expect(t, "a code that another has begun", "GET", "/login/oidc/callback?code=once&state="+state, "", http.StatusUnauthorized, "gives no token for its code")
}
