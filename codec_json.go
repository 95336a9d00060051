//go:build !goexperiment.jsonv2

package mayfly

import (
	"bytes"
	"encoding/json"
)

// appendJSON appends v as JSON, without the line end that json.Encoder adds and without escaping <, > and &.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func parseJSON(src []byte, v any) error { return json.Unmarshal(src, v) }
