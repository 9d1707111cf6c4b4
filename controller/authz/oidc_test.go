package authz_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/tests/oidctest"
)

func TestOIDC(t *testing.T) {
	r := start(t, "", policy)
	i := oidctest.New(t, r.Authority, "127.0.0.1")
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
		{"carol", i.Token(t, i.Key, carol(nil)), codes.OK},
		{"static", bearer, codes.OK},
		{"nobody of the policy", i.Token(t, i.Key, carol(map[string]any{"email": "dave@lab"})), codes.PermissionDenied},
		{"an email that is not verified", i.Token(t, i.Key, carol(map[string]any{"email_verified": false})), codes.Unauthenticated},
		{"no email", i.Token(t, i.Key, nil), codes.Unauthenticated},
		{"another's signature", i.Token(t, other, carol(nil)), codes.Unauthenticated},
		{"for another", i.Token(t, i.Key, carol(map[string]any{"aud": "elsewhere"})), codes.Unauthenticated},
		{"expired", i.Token(t, i.Key, carol(map[string]any{"exp": 1})), codes.Unauthenticated},
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
