package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// fill replaces what is between the markers of name in a document:
//
//	<!-- measured: name -->
//	<!-- end -->
func fill(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin := "<!-- measured: " + name + " -->\n"
	head, rest, found := strings.Cut(string(old), begin)
	_, tail, closed := strings.Cut(rest, "<!-- end -->")
	if !found || !closed {
		return fmt.Errorf("%s has no place for %q", file, name)
	}
	return os.WriteFile(file, []byte(head+begin+text+"<!-- end -->"+tail), 0o644)
}

// machine says where and when a table was made.
func machine() string {
	commit := "unknown commit"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%s, %d processors, %s %s/%s, %s, %s.", processor(), runtime.NumCPU(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, commit, time.Now().UTC().Format(time.DateOnly))
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
