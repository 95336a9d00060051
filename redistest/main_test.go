package redistest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestMain fails if a test left a goroutine of this module or of go-redis behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // it logs every fault
	code := m.Run()
	if stacks := left(); len(stacks) > 0 && code == 0 {
		fmt.Printf("%d goroutines are left:\n%s\n", len(stacks), strings.Join(stacks, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// left returns the stacks of goroutines that should have ended, after those about to end have done so.
func left() (stacks []string) {
	for range 3000 {
		buf := make([]byte, 1<<20)
		all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		stacks = slices.DeleteFunc(all, func(stack string) bool {
			return strings.Contains(stack, "redistest_test.left(") || strings.Contains(stack, "testing.(*T).Run(") || !strings.Contains(stack, "mayflycache") && !strings.Contains(stack, "go-redis")
		})
		if len(stacks) == 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	return stacks
}
