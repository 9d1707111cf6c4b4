package doctor

import (
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
)

// Lossless reports settings of each switch's lossless classes that do not have the effect that they
// seem to have.
func Lossless(c *config.Config) (list []Finding) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for _, text := range buffer.Warnings(c, s) {
			list = append(list, Finding{Area: "lossless", Subject: s.Name, Verdict: Warn, Text: text, Remedy: "correct the field; `headgate explain KEY` says what may stand there"})
		}
	}
	return list
}
