package journal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A journal is several files and a manifest that names them: a base, which has all data at one time, and the increments written since, in
// order. The names are Redis's.
const (
	folder       = "appendonlydir"
	stem         = "appendonly.aof"
	manifestName = stem + ".manifest"
	singleName   = stem // from a Redis before 7, beside the folder
)

// kind is the type of a file in a manifest.
type kind byte

const (
	baseFile    kind = 'b'
	history     kind = 'h' // to be deleted
	incremental kind = 'i'
)

// part is one file of a journal.
type part struct {
	name string
	seq  int64
	kind kind
}

// manifest names the files of a journal. A journal to which nothing was ever written has no base.
type manifest struct {
	base  *part
	incrs []part
	old   []part // history
}

func baseName(seq int64) string { return fmt.Sprintf("%s.%d.base.rdb", stem, seq) }
func incrName(seq int64) string { return fmt.Sprintf("%s.%d.incr.aof", stem, seq) }

// lastSeq returns the number of the newest increment, 0 if there is none.
func (m *manifest) lastSeq() int64 {
	if len(m.incrs) == 0 {
		return 0
	}
	return m.incrs[len(m.incrs)-1].seq
}

// names returns the files that hold the data.
func (m *manifest) names() (all []string) {
	if m.base != nil {
		all = append(all, m.base.name)
	}
	for _, p := range m.incrs {
		all = append(all, p.name)
	}
	return all
}

// String is the manifest as it is written to its file.
func (m *manifest) String() string {
	var b strings.Builder
	line := func(p part) { fmt.Fprintf(&b, "file %s seq %d type %c\n", p.name, p.seq, p.kind) }
	if m.base != nil {
		line(*m.base)
	}
	for _, p := range m.incrs {
		line(p)
	}
	return b.String()
}

// parseManifest reads a manifest that String or Redis wrote.
func parseManifest(text []byte) (*manifest, error) {
	m := new(manifest)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("the manifest is empty")
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := parsePart(line)
		if err != nil {
			return nil, fmt.Errorf("the manifest, line %d: %w", n, err)
		}
		switch {
		case p.kind == history:
			m.old = append(m.old, p)
		case p.kind == baseFile && m.base != nil:
			return nil, fmt.Errorf("the manifest, line %d: a second base, after %s", n, m.base.name)
		case p.kind == baseFile:
			m.base = &p
		case p.seq <= m.lastSeq():
			return nil, fmt.Errorf("the manifest, line %d: increment %d comes after %d", n, p.seq, m.lastSeq())
		default:
			m.incrs = append(m.incrs, p)
		}
	}
	for _, p := range m.old {
		if !m.outdates(p) {
			return nil, fmt.Errorf("the manifest marks %s as history, but names no file that replaced it", p.name)
		}
	}
	return m, nil
}

// outdates reports whether a newer file has replaced this one.
func (m *manifest) outdates(p part) bool {
	if strings.Contains(p.name, ".base.") {
		return m.base != nil && p.seq < m.base.seq
	}
	return len(m.incrs) > 0 && p.seq < m.incrs[0].seq
}

// forgets returns why a data file that the manifest does not name must not be removed; empty if it can be. It can be if a crash during or
// after a compaction may have left it behind.
func (m *manifest) forgets(name string, size int64) string {
	var seq int64
	fmt.Sscanf(strings.TrimPrefix(name, stem+"."), "%d", &seq)
	switch {
	case strings.Contains(name, ".base.") && m.base == nil && (len(m.incrs) == 0 || seq <= m.incrs[0].seq): // a later one is of a compaction that a crash ended
		return "it names no base, but " + name + " exists"
	case !strings.Contains(name, ".base.") && size > 0 && (m.base == nil || seq >= m.base.seq):
		return "it does not name " + name + ", which holds data"
	}
	return ""
}

// parsePart reads a line of names and values. Pairs that only newer versions of Redis know (replication offsets) are ignored.
func parsePart(line string) (p part, err error) {
	words, ok := splitLine(line)
	if !ok || len(words)%2 != 0 {
		return p, fmt.Errorf("%q is not a list of names and values", line)
	}
	given := map[string]bool{}
	for ; len(words) > 0; words = words[2:] {
		if given[words[0]] {
			return p, fmt.Errorf("%q has %s twice", line, words[0])
		}
		given[words[0]] = true
		switch value := words[1]; words[0] {
		case "file":
			p.name = value
		case "seq":
			if p.seq, err = strconv.ParseInt(value, 10, 64); err != nil || p.seq < 1 {
				return p, fmt.Errorf("seq %q must be a number from 1 on", value)
			}
		case "type":
			if len(value) != 1 || !strings.Contains("bhi", value) {
				return p, fmt.Errorf("type %q must be b, h or i", value)
			}
			p.kind = kind(value[0])
		}
	}
	switch {
	case p.name == "" || p.seq == 0 || p.kind == 0:
		return p, fmt.Errorf("%q must have file, seq and type", line)
	case p.name != filepath.Base(p.name) || p.name == "." || p.name == "..":
		return p, fmt.Errorf("file %q must be a name without a path", p.name)
	}
	return p, nil
}

// splitLine splits a line at its spaces. Names with special characters are quoted.
func splitLine(line string) (words []string, ok bool) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, false
			}
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, false
			}
			rest = line[len(quoted):]
		}
		words, line = append(words, word), rest
	}
	return words, true
}
