package rfc9111_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

func TestFlaw(t *testing.T) {
	many := "Vary: a" + strings.Join(strings.Split("bcdefghijklmnopqrst", ""), ", x-")
	for _, x := range []struct {
		lines  []string
		reason rfc9111.Reason
		want   string
	}{
		{[]string{"Cache-Control: max-age=abc"}, rfc9111.Expired, "Cache-Control has a malformed number"},
		{[]string{"Cache-Control: max-age"}, rfc9111.Expired, "Cache-Control has a malformed number"},
		{[]string{"Cache-Control: max-age =60"}, rfc9111.Expired, "Cache-Control has a malformed number"},
		{[]string{"Cache-Control: @\x00, a/b"}, rfc9111.NoFreshness, "Cache-Control has what is not a directive"},
		{[]string{"CDN-Cache-Control: max-age=60,,"}, rfc9111.NoFreshness, "CDN-Cache-Control is not a dictionary"},
		{[]string{"Expires: tomorrow"}, rfc9111.Expired, "Expires is not a date"},
		{[]string{"Expires: a", "Expires: b"}, rfc9111.Expired, "Expires has several lines"},
		{[]string{"Cache-Control: max-age=60", "Age: 99999999999999999999"}, rfc9111.Expired, "Age is beyond all measure"},
		{[]string{"Last-Modified: once"}, rfc9111.NoFreshness, "Last-Modified is not a date"},
		{[]string{`Etag: "a"`, `Etag: "b"`}, rfc9111.NoFreshness, "Etag has several lines"},
		{[]string{"Cache-Control: max-age=60", "Vary: a b"}, rfc9111.VaryAny, "Vary has what is not the name of a field"},
		{[]string{"Cache-Control: max-age=60", many}, rfc9111.VaryAny, "Vary has more fields than a cache tells apart"},

		{[]string{"Cache-Control: max-age=60", "Vary: *"}, rfc9111.VaryAny, ""},
		{[]string{"Cache-Control: max-age=60", many + ", *"}, rfc9111.VaryAny, ""},
		{[]string{"Cache-Control: max-age=0"}, rfc9111.Expired, ""},
		{[]string{"Expires: 0"}, rfc9111.Expired, ""},
		{[]string{"Cache-Control: max-age=60", "Age: 61"}, rfc9111.Expired, ""},
		{nil, rfc9111.NoFreshness, ""},
		{[]string{"Cache-Control: private", "Expires: x"}, rfc9111.Private, ""},
		{[]string{"Cache-Control: no-store, max-age=x"}, rfc9111.NoStore, ""},
	} {
		rules := rfc9111.Rules{Targeted: []string{"CDN-Cache-Control"}}
		exchange := rfc9111.Exchange{Request: get("/", "h"), Status: 200, Header: header(x.lines...), Sent: time.Unix(1700000000, 0), Received: time.Unix(1700000000, 0)}
		_, reason := rules.Judge(exchange)
		if got := rules.Flaw(reason, exchange); got != x.want || reason != x.reason {
			t.Errorf("%.80q: %s, %q, want %s, %q", x.lines, reason, got, x.reason, x.want)
		}
	}
}
