//go:build goexperiment.jsonv2

package mayfly

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
)

// By encoding/json/v2, with what encoding/json means by its tags and writes for its values: processes that were built with it and without
// read the same bytes.
var asV1 = jsonv2.JoinOptions(json.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// appendJSON appends v as JSON, without escaping <, > and &.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	if err := jsonv2.MarshalWrite(buf, v, asV1); err != nil {
		return dst, err
	}
	return buf.Bytes(), nil
}

func parseJSON(src []byte, v any) error { return jsonv2.Unmarshal(src, v, asV1) }
