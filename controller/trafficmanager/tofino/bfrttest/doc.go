// Package bfrttest is a BF Runtime server for tests. It holds the fixed tables of a Tofino
// chip's driver, with their defaults, and checks every request against the schemas: the
// identifiers of tables, actions and fields, how keys and values are encoded, their widths,
// choices and ranges, what is mandatory and what can only be read, what a table can do, the
// target, the program and whether the client has subscribed. It also refuses what the
// driver documents that it would: see rules.go. A request that it refuses fails the test
// unless the test asks for it (Refused).
//
// What is on the wire it reads with package bfrt, and then takes nothing that bfrt would not
// have written for it byte by byte; server_test.go has the bytes. It is not the chip: nothing is
// switched, and counters are what a test sets.
package bfrttest
