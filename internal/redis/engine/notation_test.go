package engine

import (
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// notation renders a reply as testdata/expire-rules.md does.
func notation(v resp.Value) string {
	list := func(open, shut string) string {
		parts := make([]string, len(v.List))
		for i, e := range v.List {
			parts[i] = notation(e)
		}
		return open + strings.Join(parts, ", ") + shut
	}
	switch v.Kind {
	case ':':
		return ":" + strconv.FormatInt(v.Int, 10)
	case '_':
		return "null"
	case '#':
		return "#" + strconv.FormatInt(v.Int, 10)
	case '$':
		if v.Null {
			return "(nil)"
		}
		return strconv.Quote(v.Text)
	case '=':
		return "=" + strconv.Quote(v.Text)
	case '*':
		if v.Null {
			return "(nil array)"
		}
		return list("[", "]")
	case '~':
		return list("~[", "]")
	case '%':
		return list("{", "}")
	case '>':
		return list(">[", "]")
	}
	return string(v.Kind) + v.Text // + - , (
}

// words splits a command line as redis-cli does: spaces, quotes, backslashes in double quotes.
func words(line string) []string {
	var out []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		var word string
		switch line[0] {
		case '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				panic("bad quotes: " + line)
			}
			word, _ = strconv.Unquote(quoted)
			line = line[len(quoted):]
		case '\'':
			word, line, _ = strings.Cut(line[1:], "'")
		default:
			word, line, _ = strings.Cut(line, " ")
		}
		out = append(out, word)
	}
	return out
}
