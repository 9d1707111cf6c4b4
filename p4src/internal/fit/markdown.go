package fit

import (
	"fmt"
	"strings"
)

// Markdown writes the report as tables for operators: the whole chip, its stages, its
// features, its containers.
func (r *Report) Markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Ingress takes %s, egress %s, of %d stages.\n\n", stages(r.Ingress), stages(r.Egress), r.Stages)

	w.WriteString("| resource | in use | of | busiest stage | stages 0, 1, 2, … |\n| --- | ---: | ---: | ---: | --- |\n")
	for _, kind := range resources {
		k := kind.Kind
		per, most := make([]string, len(r.Use)), 0
		for i, u := range r.Use {
			per[i] = fmt.Sprint(u[k])
			most = max(most, u[k])
		}
		fmt.Fprintf(&w, "| %s | %d | %d | %s of %d | %s |\n", kind.title, r.Sum(k), r.PerStage[k]*r.Stages,
			fmt.Sprint(most), r.PerStage[k], strings.Join(per, " "))
	}
	fmt.Fprintf(&w, "\n%d of the ALUs for registers, filters and selectors are stateful ALUs of registers.\n", r.Stateful)

	w.WriteString("\n| feature | stages | tables | SRAM | map RAM | TCAM | stateful ALUs | filters, selectors | counter ALUs | gateways |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, f := range r.Features {
		fmt.Fprintf(&w, "| %s | %s |", f.Name, list(f.Stages))
		for _, n := range []int{f.Use[Table], f.Use[SRAM], f.Use[MapRAM], f.Use[TCAM], f.Stateful, f.Use[MeterALU] - f.Stateful, f.Use[StatsALU], f.Use[Gateway]} {
			fmt.Fprintf(&w, " %s |", count(n))
		}
		w.WriteString("\n")
	}

	w.WriteString("\n| containers (PHV) | ingress | egress | free | of |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.PHV {
		fmt.Fprintf(&w, "| %s, %d bits | %d | %d | %d | %d |\n", c.Kind, c.Width, c.Ingress, c.Egress, c.Total-c.Ingress-c.Egress, c.Total)
	}
	fmt.Fprintf(&w, "\nThe parsers take %d (ingress) and %d (egress) of %d rows of their TCAMs.\n",
		r.Parser["ingress"], r.Parser["egress"], r.ParserRows)
	return w.String()
}

// stages says how many stages a half takes and which.
func stages(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", len(list), ranges(list))
}

func list(stages []int) string {
	if len(stages) == 0 {
		return "–"
	}
	return ranges(stages)
}

// ranges writes sorted numbers with runs shortened: 0–3, 5.
func ranges(sorted []int) string {
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(sorted[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
