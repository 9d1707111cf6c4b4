// Package dataplanepb is the Go code of frames.proto, the service by which frames enter and leave
// simple_switch_grpc without interfaces.
package dataplanepb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative frames.proto
