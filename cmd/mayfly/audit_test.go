package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// audited is a server to audit, with 30 keys without TTL among 130, and its URL.
func audited(t *testing.T) (*redis.Client, string) {
	banner, stop := started(t, "--addr", "127.0.0.1:0")
	t.Cleanup(func() { stop() })
	addr := addresses.FindString(banner)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	for i := range 100 {
		rdb.Set(t.Context(), fmt.Sprintf("cache:user:%d", i), "v", time.Hour)
		if i < 30 {
			rdb.Set(t.Context(), fmt.Sprintf("session:%d", i), "v", 0)
		}
	}
	return rdb, "redis://" + addr
}

func mayfly(t *testing.T, args ...string) (code int, out, complaints string) {
	t.Helper()
	var o, c bytes.Buffer
	code = run(t.Context(), append([]string{"audit"}, args...), &o, &c)
	return code, o.String(), c.String()
}

func TestAudit(t *testing.T) {
	_, url := audited(t)
	code, out, complaints := mayfly(t, url)
	if code != 0 || complaints != "" || !strings.Contains(out, "130 keys, 30 without TTL (23.1 %)") || !strings.Contains(out, "session:*") {
		t.Errorf("exit %d, %s%s", code, complaints, out)
	}
	code, out, _ = mayfly(t, "--max-rate", "0", url, "--json", "--largest=3")
	var r struct {
		Keys     int
		NoTTL    int `json:"no_ttl"`
		Complete bool
		Took     float64          `json:"took_seconds"`
		Large    []map[string]any `json:"largest_no_ttl"`
		TTLs     []map[string]any
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Keys != 130 || r.NoTTL != 30 || !r.Complete || len(r.Large) != 3 || r.Took <= 0 || r.TTLs[0]["up_to_seconds"] != 60.0 {
		t.Errorf("exit %d, %v, %+v", code, err, r)
	}
}

func TestAuditFailsOn(t *testing.T) {
	_, url := audited(t)
	for condition, want := range map[string]int{
		"no-ttl>0": 4, "no-ttl>30": 0, "no-ttl >= 30": 4, "no-ttl>25%": 0, "no-ttl>=20%": 4, "too-long>0": 0, "too-long>=0": 4, "no-ttl-bytes>100": 4,
	} {
		code, out, complaints := mayfly(t, url, "--fail-on", condition)
		if code != want || !strings.Contains(out, "130 keys") || (code == 4) != strings.Contains(complaints, condition) {
			t.Errorf("%s: exit %d, %s", condition, code, complaints)
		}
	}
}

func TestAuditFixes(t *testing.T) {
	rdb, url := audited(t)
	left := func() time.Duration { return rdb.TTL(t.Context(), "session:7").Val() }
	code, out, _ := mayfly(t, url, "--fix", "session:*=1h")
	if code != 0 || !strings.Contains(out, "30 keys matched, 30 would be given") || !strings.Contains(out, "nothing was written") || left() != -1 {
		t.Errorf("exit %d, %s", code, out)
	}
	code, out, _ = mayfly(t, url, "--fix", "session:*=1h", "--fix", "cache:**=2h", "--yes")
	if code != 0 || !strings.Contains(out, "30 keys matched, 30 were given") || !strings.Contains(out, "100 keys matched, 0 were given") || left() < 50*time.Minute {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out, _ = mayfly(t, url, "--fix", "session:*=1h", "--json"); code != 0 || !strings.Contains(out, `"had_one": 30`) {
		t.Errorf("exit %d, %s", code, out)
	}
}

// An interrupted audit continues where it was, and its state is removed at the end.
func TestAuditResumes(t *testing.T) {
	_, url := audited(t)
	file := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	var out, complaints bytes.Buffer
	a, err := auditFlags([]string{url, "--resume", file, "--max-rate=1000"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	rdb, err := connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	p := newProgress(&complaints, 0)
	p.every = 0
	cancelling := &cancelOnWrite{cancel: cancel}
	p.to = cancelling
	err = a.audit(ctx, rdb, &out, p)
	if err == nil || !strings.Contains(err.Error(), "partial: interrupted") || !strings.Contains(out.String(), "PARTIAL: 0 of 1") {
		t.Errorf("%v; %s", err, &out)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	if line := cancelling.String(); !strings.Contains(line, " keys/s, ") && !strings.Contains(line, " %, ") {
		t.Errorf("progress: %q", line)
	}
	code, text, said := mayfly(t, url, "--resume", file)
	if code != 0 || !strings.Contains(text, "130 keys, 30 without") {
		t.Errorf("exit %d, %s%s", code, said, text)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the state is still there")
	}
	os.WriteFile(file, []byte("nonsense"), 0o600)
	if code, _, said := mayfly(t, url, "--resume", file); code != 1 || !strings.Contains(said, "is not the state of an audit") {
		t.Errorf("exit %d, %s", code, said)
	}
}

type cancelOnWrite struct {
	bytes.Buffer
	cancel func()
}

func (c *cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return c.Buffer.Write(p)
}

func TestAuditComplainsInOneLine(t *testing.T) {
	_, url := audited(t)
	for args, test := range map[string]struct {
		code int
		says string
	}{
		"":                                      {2, "audit needs exactly one URL"},
		url + " " + url:                         {2, "such as redis://host:port, got 2"},
		"redis://u:sesame@127.0.0.1:xx":         {2, "the URL cannot be used: invalid port"},
		"http://u:sesame@h":                     {2, "invalid URL scheme"},
		"redis://127.0.0.1:1":                   {1, "connection refused"},
		url + " --fail-on no-ttl":               {2, "want no-ttl"},
		url + " --fail-on keys>1":               {2, "want no-ttl"},
		url + " --fail-on no-ttl-bytes>1%":      {2, "want no-ttl"},
		url + " --fail-on no-ttl>1.1.1":         {2, `"1.1.1" is not a number`},
		url + " --fix a:*":                      {2, "want pattern=ttl"},
		url + " --fix a:*=soon":                 {2, `"soon" is not a TTL`},
		url + " --fix a:*=1ms":                  {2, "TTL must be at least 1s"},
		url + " --fix *=1h":                     {2, "would match any key"},
		url + " --yes":                          {2, "--yes needs --fix"},
		url + " --fix a:*=1h --match a*":        {2, "--fix can be combined only with"},
		url + " --max-rate -1":                  {2, "--max-rate must not be negative"},
		url + " --sample -1":                    {2, "--sample must not be negative"},
		url + " --sample 1 --match a*":          {2, "--sample cannot be used with --match"},
		url + " --too-long 0s":                  {2, "--too-long must be 1ms or more"},
		url + " --largest 0":                    {2, "--largest must be 1 or more"},
		url + " --nosuch":                       {2, "not defined: -nosuch"},
		url + " --resume /nosuch/dir/f":         {0, ""},
		url + "/3000":                           {1, "out of range"},
		url + " --resume " + filepath.Dir("/a"): {1, "--resume"},
	} {
		code, _, complaints := mayfly(t, strings.Fields(args)...)
		lines := strings.Count(complaints, "\n")
		if code != test.code || !strings.Contains(complaints, test.says) || lines > 1 || lines == 1 == (code == 0) || strings.Contains(complaints, "sesame") {
			t.Errorf("mayfly audit %s: exit %d, %q", args, code, complaints)
		}
	}
}

// Users of a real server without some permissions, and a cluster that lacks a master.
func TestAuditOfRealServers(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	for _, rule := range []string{"scan on >pw ~* +@all -scan", "memory on >pw ~* +@all -memory", "least on >pw ~* +scan +pttl +type"} {
		args := []any{"ACL", "SETUSER"}
		for _, word := range strings.Fields(rule) {
			args = append(args, word)
		}
		if err := srv.Client().Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	srv.Client().Set(t.Context(), "a", "v", 0)
	for args, test := range map[string]struct {
		code int
		says string
	}{
		"redis://scan:wrong@" + srv.Addr():               {1, "WRONGPASS"},
		"redis://scan:pw@" + srv.Addr():                  {1, "SCAN is not allowed to this user: ACL SETUSER <user> +scan"},
		"redis://memory:pw@" + srv.Addr():                {1, "MEMORY USAGE is not allowed to this user: ACL SETUSER <user> +memory|usage"},
		"redis://least:pw@" + srv.Addr():                 {1, "MEMORY USAGE is not allowed"},
		"redis://least:pw@" + srv.Addr() + " --no-sizes": {0, ""},
	} {
		code, _, complaints := mayfly(t, strings.Fields(args)...)
		if lines := strings.Count(complaints, "\n"); code != test.code || !strings.Contains(complaints, test.says) || lines > 1 {
			t.Errorf("mayfly audit %s: exit %d, %q", args, code, complaints)
		}
	}
	cluster := realredis.StartCluster(t, 3, 0, realredis.Options{Config: []string{"cluster-require-full-coverage no"}})
	rdb := cluster.Client()
	for i := range 300 {
		rdb.Set(t.Context(), fmt.Sprint("k:", i), "v", 0)
	}
	url := "redis://" + cluster.Owner("a").Addr()
	if code, out, complaints := mayfly(t, url); code != 0 || !strings.Contains(out, "300 keys, 300 without") {
		t.Errorf("exit %d, %s%s", code, complaints, out)
	}
	cluster.Owner("b").Kill()
	code, out, complaints := mayfly(t, url)
	if code != 3 || !strings.Contains(out, "PARTIAL: 2 of 3 servers") || !strings.Contains(complaints, "partial: audit of "+cluster.Nodes()[0].Addr()[:10]) || strings.Count(complaints, "\n") != 1 {
		t.Errorf("exit %d, %s%s", code, complaints, out)
	}
	if code, _, _ := mayfly(t, url, "--fail-on", "no-ttl>0"); code != 4 {
		t.Errorf("exit %d", code)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, time.Second)
	p.terminal, p.every = true, 0
	p.show(ttlaudit.Progress{Servers: 3, Done: 1, Keys: 100, Of: 1000, Took: time.Second})
	p.show(ttlaudit.Progress{Servers: 3, Done: 1, Keys: 500, NoTTL: 7, Of: 1000, Took: 2 * time.Second})
	want := "\r\033[K" + strings.Repeat("█", 12) + strings.Repeat("░", 12) + " 50 %, 500 keys, 7 without TTL, server 2 of 3, 400 keys/s, 1s left"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%q", b.String())
	}
	p.clear()
	if !strings.HasSuffix(b.String(), "\r\033[K") {
		t.Errorf("%q", b.String())
	}
}
