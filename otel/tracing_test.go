package mayflyotel_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/redistest"
)

// go-redis's instrumentation puts commands with their arguments into spans, among them the pages that are stored, in hexadecimal digits. WithDBStatement(false)
// keeps them out, as docs/metrics.md says.
func TestBodiesInSpans(t *testing.T) {
	const secret = "balance: 1,234.56"
	for _, c := range []struct {
		name  string
		opts  []redisotel.TracingOption
		leaks bool
	}{
		{"as it comes", nil, true},
		{"WithDBStatement(false)", []redisotel.TracingOption{redisotel.WithDBStatement(false)}, false},
	} {
		o := redistest.Start(t).Options()
		o.ContextTimeoutEnabled = true // or the hooks do not see it
		rdb := redis.NewClient(o)
		defer rdb.Close()
		exporter := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		if err := redisotel.InstrumentTracing(rdb, append(c.opts, redisotel.WithTracerProvider(provider))...); err != nil {
			t.Fatal(err)
		}
		pages := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: "page:", TTL: time.Minute}, httpcache.Options{}))
		defer pages.Close(t.Context())
		handler := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			fmt.Fprintln(w, secret)
		}))
		ctx, span := provider.Tracer("test").Start(t.Context(), "request")
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/account", nil))
		span.End()
		spans, leaks := exporter.GetSpans(), false
		for _, s := range spans {
			for _, a := range s.Attributes {
				text := a.Value.String()
				leaks = leaks || strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret)))
			}
		}
		if len(spans) < 3 || leaks != c.leaks {
			t.Errorf("%s: %d spans, the page is in them: %v", c.name, len(spans), leaks)
		}
	}
}
