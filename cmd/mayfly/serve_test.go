package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// started runs mayfly serve and returns its banner, and what ends it and returns its exit code and complaints.
func started(t *testing.T, flags ...string) (banner string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int)
	var complaints bytes.Buffer
	go func() {
		ended <- run(ctx, append([]string{"serve"}, flags...), in, &complaints)
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		banner += lines.Text() + "\n"
		if strings.Contains(banner, "not a replacement for Redis in production") {
			break
		}
	}
	go io.Copy(io.Discard, out)
	return banner, func() (int, string) {
		cancel()
		return <-ended, complaints.String()
	}
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func TestServeAndStop(t *testing.T) {
	banner, stop := started(t, "--addr", "127.0.0.1:0", "--requirepass", "sesame", "--maxmemory", "10mb", "--hz", "50")
	addr := addresses.FindString(banner)
	rdb := redis.NewClient(&redis.Options{Addr: addr, Password: "sesame"})
	defer rdb.Close()
	for name, want := range map[string]string{"maxmemory": "10485760", "hz": "50"} {
		if got := rdb.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if code, complaints := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, complaints)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

func TestServeACluster(t *testing.T) {
	banner, stop := started(t, "--addr", "127.0.0.1:0", "--cluster", "--requirepass", "sesame")
	addrs := addresses.FindAllString(banner, -1)
	if len(addrs) != 3 || !strings.Contains(banner, "a Redis Cluster of 3") {
		t.Fatalf("the banner: %s", banner)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[2:], Password: "sesame"})
	defer rdb.Close()
	ctx := t.Context()
	for _, key := range []string{"b", "k", "foo"} { // one at each
		if err := rdb.Set(ctx, key, "v", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var counts []int64
	for _, addr := range addrs {
		node := redis.NewClient(&redis.Options{Addr: addr, Password: "sesame"})
		defer node.Close()
		counts = append(counts, node.DBSize(ctx).Val())
		sub := node.Subscribe(ctx, "news")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Publish(ctx, "news", addr).Err(); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != addr {
			t.Errorf("%s: a subscriber heard %v, %v", addr, m, err)
		}
	}
	if !slices.Equal(counts, []int64{1, 1, 1}) {
		t.Errorf("the nodes hold %v keys", counts)
	}
	if code, complaints := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, complaints)
	}
}

// The nodes have consecutive ports, or none is served.
func TestAPortOfAClusterIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := l.Addr().(*net.TCPAddr).Port - 1
	var complaints bytes.Buffer
	code := run(t.Context(), []string{"serve", "--addr", fmt.Sprint("127.0.0.1:", first), "--cluster=2"}, io.Discard, &complaints)
	if code != 1 || !strings.Contains(complaints.String(), "address already in use") {
		t.Errorf("exit %d: %s", code, &complaints)
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
		{"serve --appendfsync always", 2, "--appendfsync needs --dir"},
		{"serve --dir x --appendfsync often", 2, "--appendfsync must be one of always, everysec, no, got \"often\""},
		{"serve --dir x --cluster", 2, "--dir works with a single server only"},
		{"serve --replicaof here", 2, `invalid value "here" for flag -replicaof`},
		{"serve --replicaof :6379", 2, "is not host:port"},
		{"serve --replicaof http://x:1", 2, "--replicaof cannot be used"},
		{"serve --replicaof x:1 --cluster", 2, "--replicaof works with a single server only"},
		{"serve --hz 1000", 2, "--hz must be between 0 and 500, got 1000"},
		{"serve --hz x", 2, `invalid value "x" for flag -hz`},
		{"serve --maxmemory lots", 2, `"lots" is not a size`},
		{"serve --maxmemory-policy lru", 2, "--maxmemory-policy must be one of"},
		{"serve --addr 6379", 2, "--addr must be host:port"},
		{"serve --addr 127.0.0.1:nosuch", 1, "unknown port"},
		{"serve --cluster=0", 2, "want a number between 1 and 1000"},
		{"serve --cluster=x", 2, "want a number between 1 and 1000"},
		{"serve --cluster 3", 2, `unexpected argument "3"`},
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

func TestServeSaysThatItRefusesOtherHosts(t *testing.T) {
	const turned = "connections from other hosts are refused"
	for _, c := range []struct {
		flags []string
		want  bool
	}{
		{[]string{"--addr", "0.0.0.0:0"}, true},
		{[]string{"--addr", "0.0.0.0:0", "--protected-mode", "no"}, false},
		{[]string{"--addr", "0.0.0.0:0", "--requirepass", "sesame"}, false},
		{[]string{"--addr", "127.0.0.1:0"}, false},
	} {
		banner, stop := started(t, c.flags...)
		if strings.Contains(banner, turned) != c.want {
			t.Errorf("%q: %s", c.flags, banner)
		}
		stop()
	}
	var complaints bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--protected-mode", "maybe"}, io.Discard, &complaints); code != 2 || !strings.Contains(complaints.String(), "yes or no") {
		t.Errorf("exit %d: %s", code, complaints.String())
	}
}

func TestServeKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--addr", "127.0.0.1:0", "--dir", dir, "--appendfsync", "always"}
	banner, stop := started(t, flags...)
	if !strings.Contains(banner, "found 0 keys in "+dir) {
		t.Errorf("at first: %s", banner)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addresses.FindString(banner)})
	rdb.Set(t.Context(), "stays", "v", time.Hour)
	rdb.Set(t.Context(), "ends", "v", time.Millisecond)
	for rdb.Exists(t.Context(), "ends").Val() > 0 {
		<-time.After(time.Millisecond)
	}
	rdb.Close()
	var second bytes.Buffer
	if code := run(t.Context(), append([]string{"serve"}, flags...), io.Discard, &second); code != 1 || !strings.Contains(second.String(), "another process has it open") {
		t.Errorf("a second one on the directory: exit %d: %s", code, second.String())
	}
	if code, complaints := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, complaints)
	}
	banner, stop = started(t, flags...)
	defer stop()
	if !strings.Contains(banner, "found 1 keys in "+dir) {
		t.Errorf("then: %s", banner)
	}
	rdb = redis.NewClient(&redis.Options{Addr: addresses.FindString(banner)})
	defer rdb.Close()
	if v := rdb.Get(t.Context(), "stays").Val(); v != "v" {
		t.Errorf("stays is %q", v)
	}
}
