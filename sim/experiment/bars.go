package experiment

import (
	"fmt"

	"github.com/headgate/headgate/plotting"
)

// Bars are numbers side by side, each over some seeds.
type Bars struct {
	X, Y       string
	Categories []string
	Sets       []BarSet
}

// BarSet is one of Bars' sets, with a bar for each category; NaN for none.
type BarSet struct {
	Name            string
	Mean, Low, High []float64
}

// CheckPicture says of a file's name that no picture can have what is allowed.
func CheckPicture(file string) error { return plotting.Check(file) }

// DrawBars draws bars below each other, under a title, into a file; its name's ending chooses the format.
func DrawBars(file, title string, list ...Bars) error {
	panels := make([]plotting.Panel, len(list))
	for i, b := range list {
		panels[i] = plotting.Panel{X: b.X, Y: b.Y, Categories: b.Categories}
		for _, s := range b.Sets {
			if n := len(b.Categories); len(s.Mean) != n || len(s.Low) != n || len(s.High) != n {
				return fmt.Errorf("bars %s: %d, %d and %d numbers of %d", s.Name, len(s.Mean), len(s.Low), len(s.High), n)
			}
			panels[i].Lines = append(panels[i].Lines, plotting.Line{Name: s.Name, X: make([]float64, len(s.Mean)), Y: s.Mean, Low: s.Low, High: s.High})
		}
	}
	panels[0].Title = title
	return plotting.Save(file, panels...)
}
