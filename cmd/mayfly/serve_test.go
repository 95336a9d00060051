package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestServeAndStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan int)
	var complaints bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--requirepass", "sesame", "--maxmemory", "10mb"}, in, &complaints)
		in.Close()
	}()
	buf := make([]byte, 1000)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	banner := string(buf[:n])
	if !strings.Contains(banner, "no replacement for Redis in production") {
		t.Errorf("the banner: %s", banner)
	}
	addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(banner)
	rdb := redis.NewClient(&redis.Options{Addr: addr, Password: "sesame"})
	defer rdb.Close()
	if got := rdb.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "10485760" {
		t.Errorf("maxmemory is %q", got)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, &complaints)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

func TestComplaintsAreOneClearLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "no command given"},
		{"server", 2, `unknown command "server"`},
		{"serve --port 1", 2, "not defined: -port"},
		{"serve --hz 1000", 2, "Options.Hz must be between 0 and 500, got 1000"},
		{"serve --hz x", 2, `invalid value "x" for flag -hz`},
		{"serve --maxmemory lots", 2, `"lots" is no size`},
		{"serve --maxmemory-policy lru", 2, "Options.Policy must be one of"},
		{"serve --addr 6379", 2, "--addr must be host:port"},
		{"serve now", 2, `unexpected argument "now"`},
		{"serve --addr " + l.Addr().String(), 1, "address already in use"},
	} {
		var complaints bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), io.Discard, &complaints)
		text := complaints.String()
		if code != test.code || !strings.Contains(text, test.says) || strings.Count(text, "\n") != 1 {
			t.Errorf("mayfly %s: exit %d, %q", test.args, code, text)
		}
	}
	for _, args := range []string{"help", "--help", "serve --help"} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, io.Discard); code != 0 || !strings.Contains(out.String(), "usage: mayfly") {
			t.Errorf("mayfly %s: exit %d, %q", args, code, out.String())
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "100": 100, "1k": 1000, "1KB": 1024, "64mb": 64 << 20, "2g": 2e9, "7b": 7} {
		if got, err := size(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "mb", "-1", "1tb", "99999999999gb", "1.5gb"} {
		if got, err := size(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
