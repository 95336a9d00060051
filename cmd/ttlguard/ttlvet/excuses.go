package ttlvet

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// excuses are the comments of a file that excuse calls.
type excuses struct {
	pass   *analysis.Pass
	file   *ast.File
	all    []*excuse
	at     map[int]*excuse           // by the line they excuse
	whole  map[*ast.FuncDecl]*excuse // functions
	above  *excuse                   // for the whole file: above the package clause
	faults []fault
}

type excuse struct {
	comment *ast.Comment
	used    bool
}

type fault struct {
	at   *ast.Comment
	says string
}

// directive matches comments that begin like an excuse, valid or not.
var directive = regexp.MustCompile(`^/[/*]\s*ttlguard:(\w+)(.*)`)

const excuseForm = "//ttlguard:ok reason"

// excusesOf reads the comments of a file.
func excusesOf(pass *analysis.Pass, f *ast.File) *excuses {
	x := &excuses{pass: pass, file: f, at: map[int]*excuse{}, whole: map[*ast.FuncDecl]*excuse{}}
	var code map[int]bool // lines with anything but comments
	doc := map[*ast.CommentGroup]*ast.FuncDecl{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Doc != nil {
			doc[fn.Doc] = fn
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			e := x.read(c)
			if e == nil {
				continue
			}
			x.all = append(x.all, e)
			if c.Pos() < f.Package {
				x.above = e
				continue
			}
			if fn := doc[group]; fn != nil {
				x.whole[fn] = e
				continue
			}
			if code == nil {
				code = x.code()
			}
			line := x.line(c.Pos())
			if !code[line] { // the comment has a line of its own: it excuses the next one
				line = x.line(group.End()) + 1
			}
			x.at[line] = e
		}
	}
	return x
}

// read parses a comment, and returns nil if it is not a valid excuse.
func (x *excuses) read(c *ast.Comment) *excuse {
	m := directive.FindStringSubmatch(c.Text)
	if m == nil {
		return nil
	}
	reason, _, _ := strings.Cut(m[2], "//")
	switch {
	case m[1] != "ok":
		x.faults = append(x.faults, fault{c, "ttlguard:" + m[1] + " is unknown: write " + excuseForm})
	case !strings.HasPrefix(c.Text, "//ttlguard:"):
		x.faults = append(x.faults, fault{c, "this excuses nothing: write " + excuseForm + ", without a space after the slashes"})
	case strings.TrimSpace(reason) == "":
		x.faults = append(x.faults, fault{c, "an excuse without a reason: write " + excuseForm + ", where the reason says why this key may stay without a TTL"})
	default:
		return &excuse{comment: c}
	}
	return nil
}

func (x *excuses) line(p token.Pos) int { return x.pass.Fset.Position(p).Line }

func (x *excuses) code() map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(x.file, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		lines[x.line(n.Pos())], lines[x.line(n.End()-1)] = true, true
		return true
	})
	return lines
}

// excused reports whether a call is excused.
func (x *excuses) excused(c *ast.CallExpr) bool {
	for line := x.line(c.Pos()); line <= x.line(c.End()); line++ {
		if e := x.at[line]; e != nil {
			e.used = true
			return true
		}
	}
	for fn, e := range x.whole {
		if fn.Pos() <= c.Pos() && c.End() <= fn.End() {
			e.used = true
			return true
		}
	}
	if x.above != nil {
		x.above.used = true
	}
	return x.above != nil
}

// complain reports malformed excuses, and with unused also those that excuse no call.
func (x *excuses) complain(unused bool) {
	for _, f := range x.faults {
		x.pass.ReportRangef(f.at, "%s", f.says)
	}
	for _, e := range x.all {
		if unused && !e.used {
			x.pass.ReportRangef(e.comment, "nothing is left to excuse here: remove this comment")
		}
	}
}
