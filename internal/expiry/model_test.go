package expiry

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// pair is an Index and the list of deadlines that it is compared with.
type pair struct {
	x    Index
	list map[uint32]int64
	now  int64
}

// Operations of the model: one byte for the operation, one for the id, two for the argument.
const (
	set     = iota // in argument << scale milliseconds
	setPast        // argument milliseconds ago
	remove
	ahead  // the clock goes forward by the argument
	jump   // and by the argument times a second
	back   // and back by the argument times 100 ms
	reap   // at most argument%32
	settle // reap until Next is in the future
	sample
	release
	operations
)

func (p *pair) do(op, id byte, arg uint16) error {
	k := uint32(id) * 9 // several pages
	switch op % operations {
	case set:
		d := p.now + int64(arg)<<(op/operations%29) // up to a thousand years
		p.x.Set(k, d)
		p.list[k] = d
	case setPast:
		d := p.now - int64(arg)
		p.x.Set(k, d)
		p.list[k] = d
		if d == None {
			delete(p.list, k)
		}
	case remove:
		p.x.Remove(k)
		delete(p.list, k)
	case ahead:
		p.now += int64(arg)
	case jump:
		p.now += int64(arg) * 1000
	case back:
		p.now -= int64(arg) * 100
	case reap:
		if n, max := len(p.list), int(arg%32); true {
			reaped, err := p.reap(max)
			if err != nil {
				return err
			}
			if reaped > max || n-reaped != len(p.list) {
				return fmt.Errorf("Reap(%d, %d) says %d, called back %d times", p.now, max, reaped, n-len(p.list))
			}
		}
	case settle:
		for calls := 0; ; calls++ {
			if at, ok := p.x.Next(); !ok || at > p.now {
				break
			}
			if calls > 10_000 {
				return fmt.Errorf("Next never gets past %d", p.now)
			}
			if _, err := p.reap(1 + int(arg%8)); err != nil {
				return err
			}
		}
		for id, d := range p.list {
			if Dead(d, p.now) {
				return fmt.Errorf("%d ended at %d and was not reaped at %d", id, d, p.now)
			}
		}
	case release:
		p.x.Release()
	case sample:
		id, ok := p.x.Sample(uint64(arg) << 48)
		if _, listed := p.list[id]; ok != listed || ok != (len(p.list) > 0) {
			return fmt.Errorf("Sample gave %d, %v", id, ok)
		}
	}
	return p.check(k)
}

func (p *pair) reap(max int) (n int, err error) {
	n = p.x.Reap(p.now, max, func(id uint32) {
		if d, ok := p.list[id]; !ok || !Dead(d, p.now) {
			err = fmt.Errorf("reaped %d with deadline %d, held %v, at %d", id, d, ok, p.now)
		}
		delete(p.list, id)
	})
	return n, err
}

// check compares all that can be observed.
func (p *pair) check(id uint32) error {
	if p.x.Len() != len(p.list) {
		return fmt.Errorf("Len %d, want %d", p.x.Len(), len(p.list))
	}
	if got := p.x.Deadline(id); got != p.list[id] {
		return fmt.Errorf("Deadline(%d) = %d, want %d", id, got, p.list[id])
	}
	at, ok := p.x.Next()
	if ok != (len(p.list) > 0) {
		return fmt.Errorf("Next says %v with %d held", ok, len(p.list))
	}
	dead := 0
	for id, d := range p.list {
		if at > after(d) {
			return fmt.Errorf("Next says %d, but %d ends at %d", at, id, d)
		}
		if Dead(d, p.now) {
			dead++
		}
	}
	if got := p.x.Figures(p.now).Dead; got != dead {
		return fmt.Errorf("Figures count %d dead, want %d", got, dead)
	}
	return nil
}

// verify checks the two invariants of the wheel, and that its lists are intact.
func verify(x *Index) error {
	found := 0
	for l := range x.levels {
		v := &x.levels[l]
		for slot := range uint32(slots) {
			b, any := uint32(l*slots)|slot, false
			for lane, head := range v.heads[slot] {
				before := marked | b
				for at := head; at != 0; at = x.node(at - 1).next {
					n := x.node(at - 1)
					switch {
					case n.deadline == None:
						return fmt.Errorf("%d is in bucket %d and absent", at-1, b)
					case n.prev != before || (at-1)%lanes != uint32(lane):
						return fmt.Errorf("%d is not whole in lane %d of bucket %d", at-1, lane, b)
					case span(b, n.deadline)>>digit != span(b, x.focus)>>digit || span(b, n.deadline)%slots != uint64(slot):
						return fmt.Errorf("%d, deadline %d, is outside of bucket %d at focus %d", at-1, n.deadline, b, x.focus)
					case n.deadline < v.floors[slot]:
						return fmt.Errorf("%d, deadline %d, is below the floor %d of bucket %d", at-1, n.deadline, v.floors[slot], b)
					}
					before, any = at, true
					found++
				}
			}
			if any != (v.occupied>>slot&1 == 1) {
				return fmt.Errorf("bucket %d: occupied %v, entries %v", b, !any, any)
			}
		}
	}
	if found != x.held {
		return fmt.Errorf("%d in buckets, %d held", found, x.held)
	}
	return nil
}

func TestIndexAgreesWithAListOfDeadlines(t *testing.T) {
	r := chance(t)
	for round := range 40 {
		p := pair{list: map[uint32]int64{}, now: 1_700_000_000_000}
		weights := [operations]int{set: 40, setPast: 2, remove: 10, ahead: 10, jump: round % 3, back: round % 2, reap: 20, settle: 3, sample: round % 5}
		var ops []byte
		for op, w := range weights {
			for range w {
				ops = append(ops, byte(op))
			}
		}
		for step := range 5_000 {
			op := ops[r.IntN(len(ops))] + operations*byte(r.IntN(28))
			id, arg := byte(r.IntN(1<<(round%6+3))), uint16(r.IntN(1<<r.IntN(17)))
			err := p.do(op, id, arg)
			if err == nil && step%50 == 0 {
				err = verify(&p.x)
			}
			if err != nil {
				t.Fatalf("round %d, step %d, operation %d of id %d with %d: %v", round, step, op%operations, id, arg, err)
			}
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte{set, 1, 100, 0, set, 2, 5, 0, ahead, 0, 50, 0, reap, 0, 9, 0, back, 0, 9, 0, settle, 0, 1, 0})
	f.Add([]byte{set + 20*operations, 1, 100, 0, jump, 2, 5, 200, set, 1, 50, 0, back, 0, 255, 255, setPast, 0, 9, 0, settle, 0, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := pair{list: map[uint32]int64{}, now: 1_700_000_000_000}
		for ; len(script) >= 4; script = script[4:] {
			if err := p.do(script[0], script[1], binary.LittleEndian.Uint16(script[2:])); err != nil {
				t.Fatal(err)
			}
		}
		if err := verify(&p.x); err != nil {
			t.Fatal(err)
		}
	})
}
