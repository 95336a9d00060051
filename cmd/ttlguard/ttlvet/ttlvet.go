// Package ttlvet finds calls of go-redis that leave a key without a TTL, as an analyzer for go vet and its kin. The command ttlguard runs it.
//
// It reports
//
//   - an expiration of 0, or none, where one can be given: Set, SetNX, SetArgs and the others of SET's family, MSetEX, Restore; and GetEx
//     with 0, which takes the TTL away;
//   - an expiration below a millisecond, which is most often a number of seconds;
//   - calls that take no expiration and leave a new key without one: Incr, HSet, LPush, SAdd, ZAdd, XAdd, MSet, the *Store, and so on;
//
// on clients, pipelines, transactions and interfaces that have these methods, and in Do with a constant command. It stays silent if an Expire, a SET
// with an expiration or a script follows in the same function for a key that is, or may be, the same. Keys are compared by their source text,
// constants and variables that are assigned once by their values. A function of yours that calls Expire with a key made from its parameters
// counts as Expire, and one that passes a parameter on as the expiration counts as the call it makes, in other packages too. Deferred calls run
// at the end of their function, the last one first.
//
// # What it does not see
//
// It reads calls in source order, and follows neither values nor branches. So it is silent about
//
//   - an Expire that is not reached: in a branch that is not taken, after a return, or when the write before it has failed;
//   - an expiration that is computed, or comes from a field, a flag or a configuration, and is zero when the program runs;
//   - a key that it cannot tell from another: elements of slices and maps, results of calls, variables that are assigned again;
//   - an Expire with a time in the past, which deletes at once;
//   - what a script does: each script counts as giving its keys a TTL;
//   - Do with a command that is not a constant or with its arguments in a slice, Process with a command made earlier, and writes by methods
//     whose results are not go-redis types, such as those of wrappers;
//   - commands that carry a key's TTL over, Rename and Copy, and commands of modules, such as JSON.
//
// And it reports a key that gets its TTL elsewhere: from the caller after the call, from a function called through an interface or a function
// value, or in a goroutine that is written before the write. Excuse these.
//
// A key that may stay is excused with its reason, at the call, on a line of its own above it, for a whole function in its comment, or for a
// file above its package clause:
//
//	rdb.SAdd(ctx, "shops", name) //ttlguard:ok one of a few dozen, and deleted with the shop
//
// An excuse without a reason, and one that excuses nothing, is reported.
package ttlvet

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports calls of go-redis that leave a key without a TTL.
var Analyzer = &analysis.Analyzer{
	Name: "ttlguard",
	Doc: `find calls of go-redis that leave a key without a TTL

It reports an expiration of 0, as in Set(ctx, key, value, 0), and calls that create a key without one, such as Incr and HSet, unless an
Expire of that key follows in the same function. To excuse a key that may stay, say why:

	rdb.SAdd(ctx, "shops", name) //ttlguard:ok one of a few dozen, and deleted with the shop`,
	URL:       "https://pkg.go.dev/github.com/mayflycache/mayfly/cmd/ttlguard/ttlvet",
	Run:       run,
	FactTypes: []analysis.Fact{new(helps)},
}

var (
	sure    bool
	inTests bool
)

func init() {
	Analyzer.Flags.BoolVar(&sure, "sure", false, "report only calls that leave a key without a TTL in any case, such as Set with 0, and not those that keep one, such as Incr")
	Analyzer.Flags.BoolVar(&inTests, "intests", false, "also report calls in _test.go files")
}

func run(pass *analysis.Pass) (any, error) {
	p := &program{pass: pass}
	units := p.units()
	for changed, round := true, 0; changed && round < 10; round++ { // a helper may call a helper
		changed = false
		for _, u := range units {
			if p.learn(u) {
				changed = true
			}
		}
	}
	excuses := make(map[*ast.File]*excuses)
	for _, f := range pass.Files {
		if inTests || !strings.HasSuffix(pass.Fset.File(f.Pos()).Name(), "_test.go") {
			excuses[f] = excusesOf(pass, f)
		}
	}
	for _, u := range units {
		if excuses[u.file] == nil {
			continue
		}
		for _, w := range p.unended(u) {
			if w.does == depends && sure || excuses[u.file].excused(w.call) {
				continue
			}
			pass.Report(analysis.Diagnostic{Pos: w.at(), End: w.call.End(), Category: w.does.String(), Message: w.message()})
		}
	}
	for _, f := range pass.Files {
		if excuses[f] != nil {
			excuses[f].complain(!sure)
		}
	}
	return nil, nil
}

// String is the category of a finding.
func (v verdict) String() string {
	if v == depends {
		return "depends"
	}
	return "leaves-none"
}
