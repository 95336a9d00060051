package client_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/recently"
)

func Example_recently() {
	renewals := recently.New(256)
	renewals.Add("user:7", time.Minute)
	fmt.Println(renewals.Has("user:7"), renewals.Has("user:8"))
	renewals.Remove("user:7")
	fmt.Println(renewals.Has("user:7"))
	// Output:
	// true false
	// false
}

func TestAKeyIsRememberedForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := recently.New(64)
		k.Add("k", time.Second)
		time.Sleep(time.Second - 1)
		if !k.Has("k") {
			t.Error("forgotten before its time")
		}
		k.Add("k", time.Second) // begins anew
		time.Sleep(time.Second - 1)
		if !k.Has("k") {
			t.Error("the second Add did not begin anew")
		}
		time.Sleep(time.Nanosecond)
		if k.Has("k") {
			t.Error("remembered beyond its time")
		}
	})
}

func TestACountEndsAfterItsFirstAddition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := recently.New(64)
		if n := k.CountIn("k", 2, time.Second); n != 2 {
			t.Errorf("first addition: %d", n)
		}
		time.Sleep(time.Second - 1)
		if n := k.CountIn("k", 3, time.Second); n != 5 || k.Count("k") != 5 {
			t.Errorf("second addition: %d, %d", n, k.Count("k"))
		}
		time.Sleep(time.Nanosecond)
		if k.Count("k") != 0 {
			t.Error("the count did not end with its first addition's time")
		}
		if n := k.CountIn("k", 1, time.Second); n != 1 {
			t.Errorf("a new count begins at %d", n)
		}
	})
}

// Keys that push each other out are forgotten, never confused.
func TestTheSpaceIsFixed(t *testing.T) {
	k := recently.New(8)
	for i := range 1000 {
		k.Add(strconv.Itoa(i), time.Hour)
	}
	remembered := 0
	for i := range 2000 {
		if k.Has(strconv.Itoa(i)) {
			if remembered++; i >= 1000 {
				t.Errorf("%d was never added", i)
			}
		}
	}
	if remembered == 0 || remembered > 8 {
		t.Errorf("%d keys remembered in 8 places", remembered)
	}
	if n := testing.AllocsPerRun(100, func() { k.Add("k", time.Hour); k.Has("k") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
