package linear

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// call is what was asked of one key.
type call struct {
	do    deed
	value string // what Create, Set and Update write; no two calls write the same
}

type deed string

const (
	create deed = "Create"
	write  deed = "Set"
	update deed = "Update"
	read   deed = "Get"
	remove deed = "Delete"
)

// answer is what came of it.
type answer struct {
	kind kind
	was  string // the value that a read got, or that an update last made its own of
}

type kind uint8

const (
	done    kind = iota
	absent       // mayfly.ErrNotFound
	exists       // mayfly.ErrExists
	unknown      // mayfly.ErrUnknownOutcome: it was done, or will be, or not
	failed       // another error: it was not done, and will not be
)

// nothing is the state of a key without a value. No call writes it.
const nothing = ""

// register is a key of sliding: it has a value or none.
var register = porcupine.NondeterministicModel{
	Init: func() []any { return []any{nothing} },
	Step: func(state, input, output any) []any {
		return next(state.(string), input.(call), output.(answer))
	},
	DescribeOperation: func(input, output any) string { return describe(input.(call), output.(answer)) },
}

// next returns the states in which a call may leave a key, none if it cannot have been answered so.
func next(state string, c call, a answer) []any {
	switch a.kind {
	case failed:
		return []any{state}
	case unknown:
		after := []any{state}
		switch {
		case c.do == create && state == nothing, c.do == write, c.do == update && state != nothing && state == a.was:
			after = append(after, c.value)
		case c.do == remove:
			after = append(after, nothing)
		}
		return after
	}
	var fits bool
	after := state
	switch {
	case c.do == create && a.kind == exists:
		fits = state != nothing
	case c.do == create:
		fits, after = a.kind == done && state == nothing, c.value
	case c.do == write:
		fits, after = a.kind == done, c.value
	case c.do == remove:
		fits, after = a.kind == done, nothing
	case a.kind == absent: // of a read, or an update
		fits = state == nothing
	case c.do == update:
		fits, after = a.kind == done && state != nothing && state == a.was, c.value
	case c.do == read:
		fits = a.kind == done && state != nothing && state == a.was
	}
	if !fits {
		return nil
	}
	return []any{after}
}

func describe(c call, a answer) string {
	text := string(c.do)
	if c.value != "" {
		text += " " + c.value
	}
	if c.do == update && a.was != "" {
		text += " of " + a.was
	}
	switch {
	case a.kind == unknown:
		return text + ": unknown"
	case a.kind == failed:
		return text + ": failed"
	case a.kind == absent:
		return text + ": absent"
	case a.kind == exists:
		return text + ": exists"
	case c.do == read:
		return text + ": " + a.was
	}
	return text
}

// check judges the history of one key. What returned an error has no end.
func check(ops []porcupine.Operation, patience time.Duration) porcupine.CheckResult {
	ops = slices.Clone(ops)
	for i, op := range ops {
		if op.Output.(answer).kind == unknown {
			ops[i].Return = math.MaxInt64
		}
	}
	model := register.ToModel()
	return porcupine.CheckOperationsTimeout(model, ops, patience)
}

// The model itself: histories that are right, and some that are not.
func TestTheRegister(t *testing.T) {
	op := func(call, end int64, do deed, value string, k kind, was string) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: end, Input: input(do, value), Output: answer{k, was}}
	}
	for name, c := range map[string]struct {
		ops   []porcupine.Operation
		right bool
	}{
		"a life": {[]porcupine.Operation{op(1, 2, create, "a", done, ""), op(3, 4, update, "b", done, "a"), op(5, 6, read, "", done, "b"),
			op(7, 8, remove, "", done, ""), op(9, 10, read, "", absent, "")}, true},
		"an old value":                       {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 4, write, "b", done, ""), op(5, 6, read, "", done, "a")}, false},
		"an old value while it is written":   {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 6, write, "b", done, ""), op(4, 5, read, "", done, "a")}, true},
		"done though nobody knew":            {[]porcupine.Operation{op(1, 2, write, "a", unknown, ""), op(3, 4, read, "", done, "a")}, true},
		"done later":                         {[]porcupine.Operation{op(1, 2, write, "a", unknown, ""), op(3, 4, write, "b", done, ""), op(5, 6, read, "", done, "a")}, true},
		"failed, and done":                   {[]porcupine.Operation{op(1, 2, write, "a", failed, ""), op(3, 4, read, "", done, "a")}, false},
		"failed":                             {[]porcupine.Operation{op(1, 2, write, "a", failed, ""), op(3, 4, read, "", absent, "")}, true},
		"never done":                         {[]porcupine.Operation{op(1, 2, write, "a", unknown, ""), op(3, 4, read, "", absent, "")}, true},
		"done twice":                         {[]porcupine.Operation{op(1, 2, write, "a", unknown, ""), op(3, 4, read, "", done, "a"), op(5, 6, write, "b", done, ""), op(7, 8, read, "", done, "b"), op(9, 10, read, "", done, "a")}, false},
		"a late copy after nil":              {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 4, remove, "", done, ""), op(5, 6, read, "", absent, ""), op(7, 8, read, "", done, "a")}, false},
		"a lost update":                      {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 6, update, "b", done, "a"), op(4, 5, update, "c", done, "a")}, false},
		"two creations":                      {[]porcupine.Operation{op(1, 4, create, "a", done, ""), op(2, 3, create, "b", done, "")}, false},
		"it exists, and nobody made it":      {[]porcupine.Operation{op(1, 2, create, "a", exists, "")}, false},
		"an update that finds what was gone": {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 4, remove, "", done, ""), op(5, 6, update, "b", done, "a")}, false},
		"an unknown update of what was gone": {[]porcupine.Operation{op(1, 2, write, "a", done, ""), op(3, 4, update, "b", unknown, "a"), op(5, 6, write, "c", done, ""), op(7, 8, read, "", done, "c"), op(9, 10, read, "", done, "b")}, false},
		"a deletion that came later":         {[]porcupine.Operation{op(1, 2, remove, "", unknown, ""), op(3, 4, write, "a", done, ""), op(5, 6, read, "", done, "a"), op(7, 8, read, "", absent, "")}, true},
	} {
		want := porcupine.Illegal
		if c.right {
			want = porcupine.Ok
		}
		if got := check(c.ops, time.Minute); got != want {
			t.Errorf("%s: it is said to be %v: %v", name, got, fmt.Sprint(c.ops))
		}
	}
}

func input(do deed, value string) call { return call{do, value} }
