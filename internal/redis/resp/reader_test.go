package resp_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

func TestEveryFormOfReply(t *testing.T) {
	for in, want := range map[string]resp.Value{
		"+OK\r\n":                            {Kind: '+', Text: "OK"},
		"-ERR no\r\n":                        {Kind: '-', Text: "ERR no"},
		":-5\r\n":                            {Kind: ':', Int: -5},
		"$3\r\na\r\n\r\n":                    {Kind: '$', Text: "a\r\n"},
		"$-1\r\n":                            {Kind: '$', Null: true},
		"*-1\r\n":                            {Kind: '*', Null: true},
		"*0\r\n":                             {Kind: '*', List: []resp.Value{}},
		"_\r\n":                              {Kind: '_', Null: true},
		"#t\r\n":                             {Kind: '#', Int: 1},
		"#f\r\n":                             {Kind: '#'},
		",1.5\r\n":                           {Kind: ',', Text: "1.5"},
		"(123\r\n":                           {Kind: '(', Text: "123"},
		"=6\r\ntxt:hi\r\n":                   {Kind: '=', Text: "txt:hi"},
		"!3\r\nERR\r\n":                      {Kind: '!', Text: "ERR"},
		"%1\r\n+a\r\n:1\r\n":                 {Kind: '%', List: []resp.Value{{Kind: '+', Text: "a"}, {Kind: ':', Int: 1}}},
		"~1\r\n:1\r\n":                       {Kind: '~', List: []resp.Value{{Kind: ':', Int: 1}}},
		">1\r\n*1\r\n:1\r\n":                 {Kind: '>', List: []resp.Value{{Kind: '*', List: []resp.Value{{Kind: ':', Int: 1}}}}},
		"|1\r\n+ttl\r\n:5\r\n+OK\r\n":        {Kind: '+', Text: "OK"},
		"*2\r\n|1\r\n+a\r\n_\r\n:1\r\n_\r\n": {Kind: '*', List: []resp.Value{{Kind: ':', Int: 1}, {Kind: '_', Null: true}}},
	} {
		r := resp.NewReader(strings.NewReader(in))
		got, err := r.Read()
		if d := diff.Of(want, got); d != "" || err != nil {
			t.Errorf("%q: %v, %s", in, err, d)
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%q: then %v, want the end", in, err)
		}
		for cut := 1; cut < len(in); cut++ {
			if _, err := resp.NewReader(strings.NewReader(in[:cut])).Read(); err != io.ErrUnexpectedEOF {
				t.Errorf("%q: %v, want an unexpected end", in[:cut], err)
			}
		}
	}
}

func TestMalformedRepliesAreRefused(t *testing.T) {
	for _, in := range []string{"\r\n", "x\r\n", "+OK\n", ":x\r\n", "$x\r\n", "#x\r\n", "$1\r\nabc", "$99999999999\r\n", "%4611686018427387905\r\n",
		strings.Repeat("*1\r\n", 1000), strings.Repeat("|0\r\n", 1000)} {
		if v, err := resp.NewReader(strings.NewReader(in)).Read(); err == nil || err == io.EOF {
			t.Errorf("%.40q: %v, %v", in, v, err)
		}
	}
}

// encode writes v in its original form.
func encode(b []byte, v resp.Value) []byte {
	switch v.Kind {
	case '+', '-', '(', ',':
		return fmt.Appendf(b, "%c%s\r\n", v.Kind, v.Text)
	case '_':
		return append(b, "_\r\n"...)
	case '#':
		return fmt.Appendf(b, "#%c\r\n", "ft"[v.Int])
	case ':':
		return fmt.Appendf(b, ":%d\r\n", v.Int)
	}
	if v.Null {
		return fmt.Appendf(b, "%c-1\r\n", v.Kind)
	}
	switch v.Kind {
	case '$', '=', '!':
		return fmt.Appendf(b, "%c%d\r\n%s\r\n", v.Kind, len(v.Text), v.Text)
	}
	n := len(v.List)
	if v.Kind == '%' {
		n /= 2
	}
	b = fmt.Appendf(b, "%c%d\r\n", v.Kind, n)
	for _, e := range v.List {
		b = encode(b, e)
	}
	return b
}
