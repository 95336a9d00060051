package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestTheDrawingIsWhatThisDraws(t *testing.T) {
	runs := simulateAll()
	index, cycle := runs[0], runs[1]
	for _, l := range index.looks {
		if l.dead > l.bound() {
			t.Errorf("index: %d dead of %d held at %d ms, the bound is %d", l.dead, l.held, l.ms, l.bound())
		}
	}
	if mean := overdueMean(index.figures); mean > 100*time.Millisecond {
		t.Errorf("index: overdue by %v in the mean", mean)
	}
	if after := index.emptyAt - index.lastEnd; after > 1000 {
		t.Errorf("index: the last was reaped %d ms after its deadline", after)
	}
	if w := cycle.worst(); w.dead <= w.bound() {
		t.Errorf("the documented cycle keeps its bound, and docs/decisions/0003 has nothing to tell: %+v", w)
	}
	drawn, err := os.ReadFile("../../docs/dead-keys.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, draw(runs)) {
		t.Error("docs/dead-keys.svg is out of date: cd bench && go run ./deadplot > ../docs/dead-keys.svg")
	}
}
