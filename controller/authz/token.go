package authz

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/internal/yamlnode"
)

// token is an entry of the token file. Only its hash is kept.
type token struct {
	name string
	sum  [sha256.Size]byte
}

// leastToken is the shortest length that cannot be guessed: 120 bits in base64.
const leastToken = 20

// readTokens reads a file of lines with a name and a token. Empty lines and lines that begin with # are skipped.
// Only its owner may have access to the file.
func readTokens(dirs confine.Dirs, name string) ([]token, error) {
	text, info, err := dirs.Read(name, confine.MaxSecret)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %#o, want 0600: others have access to the tokens in it", name, mode)
	}
	var list []token
	names := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 || !yamlnode.IsWord(words[0]) || len(words[1]) < leastToken || names[words[0]] {
			return nil, fmt.Errorf("%s:%d: want a name of its own and a token of at least %d characters", name, n, leastToken)
		}
		names[words[0]] = true
		list = append(list, token{words[0], sha256.Sum256([]byte(words[1]))})
	}
	return list, nil
}

// static looks a token up in constant time, so that timing reveals nothing about the tokens in the file.
func (p *policy) static(bearer string) (Identity, bool) {
	sum, found := sha256.Sum256([]byte(bearer)), -1
	for i, t := range p.tokens {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t.sum[:]), i, found)
	}
	if found < 0 {
		return Identity{}, false
	}
	return Identity{Name: "token:" + p.tokens[found].name}, true
}

// provider checks tokens of OpenID Connect. It asks the issuer for its keys when the first token comes, so that a
// controller can start while the issuer is down.
type provider struct {
	OIDC
	client *http.Client
	asking singleflight.Group
	issuer atomic.Pointer[oidc.Provider] // nil until it has answered
}

// issuerWait is how long the issuer may take to answer.
const issuerWait = 5 * time.Second

func newProvider(o OIDC, dirs confine.Dirs) (*provider, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if o.CA != "" {
		pem, err := dirs.Secret(o.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no PEM certificate", o.CA)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &provider{OIDC: o, client: &http.Client{Transport: t, Timeout: issuerWait}}, nil
}

// context returns ctx for calls to the issuer; they continue when ctx is cancelled.
func (p *provider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(context.WithoutCancel(ctx), p.client)
}

// verify returns the identity that a token belongs to, and the nonce of the login that asked for it.
func (p *provider) verify(ctx context.Context, bearer string) (id Identity, nonce string, err error) {
	issuer, err := p.connect(ctx)
	if err != nil {
		return id, "", fmt.Errorf("the issuer of tokens does not answer: %w", err)
	}
	t, err := issuer.Verifier(&oidc.Config{ClientID: p.Audience}).Verify(p.context(ctx), bearer)
	if err != nil {
		return id, "", err
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return id, "", err
	}
	name, _ := claims[p.Claim].(string)
	if name == "" {
		return id, "", fmt.Errorf("the token has no claim %s", p.Claim)
	}
	// OpenID Connect Core 1.0, section 5.7: an unverified email address does not identify its holder.
	if verified, _ := claims["email_verified"].(bool); p.Claim == "email" && !verified {
		return id, "", errors.New("the token's email is not verified")
	}
	return Identity{Name: "oidc:" + name}, t.Nonce, nil
}

// connect asks the issuer once for all waiting callers. Each caller waits no longer than its own ctx.
func (p *provider) connect(ctx context.Context) (*oidc.Provider, error) {
	if issuer := p.issuer.Load(); issuer != nil {
		return issuer, nil
	}
	asked := p.asking.DoChan("", func() (any, error) {
		issuer, err := oidc.NewProvider(p.context(ctx), p.Issuer)
		if err == nil {
			p.issuer.Store(issuer)
		}
		return issuer, err
	})
	select {
	case r := <-asked:
		return r.Val.(*oidc.Provider), r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Request decides whether an HTTP request may see the metrics. It returns the code 200, or 401, 403 or 429 with the
// reason.
func (a *Authorizer) Request(r *http.Request) (code int, why string) {
	c := Caller{Identity: Identity{Name: loopback}, Address: r.RemoteAddr}
	if r.TLS != nil {
		c.Identity = ofCertificate(*r.TLS)
	} else if !service.OnLoopback(r.Host) {
		// Against DNS rebinding: a page of another site, whose name resolves to this address, must not read the
		// metrics.
		why := fmt.Sprintf("the host is %q: without TLS want localhost, or an address of loopback", r.Host)
		return http.StatusForbidden, status.Convert(a.refuse(c, Metrics, codes.PermissionDenied, why)).Message()
	}
	if token, ok := tokenOf(r); ok {
		c.Identity = Identity{}
		if r.TLS != nil {
			c.Identity, _ = a.holder(r.Context(), c, token)
		}
	}
	_, err := a.admit(r.Context(), c, Metrics)
	switch status.Code(err) {
	case codes.OK:
		return http.StatusOK, ""
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
	case codes.ResourceExhausted:
		code = http.StatusTooManyRequests
	default:
		code = http.StatusForbidden
	}
	return code, status.Convert(err).Message()
}
