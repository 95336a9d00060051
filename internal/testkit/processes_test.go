package testkit_test

import (
	"fmt"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

func init() {
	processes.Roles["echo"] = func() int {
		var word string
		fmt.Scanln(&word)
		fmt.Println("heard", word)
		return 0
	}
}

func TestAProcessInAnotherRole(t *testing.T) {
	p := processes.Start(t, "echo", "")
	p.Say("mayfly")
	if line, err := p.Line(); line != "heard mayfly" || err != nil {
		t.Errorf("it said %q, %v", line, err)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	if line, err := p.Line(); err == nil {
		t.Errorf("after its end it said %q", line)
	}
}

func TestAnUnknownRole(t *testing.T) {
	if err := processes.Start(t, "nobody", "").End(); err == nil {
		t.Error("a process in a role that there is not ended well")
	}
}
