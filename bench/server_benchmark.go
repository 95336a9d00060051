package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// redisBenchmark runs the program that comes with Redis.
func redisBenchmark(w io.Writer, o settings) {
	servers := startAll()
	defer stopAll(servers)
	requests, rounds := o.scale(200_000, 5_000), o.scale(5, 1)
	tests := []string{"set", "get", "incr", "lpush", "hset"}
	fmt.Fprintf(w, ``+"`redis-benchmark -P 16 -c 50 -t set,get,incr,lpush,hset`"+`, requests per second in thousands, median of %d interleaved rounds of %d requests (miniredis: a tenth);
in brackets the median ratio to Redis in the same round. The bound is 0.5 on each, the aim 0.8. The list is as long as the round: LPUSH costs miniredis
more the longer it is.

`, rounds, requests)
	rate := map[string][]float64{} // by server and test
	for range rounds {
		for _, s := range servers {
			n := requests
			if s.name == miniRedis {
				n /= 10
			}
			rdb := s.client()
			for test, perSecond := range benchmark(s.addr, tests, n) {
				rate[s.name+test] = append(rate[s.name+test], perSecond)
			}
			rdb.FlushAll(context.Background())
			rdb.Close()
		}
	}
	fmt.Fprintf(w, "| server | %s |\n|%s\n", strings.ToUpper(strings.Join(tests, " | ")), strings.Repeat(" --- |", len(tests)+1))
	for _, s := range servers {
		bound := 0.0
		if s.name == theDouble {
			bound = 0.5
		}
		fmt.Fprintf(w, "| %s |", s.name)
		for _, test := range tests {
			got := rate[s.name+test]
			fmt.Fprintf(w, " %.0f (%s) |", median(got)/1000, verdict(ratio(got, rate[realRedis+test]), bound, true))
		}
		fmt.Fprintln(w)
	}
}

// benchmark runs redis-benchmark and returns the requests per second of each test.
func benchmark(addr string, tests []string, requests int) map[string]float64 {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(filepath.Join(redisDir(), "redis-benchmark"), "-h", host, "-p", port, "-P", "16", "-c", "50",
		"-n", strconv.Itoa(requests), "-t", strings.Join(tests, ","), "--csv")
	cmd.Stderr = os.Stderr
	rows := csv.NewReader(bytes.NewReader(must(cmd.Output())))
	rows.FieldsPerRecord = -1
	got := map[string]float64{}
	for _, row := range must(rows.ReadAll())[1:] {
		name := strings.ToLower(strings.Fields(row[0])[0])
		if f, err := strconv.ParseFloat(row[1], 64); err == nil {
			got[name] = f
		}
	}
	for _, test := range tests {
		if got[test] == 0 {
			panic("redis-benchmark did not tell of " + test)
		}
	}
	return got
}
