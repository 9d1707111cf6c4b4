package authz

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/yamlnode"
)

// AnyApplication among a host's applications stands for all.
const AnyApplication = "*"

// Policy is a policy file: who may do what at the controller.
type Policy struct {
	// Grants are all rights, besides those of root and the controller's own user. An identity has the rights of
	// every grant that matches it. None by default.
	Grants []Grant
	// Tokens is a file with the bearer tokens of the identities token:NAME, for labs; default none.
	Tokens string
	// OIDC names the issuer of OpenID Connect tokens; by default none.
	OIDC OIDC
	// Limits apply to each identity separately.
	Limits Limits
}

// Grant gives a role to an identity.
type Grant struct {
	// Who is the name or group of a caller's identity, such as cn:h7.example.org. A * at its end stands for
	// anything without a slash. Required.
	Who string
	// Role grants rights to the identity: viewer, operator, application, host or admin. Required.
	Role Role
	// Applications are the applications of a grant of the role application. In a grant of the role host they are
	// the applications, besides "default", whose flows the host may register; "*" means all. None by default.
	Applications []string
	// Hosts are the hosts of a grant of the role host. By default it is the host whose name * matched, or the part
	// of Who after the last / or :.
	Hosts []string
}

// Limits apply to each identity separately.
type Limits struct {
	// Rate is the number of calls a second, > 0; default 2000. Each further message of a stream counts as a call.
	Rate float64
	// Burst is the number of calls that may come at once, above Rate, ≥ 1; default 4000.
	Burst int
	// Streams is the number of calls in progress, ≥ 1; default 2000.
	Streams int
}

// OIDC names the issuer of OpenID Connect tokens.
type OIDC struct {
	// Issuer is the issuer's https URL. Required.
	Issuer string
	// Audience is this controller's name in tokens. Required.
	Audience string
	// Claim is the claim that names the caller; default sub.
	Claim string
	// CA is a PEM file of the authorities that may sign the issuer's certificate; default the system's authorities.
	CA string
}

// policy is a Policy with the files that it names.
type policy struct {
	grants []Grant
	tokens []token
	oidc   *provider
	limits Limits
	lines  []string // the policy's rules in order, to compare policies
}

// closed is the policy without a file: the owner alone.
func closed() *policy { return &policy{limits: Limits{Rate: 2000, Burst: 4000, Streams: 2000}} }

// load reads the policy that a configuration names, nothing when it names none.
func load(cfg *config.Config, dirs confine.Dirs) (*policy, error) {
	name := cfg.Controller.Policy
	if name == "" {
		return closed(), nil
	}
	refuse := func(err error) error {
		return yamlnode.Fault{Field: "controller.policy", Text: fmt.Sprintf("is %q: %v", name, err)}
	}
	text, err := dirs.Secret(name)
	if err != nil {
		return nil, refuse(err)
	}
	d, err := yamlnode.Parse(name, text)
	if err != nil {
		return nil, refuse(err)
	}
	var file Policy
	d.Read(func(m *yamlnode.Map) { file = readPolicy(m) })
	if err := d.Err(); err != nil {
		return nil, refuse(err)
	}
	p := &policy{grants: file.Grants, limits: file.Limits}
	if file.Tokens != "" {
		if p.tokens, err = readTokens(dirs, file.Tokens); err != nil {
			return nil, refuse(fmt.Errorf("tokens: %w", err))
		}
	}
	if file.OIDC.Issuer != "" {
		if p.oidc, err = newProvider(file.OIDC, dirs); err != nil {
			return nil, refuse(fmt.Errorf("oidc: %w", err))
		}
	}
	p.describe(file.OIDC)
	return p, nil
}

// PolicyKeys returns all keys that a policy file may have.
func PolicyKeys() []yamlnode.Key {
	return yamlnode.Keys(func(d *yamlnode.Doc) { d.Read(func(m *yamlnode.Map) { readPolicy(m) }) })
}

func readPolicy(m *yamlnode.Map) Policy {
	p := Policy{Grants: yamlnode.List(m, "grants", readGrant), Tokens: m.Text("tokens", ""), Limits: closed().limits}
	m.Sub("oidc", func(m *yamlnode.Map) {
		m.Need("issuer", "audience")
		p.OIDC = OIDC{Issuer: m.Text("issuer", ""), Audience: m.Text("audience", ""), Claim: m.Text("claim", "sub"), CA: m.Text("ca", "")}
		if !strings.HasPrefix(p.OIDC.Issuer, "https://") && m.Has("issuer") {
			m.Fault("issuer", "is %q, want a URL with https", p.OIDC.Issuer)
		}
	})
	m.Sub("limits", func(m *yamlnode.Map) {
		p.Limits.Rate = m.Above("rate", p.Limits.Rate, 0, 1e9)
		p.Limits.Burst = m.Int("burst", p.Limits.Burst, 1, 1e9)
		p.Limits.Streams = m.Int("streams", p.Limits.Streams, 1, 1e9)
	})
	return p
}

func readGrant(m *yamlnode.Map) Grant {
	m.Need("who", "role")
	g := Grant{Who: yamlnode.Scalar(m, "who", "", whoWant, parseWho), Applications: m.Texts("applications"), Hosts: m.Texts("hosts")}
	var names []string
	for _, r := range Roles {
		names = append(names, string(r))
	}
	g.Role = Role(m.OneOf("role", string(Viewer), names...))
	switch {
	case g.Role == Application && len(g.Applications) == 0:
		m.Fault("applications", "is missing, want the applications whose weights it may set")
	case g.Role != Application && g.Role != Host && len(g.Applications) > 0:
		m.Fault("applications", "is for the roles application and host, the role is %s", g.Role)
	case g.Role != Host && len(g.Hosts) > 0:
		m.Fault("hosts", "is for the role host, the role is %s", g.Role)
	case g.Role == Host && len(g.Hosts) == 0 && (strings.HasPrefix(g.Who, "uid:") || strings.HasPrefix(g.Who, "gid:")):
		m.Fault("hosts", "is missing, want the hosts as which %s may attach", g.Who)
	case g.Role != Host && g.Role != Viewer && strings.HasSuffix(g.Who, "*") && !strings.Contains(strings.TrimSuffix(g.Who, "*"), "/"):
		m.Fault("who", "is %q for the role %s: want a path before the *", g.Who, g.Role)
	}
	return g
}

const whoWant = "spiffe://DOMAIN/PATH, cn:NAME, token:NAME, oidc:NAME, uid:NUMBER or gid:NUMBER, with at most one * at its end"

func parseWho(s string) (string, error) {
	kind, rest, ok := strings.Cut(s, ":")
	star := strings.IndexByte(s, '*')
	if !ok || rest == "" || !slices.Contains([]string{"spiffe", "cn", "token", "oidc", "uid", "gid"}, kind) ||
		star >= 0 && star != len(s)-1 || star >= 0 && (kind == "uid" || kind == "gid") {
		return "", yamlnode.ErrNotAllowed
	}
	return s, nil
}

// match returns the text that * matched.
func (g Grant) match(name string) (star string, ok bool) {
	prefix, wild := strings.CutSuffix(g.Who, "*")
	if !wild {
		return "", name != "" && name == g.Who
	}
	star, ok = strings.CutPrefix(name, prefix)
	return star, ok && star != "" && !strings.Contains(star, "/")
}

// rights collects the grants of an identity.
func (p *policy) rights(id Identity) rights {
	if id.Owner {
		return rights{roles: []Role{Admin}}
	}
	var r rights
	for _, g := range p.grants {
		star, ok := g.match(id.Name)
		if !ok {
			if star, ok = g.match(id.Group); !ok {
				continue
			}
		}
		r.roles = append(r.roles, g.Role)
		if g.Role != Host {
			r.applications = append(r.applications, g.Applications...)
			continue
		}
		r.paying = append(r.paying, g.Applications...)
		switch {
		case len(g.Hosts) > 0:
			r.hosts = append(r.hosts, g.Hosts...)
		case star != "":
			r.hosts = append(r.hosts, star)
		default:
			r.hosts = append(r.hosts, path.Base(strings.ReplaceAll(g.Who, ":", "/")))
		}
	}
	return r
}

// describe writes the policy as lines, one for each setting.
func (p *policy) describe(o OIDC) {
	for _, g := range p.grants {
		line := fmt.Sprintf("grant %s to %s", g.Role, g.Who)
		if len(g.Applications) > 0 {
			line += " for " + strings.Join(g.Applications, ", ")
		}
		if len(g.Hosts) > 0 {
			line += " as " + strings.Join(g.Hosts, ", ")
		}
		p.lines = append(p.lines, line)
	}
	for _, t := range p.tokens {
		p.lines = append(p.lines, fmt.Sprintf("token of %s, with fingerprint %x", t.name, t.sum[:4]))
	}
	if o.Issuer != "" {
		p.lines = append(p.lines, fmt.Sprintf("OIDC issuer %s, audience %s, claim %s", o.Issuer, o.Audience, o.Claim))
	}
	if p.limits != closed().limits {
		p.lines = append(p.lines, fmt.Sprintf("limits %g/s, burst %d, %d streams", p.limits.Rate, p.limits.Burst, p.limits.Streams))
	}
	slices.Sort(p.lines)
}

// Role is a set of methods.
type Role string

// The roles. None includes another, except that Admin includes all; an identity may have several.
const (
	Viewer      Role = "viewer"      // sees the fabric, changes nothing
	Operator    Role = "operator"    // runs the fabric: configurations, links, weights, budgets, priorities
	Application Role = "application" // sets weights and priorities of its own applications
	Host        Role = "host"        // attaches as itself
	Admin       Role = "admin"       // everything, the policy too
)

// Roles are all roles.
var Roles = []Role{Viewer, Operator, Application, Host, Admin}

// anyone is the role of those without one.
const anyone Role = ""

// rights are an identity's rights from all its grants.
type rights struct {
	roles        []Role
	applications []string // applications that the role application covers
	hosts        []string // hosts that the role host covers
	paying       []string // applications of the role host
}

// allow reports whether the rights include a method, and returns the limits of the call.
func (r rights) allow(method string) (c confined, ok bool) {
	list := methods[method].roles
	if slices.Contains(list, anyone) {
		return c, true
	}
	for _, role := range r.roles {
		switch {
		case role == Admin && list != nil, role != Application && role != Host && slices.Contains(list, role):
			return confined{}, true
		case role == Application && slices.Contains(list, role):
			c.applications, ok = r.applications, true
		case role == Host && slices.Contains(list, role):
			c.hosts, ok = r.hosts, true
			if !slices.Contains(r.paying, AnyApplication) {
				c.applications = append([]string{weights.DefaultApplication}, r.paying...)
			}
		}
	}
	return c, ok
}

// confined bounds a call to applications or hosts; nil is no bound.
type confined struct{ applications, hosts []string }

func (c confined) equal(d confined) bool {
	return slices.Equal(c.applications, d.applications) && slices.Equal(c.hosts, d.hosts)
}

// named is implemented by requests about one application.
type named interface{ GetApplication() string }

// checkScope refuses a message about an application or host that the caller has no rights to. The registry refuses
// changes of other callers' flows, because it knows their applications.
func (a *Authorizer) checkScope(c Caller, method string, m any) error {
	if r, ok := m.(*pb.HostReport); ok && c.hosts != nil && r.GetHost() != "" && !slices.Contains(c.hosts, r.GetHost()) {
		return a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("host: %v may attach as %s, not as %q", c.Identity, strings.Join(c.hosts, ", "), r.GetHost()))
	}
	if c.Applications == nil {
		return nil
	}
	var list []named
	switch r := m.(type) {
	case *pb.SetWeightsRequest:
		for _, one := range r.GetWeights() {
			list = append(list, one)
		}
	case named:
		list = append(list, r)
	}
	for _, r := range list {
		if name := r.GetApplication(); !slices.Contains(c.Applications, name) {
			return a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("application: %q is not one of %v: want %s", name, c.Identity, strings.Join(c.Applications, ", ")))
		}
	}
	return nil
}
