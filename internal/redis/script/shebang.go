package script

import (
	"errors"
	"fmt"
	"strings"
)

// Flags are what a script declares in its first line: #!lua flags=no-writes,allow-oom. Without such a line, the commands that a script calls show
// what it may do.
type Flags struct {
	Flagged   bool // it has such a line
	NoWrites  bool // it writes nothing
	AllowOOM  bool // it runs although memory is full
	NoCluster bool // it does not run in a cluster
	OneSlot   bool // in a cluster its keys must all be in one slot: the line does not say allow-cross-slot-keys
}

// ReadFlags reads the first line of a script if it begins with #!. The error is Redis's reply.
func ReadFlags(source string) (f Flags, err error) {
	if !strings.HasPrefix(source, "#!") {
		return Flags{}, nil
	}
	first, _, found := strings.Cut(source, "\n")
	if !found {
		return Flags{}, errors.New("ERR Invalid script shebang")
	}
	words := strings.Fields(first)
	if words[0] != "#!lua" {
		return Flags{}, fmt.Errorf("ERR Unexpected engine in script shebang: %s", words[0])
	}
	f.Flagged, f.OneSlot = true, true
	for _, word := range words[1:] {
		flags, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return Flags{}, fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		if flags == "" {
			continue
		}
		for flag := range strings.SplitSeq(flags, ",") {
			switch flag {
			case "no-writes":
				f.NoWrites = true
			case "allow-oom":
				f.AllowOOM = true
			case "no-cluster":
				f.NoCluster = true
			case "allow-cross-slot-keys":
				f.OneSlot = false
			case "allow-stale": // a replica here serves what it has
			default:
				return Flags{}, fmt.Errorf("ERR Unexpected flag in script shebang: %s", flag)
			}
		}
	}
	return f, nil
}

// withoutFlags returns the script with its line of flags emptied, so that the other lines keep their numbers.
func withoutFlags(source string) string {
	if strings.HasPrefix(source, "#!") {
		return source[strings.IndexByte(source, '\n'):]
	}
	return source
}
