package gnmi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// encodings are those that are served.
var encodings = []gpb.Encoding{gpb.Encoding_JSON, gpb.Encoding_JSON_IETF, gpb.Encoding_PROTO}

func checkEncoding(e gpb.Encoding) error {
	if slices.Contains(encodings, e) {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "encoding: %v is not served: want JSON, JSON_IETF or PROTO", e)
}

// typed returns a value in an encoding.
func typed(is any, e gpb.Encoding) *gpb.TypedValue {
	if e != gpb.Encoding_PROTO {
		return jsonTyped(jsonOf(is, e), e)
	}
	switch v := is.(type) {
	case bool:
		return &gpb.TypedValue{Value: &gpb.TypedValue_BoolVal{BoolVal: v}}
	case uint32:
		return &gpb.TypedValue{Value: &gpb.TypedValue_UintVal{UintVal: uint64(v)}}
	case uint64:
		return &gpb.TypedValue{Value: &gpb.TypedValue_UintVal{UintVal: v}}
	}
	return &gpb.TypedValue{Value: &gpb.TypedValue_StringVal{StringVal: fmt.Sprint(is)}}
}

func jsonTyped(v any, e gpb.Encoding) *gpb.TypedValue {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, lists, texts, numbers and truth values
	}
	if e == gpb.Encoding_JSON {
		return &gpb.TypedValue{Value: &gpb.TypedValue_JsonVal{JsonVal: text}}
	}
	return &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: text}}
}

// jsonOf returns a leaf's value as json.Marshal takes it. RFC 7951, 6.1: 64 bits are a text.
func jsonOf(is any, e gpb.Encoding) any {
	if n, ok := is.(uint64); ok && e == gpb.Encoding_JSON_IETF {
		return strconv.FormatUint(n, 10)
	}
	return is
}

// keyValue converts a list key to the type of the leaf that repeats it.
func keyValue(kind, text string) any {
	if kind == "class" {
		n, err := strconv.ParseUint(text, 10, 8)
		if err == nil {
			return uint32(n)
		}
	}
	return text
}

// tree is what values have in common below a path, as an object of JSON.
type tree struct {
	object map[string]any
	lists  map[string]*tree // the entries, by list and key
}

func newTree() *tree { return &tree{map[string]any{}, map[string]*tree{}} }

// add puts a value into the tree, whose root is at so many of its path's elements.
func (t *tree) add(v Value, depth int, e gpb.Encoding) {
	module, keys := "", 0
	for i, el := range v.Leaf.elems {
		if el.key != "" {
			keys++
		}
		if i < depth {
			continue
		}
		word := el.name
		if e == gpb.Encoding_JSON_IETF && el.module != module { // RFC 7951, 4
			word = el.module + ":" + word
		}
		module = el.module
		switch {
		case i == len(v.Leaf.elems)-1:
			t.object[word] = jsonOf(v.Is, e)
		case el.key != "":
			t = t.entry(word, el.key, v.Of[keys-1], keyValue(v.Leaf.keys[keys-1], v.Of[keys-1]))
		default:
			next := t.lists[word]
			if next == nil {
				next = newTree()
				t.lists[word], t.object[word] = next, next.object
			}
			t = next
		}
	}
}

// entry returns the entry of a list, which it makes where there is none.
func (t *tree) entry(list, key, text string, value any) *tree {
	id := list + "\x00" + text
	next := t.lists[id]
	if next == nil {
		next = newTree()
		next.object[key] = value
		t.lists[id] = next
		entries, _ := t.object[list].([]any)
		t.object[list] = append(entries, next.object)
	}
	return next
}
