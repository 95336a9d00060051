package mayfly_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly"
)

func TestTee(t *testing.T) {
	var seen []string
	observer := func(name string) mayfly.Observer {
		return mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) { seen = append(seen, name+" "+e.Kind.String()) })
	}
	if mayfly.Tee() != nil || mayfly.Tee(nil, nil) != nil {
		t.Error("a Tee of none must be nil, which costs nothing")
	}
	mayfly.Tee(nil, observer("a"), observer("b")).Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLoad})
	mayfly.Tee(observer("c")).Observe(t.Context(), mayfly.Event{Kind: mayfly.KindWait})
	if got, want := strings.Join(seen, ", "), "a load, b load, c wait"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTeeKeepsItsOwnList(t *testing.T) {
	calls := 0
	count := mayfly.ObserverFunc(func(context.Context, mayfly.Event) { calls++ })
	list := []mayfly.Observer{count, count}
	tee := mayfly.Tee(list...)
	list[0], list[1] = nil, nil
	tee.Observe(t.Context(), mayfly.Event{})
	if calls != 2 {
		t.Errorf("%d calls after the caller's slice was reused, want 2", calls)
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := mayfly.KindRead; k <= mayfly.KindWarning; k++ {
		if name := k.String(); name == "unknown" || seen[name] {
			t.Errorf("kind %d is named %q", k, name)
		} else {
			seen[name] = true
		}
	}
	if got := mayfly.Kind(0).String() + mayfly.Kind(200).String(); got != "unknownunknown" {
		t.Errorf("kinds without a name: %q", got)
	}
}
