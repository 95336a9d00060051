package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mayflycache/mayfly/internal/testkit/foreign"
	"github.com/mayflycache/mayfly/redistest"
)

// Each command has a page of help in the style of man, each of its flags is on it, and the shells complete them.
func TestEachCommandSaysWhatItDoes(t *testing.T) {
	for _, c := range commands() {
		var page bytes.Buffer
		if code := run(t.Context(), []string{c.name, "--help"}, &page, io.Discard); code != 0 {
			t.Errorf("mayfly %s --help: exit %d", c.name, code)
		}
		for _, part := range []string{"NAME\n       mayfly " + c.name + " - ", "\nSYNOPSIS\n", "\nDESCRIPTION\n", "\nEXIT STATUS\n"} {
			if !strings.Contains(page.String(), part) {
				t.Errorf("mayfly %s --help has no %q", c.name, strings.TrimSpace(part))
			}
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			var script bytes.Buffer
			if code := run(t.Context(), []string{"completion", shell}, &script, io.Discard); code != 0 || !strings.Contains(script.String(), c.name) {
				t.Errorf("%s does not complete %s", shell, c.name)
			}
			for word := range strings.FieldsSeq(flagsOf(t.Context(), c)) {
				if !strings.Contains(script.String(), strings.TrimPrefix(word, "--")) {
					t.Errorf("%s does not complete %s %s", shell, c.name, word)
				}
			}
		}
	}
}

func TestAuditHelpListsItsExitStatuses(t *testing.T) {
	var page bytes.Buffer
	run(t.Context(), []string{"audit", "--help"}, &page, io.Discard)
	for _, status := range []string{"\n       0 on ", "\n       3 when ", "\n       4 when "} {
		if !strings.Contains(page.String(), status) {
			t.Errorf("mayfly audit --help does not say %q:\n%s", status, &page)
		}
	}
}

func TestBashTakesTheCompletion(t *testing.T) {
	bash := foreign.Named(t, "MAYFLY_BASH_BIN", "command -v bash")
	var script bytes.Buffer
	run(t.Context(), []string{"completion", "bash"}, &script, io.Discard)
	for typed, want := range map[string]string{"de": "demo", "lab --proc": "--processes", "completion z": "zsh"} {
		words := strings.Fields("mayfly " + typed)
		cmd := exec.Command(bash, "-c", script.String()+"\nCOMP_WORDS=("+strings.Join(words, " ")+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _mayfly; echo ${COMPREPLY[*]}")
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q becomes %q, %v", typed, out, err)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range []string{"version", "--version"} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{args}, &out, io.Discard); code != 0 || !strings.HasPrefix(out.String(), "mayfly ") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q", args, code, out.String())
		}
	}
}

func TestWhatTheNewcomersComplainOf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	old := redistest.Start(t)
	old.FailNext("info", "ERR no such thing")
	ancient := oldRedis(t)
	const nobody = "127.0.0.1:1" // a port that was free a moment ago may be somebody's by now
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"demo --addr " + l.Addr().String(), 1, "is taken: choose another with --addr"},
		{"demo --addr 8080", 2, "--addr must be host:port"},
		{"demo --shoppers 2001", 2, "shoppers must be 0 to 2000, got 2001"},
		{"demo --ttl 1ms --query 0s", 2, "ttl must be 200ms to 1h0m0s, got 1ms; query must be 1ms to 5s, got 0s"},
		{"demo --load 10ms", 2, "--load must be a second or more"},
		{"demo --load 2s --for 2s", 2, "leave out --for"},
		{"demo --report /no/such/dir/x.html", 2, "there is no directory"},
		{"demo --colour", 2, "not defined: -colour"},
		{"demo now", 2, `unexpected argument "now"`},
		{"demo --redis localhost:6379", 2, "it must be like redis://"},
		{"demo --redis redis://" + nobody, 1, "no Redis answers at " + nobody},
		{"demo --redis redis://" + old.Addr(), 1, "ERR no such thing"},
		{"demo --redis redis://" + ancient, 1, "is 6.2.1: mayfly needs Redis 7.0 or newer, or Valkey"},
		{"lab --redis redis://" + ancient, 1, "is 6.2.1"},
		{"lab --processes 0", 2, "--processes must be 1 to 100, got 0"},
		{"lab --callers 0", 2, "--callers must be 1 to 10000"},
		{"lab --expiries 0", 2, "--expiries must be 1 or more"},
		{"lab --load 1us", 2, "must be 1ms or more"},
		{"lab --only otter", 2, `no way has "otter"`},
		{"lab --svg /no/such/dir/x.svg", 2, "there is no directory"},
		{"completion", 2, "want one argument: bash, zsh, fish"},
		{"completion tcsh", 2, `got "tcsh"`},
		{"version 1", 2, `unexpected argument "1"`},
		{"help nosuch", 2, `unknown command "nosuch"`},
	} {
		var complaints bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), io.Discard, &complaints)
		if text := complaints.String(); code != test.code || !strings.Contains(text, test.says) || strings.Count(text, "\n") != 1 {
			t.Errorf("mayfly %s: exit %d, %.300q", test.args, code, text)
		}
	}
}

// Lab prints a table, and draws a picture and a page.
func TestLab(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var out, complaints bytes.Buffer
		code := run(t.Context(), []string{"lab", "--processes", "2", "--callers", "20", "--expiries", "3", "--only", "mayfly", "--svg", filepath.Join(dir, "x.svg"),
			"--html", filepath.Join(dir, "x.html")}, &out, &complaints)
		if code != 0 || !strings.Contains(out.String(), "\nmayfly, all of it ") || !strings.Contains(out.String(), "2 ways, 3s each, on an embedded Redis") {
			t.Errorf("exit %d: %s%s", code, &out, &complaints)
		}
	})
	for _, name := range []string{"x.svg", "x.html"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(text, []byte("mayfly, all of it")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// oldRedis is the address of one that says it is 6.2.1, and knows nothing else.
func oldRedis(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				defer c.Close()
				lines := bufio.NewScanner(c)
				for args := 0; lines.Scan(); {
					switch line := strings.ToLower(lines.Text()); {
					case line[0] == '*':
						args, _ = strconv.Atoi(line[1:])
					case line[0] == '$':
					case line == "info":
						io.WriteString(c, "$31\r\n# Server\r\nredis_version:6.2.1\r\n\r\n")
						args = -1
					default:
						if args--; args == 0 {
							io.WriteString(c, "-ERR unknown command\r\n")
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
