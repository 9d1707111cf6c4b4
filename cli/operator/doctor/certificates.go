package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/units"
)

// soon is how long before its end a certificate should be replaced.
const soon = 30 * 24 * time.Hour

// files are the certificates of one section, and how they are used.
type files struct {
	field, ca, cert, key string
	signed               bool   // ca must have signed cert
	host                 string // the name that others dial; "" for none
}

// Certificates checks the certificates that a configuration names: whether they can be read, fit their keys,
// are valid for a while, are signed and named as they must be, and whether others may read the keys.
func Certificates(c *config.Config, dirs confine.Dirs, now time.Time) []Finding {
	host, _, _ := net.SplitHostPort(c.Controller.Listen)
	t, u := c.Controller.TLS, c.Controller.Cluster.TLS
	sets := []files{
		{field: "controller.tls", ca: t.ClientCA, cert: t.Cert, key: t.Key, host: host},
		{field: "controller.cluster.tls", ca: u.CA, cert: u.Cert, key: u.Key, signed: true},
	}
	for i := range c.Switches {
		s := &c.Switches[i]
		sets = append(sets, files{field: c.Path(s) + ".tls", ca: s.TLS.CA, cert: s.TLS.Cert, key: s.TLS.Key})
	}
	var list []Finding
	for _, s := range sets {
		if s.ca == "" && s.cert == "" {
			continue
		}
		faults := s.check(dirs, now)
		if len(faults) == 0 {
			faults = []Finding{{Verdict: OK, Text: "can be read, and are valid for 30 days and more"}}
		}
		for _, f := range faults {
			f.Area, f.Subject = "certificates", s.field
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		list = []Finding{{Area: "certificates", Subject: "configuration", Verdict: Info, Text: NotChecked + "it names none"}}
	}
	return list
}

func (s files) check(dirs confine.Dirs, now time.Time) (list []Finding) {
	add := func(v Verdict, remedy, format string, args ...any) {
		list = append(list, Finding{Verdict: v, Text: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	const most = 1 << 20
	roots := x509.NewCertPool()
	if s.ca != "" {
		text, _, err := dirs.Read(s.ca, most)
		if err != nil {
			add(Fail, "correct the name, or the file's permissions", "ca: %v", err)
		}
		for _, c := range parse(text) {
			roots.AddCert(c)
			if v, what := valid(c, now); v != OK {
				add(v, "replace it", "ca %s: %s", s.ca, what)
			}
		}
		if err == nil && len(parse(text)) == 0 {
			add(Fail, "want certificates in PEM", "ca: %s holds no certificate", s.ca)
		}
	}
	if s.cert == "" {
		return list
	}
	text, _, err := dirs.Read(s.cert, most)
	key, info, kerr := dirs.Read(s.key, most)
	if err != nil || kerr != nil {
		for _, err := range []error{err, kerr} {
			if err != nil {
				add(Fail, "correct the name, or the file's permissions", "cert and key: %v", err)
			}
		}
		return list
	}
	if _, err := tls.X509KeyPair(text, key); err != nil {
		add(Fail, "name a certificate and its own key", "cert %s and key %s: %v", s.cert, s.key, err)
		return list
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		v := Warn
		if mode&0o007 != 0 {
			v = Fail
		}
		add(v, "chmod 600", "key %s has mode %#o: users other than its owner may read it", s.key, mode)
	}
	chain := parse(text)
	if v, what := valid(chain[0], now); v != OK {
		add(v, "replace it", "cert %s: %s", s.cert, what)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if !s.signed {
			break
		}
		at := chain[0].NotBefore.Add(chain[0].NotAfter.Sub(chain[0].NotBefore) / 2) // the check above covers whether it is valid now
		if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			add(Fail, "have it signed by ca, for servers and clients", "cert %s: %v", s.cert, err)
			break
		}
	}
	if ip := net.ParseIP(s.host); s.host != "" && (ip == nil || !ip.IsUnspecified()) {
		if err := chain[0].VerifyHostname(s.host); err != nil {
			add(Warn, "have it issued for the names by which clients call", "cert %s: %v", s.cert, err)
		}
	}
	return list
}

func parse(text []byte) (list []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
}

// valid says whether a certificate is valid now, and for a while.
func valid(c *x509.Certificate, now time.Time) (Verdict, string) {
	switch left := c.NotAfter.Sub(now); {
	case left < 0:
		return Fail, "expired on " + c.NotAfter.Format(time.DateOnly)
	case now.Before(c.NotBefore):
		return Fail, "is not valid before " + c.NotBefore.Format(time.RFC3339)
	case left < soon:
		return Warn, fmt.Sprintf("expires in %s", units.Count(int(left.Hours()/24), "day"))
	}
	return OK, ""
}
