// Package authz decides who may do what: who calls (identity.go), what the policy grants to
// whom (policy.go, role.go), and how much of it at a time (limits.go). An Authorizer stands before the
// API and the metrics; what the table of methods does not name is refused.
//
// A caller is known by what it cannot forge: a client certificate, a bearer token, or the
// kernel's word on the process at the other end of a Unix socket. The user that the controller
// runs as, and root, may do everything over the socket, whatever the policy says: they could
// replace the controller too.
package authz
