package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// page is one document for people, as lines of Markdown.
type page struct {
	name  string // from the root, with slashes: "docs/sliding.md"
	lines []string
}

// block is a fenced block.
type block struct {
	page     string
	line     int // of the first line inside, from 1
	language string
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages are README.md, the other documents at the root, and all under docs.
func pages(t *testing.T) (all []page) {
	t.Helper()
	effort.Alone(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no documents %s: %v", pattern, err)
		}
		for _, name := range names {
			all = append(all, read(t, name))
		}
	}
	return all
}

func read(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return page{filepath.ToSlash(rel), strings.Split(string(text), "\n")}
}

// split divides a page into its fenced blocks and the rest, whose lines keep their numbers: lines of blocks are empty there.
func (p page) split() (prose []string, blocks []block) {
	prose = make([]string, len(p.lines))
	fence := "" // ends the current block
	for i, line := range p.lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			fence = "```"
			blocks = append(blocks, block{page: p.name, line: i + 2, language: strings.TrimLeft(trimmed, "`")})
		case fence != "" && trimmed == fence:
			fence = ""
		case fence != "":
			blocks[len(blocks)-1].text += line + "\n"
		default:
			prose[i] = line
		}
	}
	return prose, blocks
}

var (
	inlineLink    = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	referenceLink = regexp.MustCompile(`^\[([^\]]+)\]:\s+(\S+)`)
	span          = regexp.MustCompile("`[^`]+`")
	notInAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// link is one link of a page.
type link struct {
	where  string // page:line
	page   string
	text   string
	target string
}

func (p page) links() (all []link) {
	prose, _ := p.split()
	for i, line := range prose {
		where := fmt.Sprintf("%s:%d", p.name, i+1)
		if m := referenceLink.FindStringSubmatch(line); m != nil {
			all = append(all, link{where, p.name, m[1], m[2]})
			continue
		}
		for _, m := range inlineLink.FindAllStringSubmatch(line, -1) {
			all = append(all, link{where, p.name, m[1], m[2]})
		}
	}
	return all
}

// anchors are the anchors of the page's headings on GitHub.
func (p page) anchors() map[string]bool {
	all := map[string]bool{}
	prose, _ := p.split()
	for _, line := range prose {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		heading = inlineLink.ReplaceAllString(strings.TrimSpace(heading), "$1")
		name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
		for n := 1; all[name]; n++ { // the second heading of a name is name-1
			name = fmt.Sprintf("%s-%d", strings.TrimSuffix(name, fmt.Sprintf("-%d", n-1)), n)
		}
		all[name] = true
	}
	return all
}

func TestPagesAreTakenApart(t *testing.T) {
	p := page{"docs/x.md", strings.Split("# A `b`, and C\n[one](two.md#three)\n```go\n# no heading\n```\n# A b and C\n", "\n")}
	if got := p.anchors(); !got["a-b-and-c"] || !got["a-b-and-c-1"] || len(got) != 2 {
		t.Errorf("anchors %v", got)
	}
	if got := p.links(); len(got) != 1 || got[0].target != "two.md#three" || got[0].where != "docs/x.md:2" {
		t.Errorf("links %v", got)
	}
	if _, got := p.split(); len(got) != 1 || got[0].line != 4 || got[0].language != "go" || got[0].text != "# no heading\n" {
		t.Errorf("blocks %v", got)
	}
}
