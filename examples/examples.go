// Package examples embeds the fabric files that the documentation uses.
package examples

import _ "embed" // for the files

// LeafSpine is leaf-spine.yaml, the fabric of `headgate run` unless -f names another.
//
//go:embed leaf-spine.yaml
var LeafSpine []byte
