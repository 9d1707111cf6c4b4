// Command gen writes a P4 program as Go: Headgate's own, or NAME with the file of its BMv2 JSON. A
// binary that imports softswitch/native/NAME runs the program's Go in place of the interpreter.
package main

//go:generate go run .
//go:generate go run . l3 ../../engine/testdata/l3.json

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/p4src"
	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func write(args []string) (err error) {
	name, doc := "headgate", p4src.JSON()
	switch {
	case len(args) == 2:
		name = args[0]
		if doc, err = os.ReadFile(args[1]); err != nil {
			return err
		}
	case len(args) > 0:
		return errors.New("usage: go run . [NAME PROGRAM.json]")
	}
	prog, err := engine.Load(doc)
	if err != nil {
		return err
	}
	source, err := prog.WriteNative(name)
	if err != nil {
		return err
	}
	dir := filepath.Join("..", name)
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+"_native.go"), source, 0o644))
}
