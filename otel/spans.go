package mayflyotel

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mayflycache/mayfly"
)

// eventName is what an event of a span is called: "mayfly.load".
func eventName(k mayfly.Kind) string { return "mayfly." + k.String() }

// describe returns the attributes of an event of a span.
func (m *Observer) describe(e mayfly.Event) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 7)
	if e.Namespace != "" { // a local tier has none
		all = append(all, attribute.String("mayfly.namespace", e.Namespace))
	}
	all = append(all, attribute.String("mayfly.outcome", outcome(e.Kind, e.Outcome)))
	if m.opt.Keys && e.Key != "" {
		all = append(all, attribute.String("mayfly.key", e.Key))
	}
	if e.Took != 0 {
		all = append(all, attribute.Float64("mayfly.duration", e.Took.Seconds()))
	}
	if e.N != 0 {
		all = append(all, attribute.Int("mayfly.n", e.N))
	}
	if e.Err != nil {
		text := e.Err.Error()
		if !m.opt.Keys && e.Key != "" {
			text = strings.ReplaceAll(text, e.Key, "(key)")
		}
		all = append(all, attribute.String("error.type", kindOf(e)), attribute.String("error.message", text))
	}
	return all
}
