package authz_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"
)

// issuer is a server of OpenID Connect with one key.
type issuer struct {
	*httptest.Server
	key    *rsa.PrivateKey
	asked  url.Values            // of the login that was begun last
	claims func() map[string]any // of the token that a login ends with
}

func newIssuer(t *testing.T, r *rig) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
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
		i.asked = r.URL.Query()
		http.Redirect(w, r, i.asked.Get("redirect_uri")+"?code=once&state="+i.asked.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "once" || i.asked.Get("code_challenge_method") != "S256" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.asked.Get("code_challenge") {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.token(t, i.key, i.claims())})
	})
	i.Server = httptest.NewUnstartedServer(mux)
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.Issue(t, "issuer", "issuer")
	pair, err := tls.LoadX509KeyPair(r.File("issuer.pem"), r.File("issuer.key"))
	if err != nil {
		t.Fatal(err)
	}
	i.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	i.StartTLS()
	t.Cleanup(func() { i.CloseClientConnections(); i.Close() })
	return i
}

// token signs claims, which are beside those that every token has.
func (i *issuer) token(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL, "aud": "headgate", "sub": "s", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for k, v := range claims {
		all[k] = v
	}
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

func TestOIDC(t *testing.T) {
	r := start(t, "", policy)
	i := newIssuer(t, r)
	r.write(t, "policy.yaml", strings.Replace(policy, "grants:", fmt.Sprintf("oidc: {issuer: %q, audience: headgate, claim: email, ca: ca.pem}\ngrants:\n  - {who: 'oidc:carol@lab', role: viewer}", i.URL), 1))
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	carol := func(more map[string]any) map[string]any {
		claims := map[string]any{"email": "carol@lab", "email_verified": true}
		for k, v := range more {
			claims[k] = v
		}
		return claims
	}
	for _, c := range []struct {
		name  string
		token string
		want  codes.Code
	}{
		{"carol", i.token(t, i.key, carol(nil)), codes.OK},
		{"static", bearer, codes.OK},
		{"nobody of the policy", i.token(t, i.key, carol(map[string]any{"email": "dave@lab"})), codes.PermissionDenied},
		{"an email that is not verified", i.token(t, i.key, carol(map[string]any{"email_verified": false})), codes.Unauthenticated},
		{"no email", i.token(t, i.key, nil), codes.Unauthenticated},
		{"another's signature", i.token(t, other, carol(nil)), codes.Unauthenticated},
		{"for another", i.token(t, i.key, carol(map[string]any{"aud": "elsewhere"})), codes.Unauthenticated},
		{"expired", i.token(t, i.key, carol(map[string]any{"exp": 1})), codes.Unauthenticated},
		{"no token", "x.y.z", codes.Unauthenticated},
	} {
		conn := r.as(t, "token "+c.token)
		if got := code(t, conn, "get"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := code(t, conn, "apply"); got == codes.OK {
			t.Errorf("%s applies", c.name)
		}
		if got := code(t, conn, "attach h1"); got == codes.OK {
			t.Errorf("%s attaches", c.name)
		}
	}
}
