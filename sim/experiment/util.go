package experiment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/sim/topo"
)

// hostSet reads a set of hosts: "all", or names, numbers and ranges separated by commas,
// such as "h3", "0-15, 20".
func hostSet(g *topo.Graph, text string) ([]int, error) {
	var hosts []int
	if text == "all" {
		for h := range g.Hosts {
			hosts = append(hosts, h)
		}
		return hosts, nil
	}
	seen := make([]bool, g.Hosts)
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		low, high, err := hostRange(g, item)
		if err != nil {
			return nil, err
		}
		for h := low; h <= high; h++ {
			if seen[h] {
				return nil, fmt.Errorf("names host %s twice", g.Names[h])
			}
			seen[h] = true
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

func hostRange(g *topo.Graph, item string) (low, high int, err error) {
	if n, ok := g.Find(item); ok && g.IsHost(n) {
		return n, n, nil
	}
	a, b, isRange := strings.Cut(item, "-")
	low, errA := strconv.Atoi(strings.TrimSpace(a))
	high = low
	var errB error
	if isRange {
		high, errB = strconv.Atoi(strings.TrimSpace(b))
	}
	if errA != nil || errB != nil || low < 0 || high < low || high >= g.Hosts {
		return 0, 0, fmt.Errorf("%q is no host: want \"all\" or names, numbers and ranges of hosts 0 to %d, such as \"0-3, 7\"", item, g.Hosts-1)
	}
	return low, high, nil
}
