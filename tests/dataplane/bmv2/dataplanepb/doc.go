// Package dataplanepb is the Go code of frames.proto, by which frames go in and out of
// simple_switch_grpc without interfaces.
package dataplanepb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative frames.proto
