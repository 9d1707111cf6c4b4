package authz

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
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
