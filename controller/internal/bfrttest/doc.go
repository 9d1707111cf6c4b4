// Package bfrttest is a BF Runtime server for tests. It holds the fixed tables of a Tofino
// chip's driver, with their defaults, and checks every request against the schemas: the
// identifiers of tables, actions and fields, how keys and values are encoded, their widths,
// choices and ranges, what is mandatory and what can only be read, what a table can do, the
// target, the program and whether the client has subscribed. It also refuses what the
// driver documents that it would: see rules.go. A request that it refuses fails the test
// unless the test asks for it (Refused).
//
// It checks what is on the wire by code of its own. It is not the chip: nothing is
// switched, and counters are what a test sets.
package bfrttest
