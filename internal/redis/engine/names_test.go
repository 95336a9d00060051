package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func TestKeyspaceAgreesWithAMap(t *testing.T) {
	effort.Alone(t)
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var k keyspace
	model := map[string]uint32{}
	steps := effort.Times(250_000, 600_000)
	for step := range steps {
		key := fmt.Appendf(nil, "key:%d", r.IntN(60_000))
		o := k.find(key)
		id, there := model[string(key)]
		if there != (o != nil) || there && (o.id != id || o.key != string(key)) {
			t.Fatalf("step %d: %s is %v, model %v %d", step, key, o, there, id)
		}
		switch p := r.IntN(100); {
		case !there && p < 60-30*(step/(steps/2)): // grows at first, shrinks later
			o := k.insert(key)
			o.setString(key, embstr)
			model[string(key)] = o.id
		case there && p < 40:
			k.drop(o)
			delete(model, string(key))
		case there && p < 50:
			to := append(key, '!')
			if k.find(to) == nil {
				k.rename(o, to)
				delete(model, string(key))
				model[string(to)] = o.id
			}
		}
		if k.len() != len(model) {
			t.Fatalf("step %d: %d keys, model %d", step, k.len(), len(model))
		}
	}
	if len(k.names.tables) < 8 {
		t.Errorf("only %d tables: nothing was split", len(k.names.tables))
	}
}
