package authz

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/service"
)

// Request says why a request of HTTP may not see the metrics: 401 or 403 or 429, and 200 when it
// may.
func (a *Authorizer) Request(r *http.Request) (code int, why string) {
	c := Caller{Identity: Identity{Name: loopback}, Address: r.RemoteAddr}
	if r.TLS != nil {
		c.Identity = ofCertificate(*r.TLS)
	} else if !service.OnLoopback(r.Host) {
		// A page of another name, which that name's owner lets point here, must not read this one's.
		why := fmt.Sprintf("the host is %q: without TLS want localhost, or an address of loopback", r.Host)
		return http.StatusForbidden, status.Convert(a.refuse(c, Metrics, codes.PermissionDenied, why)).Message()
	}
	if bearer, ok := bearerOf(metadata.MD{"authorization": r.Header["Authorization"]}); ok {
		a.mu.Lock()
		p := a.policy
		a.mu.Unlock()
		c.Identity, ok = Identity{}, false
		if r.TLS != nil {
			c.Identity, ok = p.static(bearer)
		}
		if !ok && r.TLS != nil && p.oidc != nil && a.limit(c, Metrics) == nil {
			id, err := p.oidc.verify(r.Context(), bearer)
			if err == nil {
				c.Identity = id
			}
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
