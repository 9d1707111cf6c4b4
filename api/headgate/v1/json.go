package headgatev1

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON returns a message as JSON with the API's field names. It includes fields with zero values.
func JSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer // without blanks, which protojson varies on purpose
	err = json.Compact(&out, text)
	return out.Bytes(), err
}
