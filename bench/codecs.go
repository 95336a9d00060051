package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/mayflycache/mayfly"
)

// codecs measures what encoding and decoding a value costs: most of a typed hit in Redis.
func codecs(w io.Writer, o settings) {
	text := must(json.Marshal(anArticle))
	packed := must(msgpack.Marshal(anArticle))
	type codec struct {
		name   string
		size   int
		decode func() (article, error)
		encode func() ([]byte, error)
	}
	all := []codec{
		{"encoding/json, the default", len(text), func() (article, error) { return mayfly.JSON[article]{}.Decode(text) },
			func() ([]byte, error) { return mayfly.JSON[article]{}.Append(nil, anArticle) }},
		{"sonic", len(text), func() (a article, err error) { err = sonic.Unmarshal(text, &a); return },
			func() ([]byte, error) { return sonic.Marshal(anArticle) }},
		{"msgpack", len(packed), func() (a article, err error) { err = msgpack.Unmarshal(packed, &a); return },
			func() ([]byte, error) { return msgpack.Marshal(anArticle) }},
	}
	ways := func(of func(c codec) func()) (ways []asked) {
		for _, c := range all {
			ways = append(ways, asked{c.name, 0, of(c)})
		}
		return ways
	}
	rounds, ops := o.scale(21, 3), 4000
	decode, share, allocs := paired(ways(func(c codec) func() { return func() { must(c.decode()) } }), rounds, ops)
	encode, more, _ := paired(ways(func(c codec) func() { return func() { must(c.encode()) } }), rounds, ops)
	if os.Getenv(inV2) != "" { // the other build, which measures itself
		fmt.Fprintf(w, "%f %f %f\n", decode[0], encode[0], allocs[0])
		return
	}
	fmt.Fprintf(w, "The article of above, %d bytes as JSON. Median of %d interleaved rounds of %d operations. The second row is another build of the same program, so its ratio is to another process.\n\n", len(text), rounds, ops)
	fmt.Fprint(w, "| | bytes | decode | ratio | allocs | encode | ratio |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	row := func(name string, size int, decode, share, allocs, encode, more float64) {
		fmt.Fprintf(w, "| %s | %d | %.1f µs | %.2f | %.0f | %.1f µs | %.2f |\n", name, size, decode/1000, share, allocs, encode/1000, more)
	}
	for i, c := range all {
		row(c.name, c.size, decode[i], share[i], allocs[i], encode[i], more[i])
		if i == 0 {
			d, e, n := builtWithV2(o)
			row("the default, built with GOEXPERIMENT=jsonv2", len(text), d, d/decode[0], n, e, e/encode[0])
		}
	}
}

// inV2 tells this program that it is the build with encoding/json/v2.
const inV2 = "MAYFLY_BENCH_JSONV2"

// builtWithV2 builds this program with encoding/json/v2, and has it measure the default codec.
func builtWithV2(o settings) (decode, encode, allocs float64) {
	dir := must(os.MkdirTemp("", "mayfly-bench"))
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "bench")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env, build.Stderr = append(os.Environ(), "GOEXPERIMENT=jsonv2"), os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	run := exec.Command(bin, "-only", "codecs", "-docs=", fmt.Sprintf("-quick=%v", o.quick))
	run.Env = append(os.Environ(), inV2+"=1")
	for line := range strings.Lines(string(must(run.Output()))) {
		if n, _ := fmt.Sscanf(line, "%f %f %f", &decode, &encode, &allocs); n == 3 {
			return decode, encode, allocs
		}
	}
	panic("the other build told nothing")
}
