package config

// defaults fills in what depends on other parts of the file.
func (c *Config) defaults() {
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.MAC == ([6]byte{}) && h.IPv4.Is4() {
			a := h.IPv4.As4()
			h.MAC = [6]byte{0x06, 0, a[0], a[1], a[2], a[3]}
		}
	}
}
