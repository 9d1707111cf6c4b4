package main

import "strings"

// initialism returns how a word of a P4 name is written in Go, "" when it is an ordinary
// word. It is a switch, not a map, so that nothing is global.
func initialism(word string) string {
	switch word {
	case "cpu", "ecn", "ecmp", "dscp", "ip", "lpm", "mac", "pfc", "red", "tcp", "ttl", "udp", "qd", "ect", "ce", "bth", "id", "qp", "arp", "icmp", "nd":
		return strings.ToUpper(word)
	case "ipv4":
		return "IPv4"
	case "ipv6":
		return "IPv6"
	case "icmpv6":
		return "ICMPv6"
	case "maxqd":
		return "MaxQD"
	case "roce":
		return "RoCE"
	}
	return ""
}

// goName turns snake_case of either case into an exported Go name.
func goName(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		for _, word := range strings.Split(strings.ToLower(part), "_") {
			if s := initialism(word); s != "" {
				b.WriteString(s)
			} else if word != "" {
				b.WriteString(strings.ToUpper(word[:1]) + word[1:])
			}
		}
	}
	return b.String()
}
