package script

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// message returns the error of a run as Redis replies with it: what went wrong, then in which script and where.
func (r *Run) message() string {
	if r.killed != "" {
		return r.place("ERR " + r.killed)
	}
	text := "ERR " + translate(r.err.Error())
	var api *lua.ApiError
	if errors.As(r.err, &api) {
		switch object := api.Object.(type) {
		case *lua.LTable:
			text = "ERR unknown error"
			if err, ok := object.RawGetString("err").(lua.LString); ok {
				text = string(err)
			}
			if line, ok := object.RawGetString("line").(lua.LNumber); ok {
				r.line = int(line)
			}
		case lua.LString:
			text = "ERR " + translate(string(object))
		case lua.LNumber:
			text = "ERR " + string(appendText(nil, object))
		default:
			text = "ERR " + object.String()
		}
	}
	if text == "ERR stack overflow" { // there was no stack left to say where
		text = fmt.Sprintf("ERR %s:%d: stack overflow", chunkName, max(r.line, 1))
	}
	return r.place(text)
}

// place adds the script and the line to an error.
func (r *Run) place(text string) string {
	return fmt.Sprintf("%s script: %s, on @user_script:%d.", text, r.sum, max(r.line, 1))
}

// Messages that differ between this Lua machine and Redis's, where they can be translated.
var (
	indexNil    = regexp.MustCompile(`attempt to index a non-table object\((\w+)\) with key '(.*)'`)
	badArg      = regexp.MustCompile(`bad argument #(\d+) to (\w+) \(`)
	overflow    = regexp.MustCompile(`(lua callstack|registry) overflow`)
	compareSame = regexp.MustCompile(`attempt to compare (\w+) with (\w+)`)
	callNil     = regexp.MustCompile(`attempt to call a non-function object`)
	addText     = regexp.MustCompile(`cannot perform \w+ operation between (\w+) and (\w+)`)
)

// longMessage is longer than any message of the machine that needs translation. A script's own message may have any length, and translating it would
// keep all clients waiting.
const longMessage = 1 << 12

func translate(text string) string {
	if len(text) > longMessage {
		return text
	}
	text = badArg.ReplaceAllString(text, "bad argument #$1 to '$2' (")
	text = strings.Replace(text, " to main chunk (", " to '?' (", 1) // it was called by pcall
	text = overflow.ReplaceAllString(text, "stack overflow")
	text = strings.Replace(text, "too many recursions in gettable", "loop in gettable", 1)
	text = indexNil.ReplaceAllString(text, "attempt to index field '$2' (a $1 value)")
	text = compareSame.ReplaceAllStringFunc(text, func(said string) string {
		if types := compareSame.FindStringSubmatch(said); types[1] == types[2] {
			return "attempt to compare two " + types[1] + " values"
		}
		return said
	})
	text = addText.ReplaceAllStringFunc(text, func(said string) string {
		types := addText.FindStringSubmatch(said)[1:]
		if types[0] == "number" {
			types = types[1:]
		}
		return "attempt to perform arithmetic on a " + types[0] + " value"
	})
	return callNil.ReplaceAllString(text, "attempt to call a nil value")
}

// compileError returns what Redis says about a script that is not valid Lua.
func compileError(err error) error {
	var syntax *parse.Error
	if errors.As(err, &syntax) {
		near := strings.TrimSpace(syntax.Token)
		if near == "" || syntax.Pos.Line == parse.EOF {
			near = "<eof>"
		}
		return fmt.Errorf("%s:%d: unexpected symbol near '%s'", chunkName, max(syntax.Pos.Line, 1), near)
	}
	return err
}
