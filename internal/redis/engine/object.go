package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// object is a key and its value: 64 bytes, at a fixed address while the key exists.
type object struct {
	key  string
	str  []byte       // its value, if a string
	coll values.Value // its value, if not a string
	id   uint32       // its slot, which is also its id in the indexes of deadlines
	bits uint32
}

// The parts of object.bits.
const (
	accessMask = 1<<24 - 1 // LRU: seconds modulo 2^24. LFU: minutes modulo 2^16, then 8 bits of a logarithmic counter
	kindShift  = 24        // 4 bits, a values.Kind; Missing in a free slot
	kindMask   = 15 << kindShift
	encShift   = 28 // 2 bits, an encoding
	encMask    = 3 << encShift
)

// encoding is Redis's name for the way it would store a string. All strings are plain bytes here; OBJECT ENCODING replies with the name.
type encoding uint32

const (
	raw encoding = iota
	embstr
	integer
	lone // an integer made by COPY: Redis does not share it
)

// longestEmbstr is the longest string that Redis allocates together with its object.
const longestEmbstr = 44

// encodingOf is the encoding of a string that is stored whole.
func encodingOf(b []byte) encoding {
	if len(b) <= 20 {
		if _, ok := values.ParseInt(b); ok {
			return integer
		}
	}
	return shortOrRaw(b)
}

// shortOrRaw is encodingOf where Redis does not try to parse a number.
func shortOrRaw(b []byte) encoding {
	if len(b) <= longestEmbstr {
		return embstr
	}
	return raw
}

func (o *object) kind() values.Kind { return values.Kind(o.bits & kindMask >> kindShift) }

// encoding returns the name that OBJECT ENCODING replies with.
func (o *object) encoding() string {
	if o.coll != nil {
		return o.coll.Encoding()
	}
	return [...]string{"raw", "embstr", "int", "int"}[o.bits&encMask>>encShift]
}

// stringEncoding is the encoding of a string.
func (o *object) stringEncoding() encoding { return encoding(o.bits & encMask >> encShift) }

// setString makes o hold a copy of b, reusing the memory of the old string if that fits well.
func (o *object) setString(b []byte, enc encoding) {
	o.str = append(o.room(len(b)), b...)
	o.hold(values.String, nil, enc)
}

// room returns an empty buffer for n bytes: the old string's, unless it is too small or would waste more than half.
func (o *object) room(n int) []byte {
	if c := cap(o.str); n <= c && c <= 2*n+32 {
		return o.str[:0]
	}
	return nil
}

// textOf returns the string that o holds, or nil if o is nil.
func textOf(o *object) []byte {
	if o == nil {
		return nil
	}
	return o.str
}

// setValue makes o hold v.
func (o *object) setValue(v values.Value) {
	o.str = nil
	o.hold(v.Kind(), v, raw)
}

func (o *object) hold(kind values.Kind, v values.Value, enc encoding) {
	o.coll = v
	o.bits = o.bits&accessMask | uint32(kind)<<kindShift | uint32(enc)<<encShift
}

// setEncoding sets how Redis would store the string now.
func (o *object) setEncoding(enc encoding) { o.bits = o.bits&^encMask | uint32(enc)<<encShift }

// lfuStart is the frequency counter of a new key.
const lfuStart = 5

// birth marks o as used now, for the first time.
func (o *object) birth(e *Engine) {
	if e.settings.policy.lfu() {
		o.setAccess(e.minutes()<<8 | lfuStart)
	} else {
		o.setAccess(uint32(e.now / 1e6))
	}
}

// use marks o as used now.
func (o *object) use(e *Engine) {
	if !e.settings.policy.lfu() {
		o.setAccess(uint32(e.now / 1e6))
		return
	}
	count := o.frequency(e)
	if count < math.MaxUint8 {
		above := float64(max(int(count)-lfuStart, 0))
		if float64(e.draw()>>11)/(1<<53) < 1/(above*float64(e.settings.lfuLogFactor)+1) {
			count++
		}
	}
	o.setAccess(e.minutes()<<8 | uint32(count))
}

func (o *object) setAccess(a uint32) { o.bits = o.bits&^accessMask | a&accessMask }

// idle returns the seconds since the last use of o.
func (o *object) idle(e *Engine) int64 {
	return int64((uint32(e.now/1e6) - o.bits) & accessMask)
}

// frequency returns the counter as it has decayed until now.
func (o *object) frequency(e *Engine) uint8 {
	access := o.bits & accessMask
	count := access & 0xff
	if e.settings.lfuDecayTime > 0 {
		periods := (e.minutes() - access>>8) & 0xffff / uint32(e.settings.lfuDecayTime)
		count -= min(count, periods)
	}
	return uint8(count)
}

func (e *Engine) minutes() uint32 { return uint32(e.now/60e6) & 0xffff }

// size returns roughly how many bytes the key and its value take.
func (o *object) size() int {
	n := len(o.key) + cap(o.str) + 64 + 40
	if o.coll != nil {
		n += o.coll.Size()
	}
	return n
}
