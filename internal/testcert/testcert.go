// Package testcert makes certificates for tests.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates, whose files are in Dir.
type Authority struct {
	Dir  string
	IPs  []net.IP // addresses in the certificates, beside 127.0.0.1
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// valid is how long certificates have been valid and will be: a test may set a clock by hours.
const valid = 24 * time.Hour

// New makes an authority with its certificate in ca.pem.
func New(t testing.TB, dir string) *Authority {
	t.Helper()
	a := &Authority{Dir: dir, key: newKey(t)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-valid), NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := a.sign(t, a.cert, &a.key.PublicKey)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.File("ca.pem"), "CERTIFICATE", der)
	return a
}

// File is the name of a file.
func (a *Authority) File(name string) string { return filepath.Join(a.Dir, name) }

// Pool returns a pool that trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Pair returns a certificate that was issued.
func (a *Authority) Pair(t testing.TB, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.File(name+".pem"), a.File(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Issue writes name.pem and name.key: a certificate for 127.0.0.1 and localhost with a common name and URIs.
func (a *Authority) Issue(t testing.TB, name, commonName string, uris ...string) {
	t.Helper()
	a.IssueUntil(t, time.Now().Add(valid), name, commonName, uris...)
}

// IssueUntil is Issue for a certificate that expires then.
func (a *Authority) IssueUntil(t testing.TB, until time.Time, name, commonName string, uris ...string) {
	t.Helper()
	key := newKey(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-valid), NotAfter: until, IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1)}, a.IPs...), DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, u := range uris {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, parsed)
	}
	write(t, a.File(name+".pem"), "CERTIFICATE", a.sign(t, c, &key.PublicKey))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.File(name+".key"), "PRIVATE KEY", der)
}

func (a *Authority) sign(t testing.TB, c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
