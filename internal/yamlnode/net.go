package yamlnode

import (
	"errors"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// word is what Word takes.
var word = regexp.MustCompile(`^[0-9A-Za-z][-_.0-9A-Za-z]{0,62}$`)

// Word returns a name that may stand in paths, metrics and log lines.
func (m *Map) Word(key, def string) string {
	const want = "a word of 1 to 63 letters, digits, '-', '_' or '.', starting with a letter or digit"
	schema := anyText
	schema.Pattern = word.String()
	return scalar(m, key, def, kind[string]{want, schema, func(s string) (string, error) { return check(s, IsWord(s)) }})
}

// IsWord reports whether Word takes a text.
func IsWord(s string) bool { return word.MatchString(s) }

// HostPort returns host:port, or one of the words that are allowed in its place.
func (m *Map) HostPort(key, def string, words ...string) string {
	want := `host:port with a port from 0 to 65535, such as "127.0.0.1:9559"`
	for _, w := range words {
		want += ", or " + w
	}
	return Scalar(m, key, def, want, func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		return s, hostPort(s)
	})
}

func hostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("no host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("bad port " + strconv.Quote(clip(port)))
	}
	if strings.ContainsAny(host, " \t/\\@?#\x00") {
		return errors.New("bad host " + strconv.Quote(clip(host)))
	}
	return nil
}

// IPv4 returns a unicast IPv4 address.
func (m *Map) IPv4(key string) netip.Addr {
	return Scalar(m, key, netip.Addr{}, `a unicast IPv4 address such as "10.0.1.1"`, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		return check(a, err == nil && a.Is4() && !a.IsMulticast() && !a.IsLoopback() && a.As4()[0] < 240 && a.As4()[0] > 0)
	})
}

// IPv6 returns a unicast IPv6 address that is good beyond a link.
func (m *Map) IPv6(key string) netip.Addr {
	return Scalar(m, key, netip.Addr{}, `a unicast IPv6 address, not of a link alone, such as "2001:db8:1::1"`, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		return check(a, err == nil && a.Is6() && a.Zone() == "" && !a.Is4In6() && !a.IsMulticast() && !a.IsLoopback() && !a.IsUnspecified() && !a.IsLinkLocalUnicast())
	})
}

// MAC returns a unicast MAC address.
func (m *Map) MAC(key string) [6]byte {
	var none [6]byte
	return Scalar(m, key, none, `a unicast MAC address such as "06:00:0a:00:01:01"`, func(s string) ([6]byte, error) {
		hw, err := net.ParseMAC(s)
		if err != nil || len(hw) != 6 || hw[0]&1 != 0 || [6]byte(hw) == none {
			return none, ErrNotAllowed
		}
		return [6]byte(hw), nil
	})
}
