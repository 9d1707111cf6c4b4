// Command gen writes Headgate's own P4 program as Go.
package main

//go:generate go run .

import (
	"log"
	"os"

	"github.com/headgate/headgate/p4src"
	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
)

func main() {
	prog, err := engine.Load(p4src.JSON())
	if err != nil {
		log.Fatal(err)
	}
	source, err := prog.WriteNative("headgate")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../headgate/headgate_native.go", source, 0o644); err != nil {
		log.Fatal(err)
	}
}
