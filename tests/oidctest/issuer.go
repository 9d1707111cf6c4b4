// Package oidctest is an issuer of OpenID Connect for tests: discovery, keys, and the authorization code flow with
// PKCE (RFC 7636).
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/headgate/headgate/internal/testcert"
)

// Issuer is a server with one key.
type Issuer struct {
	*httptest.Server
	Key    *rsa.PrivateKey
	Asked  url.Values            // parameters of the login that was begun last
	Claims func() map[string]any // additional claims of the token that a login ends with

	// Form makes the issuer ask for an address, which becomes the claim email, with a form in the browser. Else each
	// login succeeds at once.
	Form bool
}

// New starts an issuer, whose certificate the authority signs, until the test ends. host is a name or address of
// loopback.
func New(t *testing.T, a *testcert.Authority, host string) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Key: key, Claims: func() map[string]any { return nil }}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		i.Asked = r.URL.Query()
		switch email := r.PostFormValue("email"); {
		case i.Form && email == "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><title>Issuer</title><form method="post" action="%s"><input id="email" name="email" autofocus><button>Log in</button></form>`, html.EscapeString(r.URL.String()))
			return
		case i.Form:
			i.Claims = func() map[string]any {
				return map[string]any{"nonce": i.Asked.Get("nonce"), "email": email, "email_verified": true}
			}
		}
		http.Redirect(w, r, i.Asked.Get("redirect_uri")+"?code=once&state="+i.Asked.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "once" || i.Asked.Get("code_challenge_method") != "S256" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.Asked.Get("code_challenge") {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.Token(t, i.Key, i.Claims())})
	})
	i.Server = httptest.NewUnstartedServer(mux)
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.Issue(t, "issuer", "issuer")
	i.TLS = &tls.Config{Certificates: []tls.Certificate{a.Pair(t, "issuer")}}
	i.StartTLS()
	i.URL = strings.Replace(i.URL, "127.0.0.1", host, 1)
	t.Cleanup(func() { i.CloseClientConnections(); i.Close() })
	return i
}

// Token signs claims, which are beside those that every token has.
func (i *Issuer) Token(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL, "aud": "headgate", "sub": "s", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	maps.Copy(all, claims)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}
