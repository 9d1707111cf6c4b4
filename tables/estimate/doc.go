// Package estimate makes the table entries of DSH's Algorithm 3 (DSH §IV-C) as a Tofino runs it on its
// egress queues (p4src/tna/gradient.p4). The tests have a model of the chip's arithmetic, with its bounds.
//
// A chip's registers add but do not scale, so packets of a queue take turns: one measures
// and adds to the sums S = 4·g_avg and V = 16·v_avg, the next takes a quarter off them. It is
// Algorithm 3 on every other packet. The math unit's quarter is up to 1/16 of itself off.
// headroom.Estimator has neither error.
//
// TestMeasuredErrors measures both errors for random walks of a queue at 100 Gb/s. Nothing here was tried
// on a chip or on the traffic of a real switch.
//
//   - The arithmetic, beside Algorithm 3 on the same every other packet: ĝ is within 10 % of
//     the line rate, 0.7 % on average, φ̂ within 8 % of Φ. The model's error bound holds for every
//     trace, loosely: 1.1 times the largest g.
//   - The packets left out, beside Algorithm 3 on every packet as DSH prints it: ĝ differs by
//     23 % of the line rate on average and by up to 290 %, φ̂ by 14 % of Φ on average and by
//     up to all of it. It is too small by more than Φ/8 in a quarter of the cases.
//
// So φ̂ here shows how fast queues grow. It is not the overestimate that DSH needs, so no headroom may be
// reduced by it.
package estimate
