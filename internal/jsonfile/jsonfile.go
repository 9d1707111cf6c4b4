// Package jsonfile writes the reports of commands as JSON.
package jsonfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Encode writes v as indented JSON.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Write writes v to the file of a flag --json: to out for "-", nowhere for "".
func Write(file string, out io.Writer, v any) error {
	switch file {
	case "":
		return nil
	case "-":
		return Encode(out, v)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	if err := errors.Join(Encode(f, v), f.Close()); err != nil {
		return fmt.Errorf("--json %s: %w", file, err)
	}
	return nil
}
