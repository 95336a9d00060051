// Command bench measures the tier's store and the double against their peers and writes what it found into the documents, so that no
// published figure is typed by hand. It is a module of its own: the peers never enter the library's go.mod.
//
//	go run .                     everything, into ../docs: a quarter of an hour
//	go run . -only heap          one table, still into ../docs
//	go run . -only heap -docs=   one table, to the terminal
//	go run . -quick -docs=       does it run at all
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// settings say how thoroughly to measure.
type settings struct {
	quick  bool
	long   bool   // the stampede of an hour
	procs  []int  // GOMAXPROCS of the read tables
	traces string // the directory of recorded traces
}

// scale returns full, or less when a first impression will do.
func (o settings) scale(full, quick int) int {
	if o.quick {
		return quick
	}
	return full
}

// A measurement fills the place of its name in a document.
type measurement struct {
	name string
	into []string // documents, one for each writer of run
	run  func(w []io.Writer, o settings)
}

// longStampede runs only if it is named: it takes an hour.
const longStampede = "long stampede"

// recordedTraces runs only if -traces names their directory.
const recordedTraces = "recorded traces"

const performance, eviction, journalDecision = "performance.md", "decisions/0004-eviction-policy.md", "decisions/0014-journal.md"

var measurements = []measurement{
	{"costs", []string{performance}, func(w []io.Writer, o settings) { costs(w[0], o) }},
	{"ratios", []string{performance, eviction}, func(w []io.Writer, o settings) { ratios(w[0], w[1], o) }},
	{recordedTraces, []string{performance, eviction}, func(w []io.Writer, o settings) { replays(io.MultiWriter(w...), o) }},
	{"heap", []string{performance}, func(w []io.Writer, o settings) { heap(w[0], o) }},
	{"reaping", []string{performance}, func(w []io.Writer, o settings) { reaping(w[0], o) }},
	{"pipelines", []string{performance}, func(w []io.Writer, o settings) { pipelines(w[0], o) }},
	{"redis-benchmark", []string{performance}, func(w []io.Writer, o settings) { redisBenchmark(w[0], o) }},
	{"starting", []string{performance}, func(w []io.Writer, o settings) { starting(w[0], o) }},
	{"sliding", []string{performance}, func(w []io.Writer, o settings) { slidings(w[0], o) }},
	{"navsession", []string{performance}, func(w []io.Writer, o settings) { visitCosts(w[0], o) }},
	{"fieldttl", []string{performance}, func(w []io.Writer, o settings) { fieldCosts(w[0], o) }},
	{"remote hits", []string{performance}, func(w []io.Writer, o settings) { remoteHits(w[0], o) }},
	{"crowd", []string{performance}, func(w []io.Writer, o settings) { crowd(w[0], o) }},
	{"codecs", []string{performance}, func(w []io.Writer, o settings) { codecs(w[0], o) }},
	{"local hits", []string{performance}, func(w []io.Writer, o settings) { localHits(w[0], o) }},
	{"many", []string{performance}, func(w []io.Writer, o settings) { manyHits(w[0], o) }},
	{"stampede", []string{performance}, func(w []io.Writer, o settings) { stampede(w[0], o) }},
	{longStampede, []string{performance}, func(w []io.Writer, o settings) { o.long = true; stampede(w[0], o) }},
	{"demo", []string{performance}, func(w []io.Writer, o settings) { demoCosts(w[0], o) }},
	{"httpcache", []string{performance}, func(w []io.Writer, o settings) { httpCaches(w[0], o) }},
	{"audit", []string{performance}, func(w []io.Writer, o settings) { audits(w[0], o) }},
	{"guard", []string{performance}, func(w []io.Writer, o settings) { guards(w[0], o) }},
	{"metrics", []string{performance}, func(w []io.Writer, o settings) { counted(w[0], o) }},
	{"journal", []string{journalDecision}, func(w []io.Writer, o settings) { journal(w[0], o) }},
	{"million", []string{performance}, func(w []io.Writer, o settings) { million(w[0], o) }},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveMini {
		beMini()
		return
	}
	if len(os.Args) == 3 && os.Args[1] == servePages {
		servePagesChild(os.Args[2])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == beStampeding {
		stampedeChild(os.Args[2:])
		return
	}
	only := flag.String("only", "", "the one measurement to make, by the name of its place in the documents")
	docs := flag.String("docs", "../docs", "the directory of the documents to write into; empty: print")
	quick := flag.Bool("quick", false, "fewer and shorter rounds")
	procs := flag.String("cpu", "1,2,8", "GOMAXPROCS of the costs")
	recordings := flag.String("traces", "", "the directory of recorded traces, *.u32.gz; empty: they are left out")
	flag.Parse()
	o := settings{quick: *quick, traces: *recordings}
	for p := range strings.SplitSeq(*procs, ",") {
		o.procs = append(o.procs, must(strconv.Atoi(p)))
	}
	for _, m := range measurements {
		if *only != m.name && (*only != "" || m.name == longStampede || m.name == recordedTraces && o.traces == "") {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", m.name)
		found := make([]bytes.Buffer, len(m.into))
		to := make([]io.Writer, len(m.into))
		for i := range to {
			to[i] = io.MultiWriter(&found[i], os.Stdout)
		}
		m.run(to, o)
		if *docs == "" || *quick {
			continue
		}
		for i, doc := range m.into {
			text := fmt.Sprintf("`cd bench && go run . -only %q` on %s\n\n%s", m.name, machine(), found[i].String())
			if err := fill(*docs+"/"+doc, m.name, text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}
