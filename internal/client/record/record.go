// Package record defines what the bytes in Redis look like: a value with its header, a lease, a tombstone, or a plain value that another
// program wrote.
//
// Every record begins with four bytes that no text begins with and contains its own length. So a value that another program has cut,
// appended to or written is never mistaken for one of ours:
//
//	0   4  magic C1 6D 66 79; C1 occurs nowhere in UTF-8, nor as the first byte of MessagePack or pickle
//	4   1  version: 2 for a value; 1 for all others, and for a value that does not say when it ends: its codec's bytes are at 44
//	5   1  kind: 1 value, 2 lease, 3 tombstone, 4 session, 5 failure
//	6   1  flags: 1 negative, 2 compressed, 4 a session with a life of its own
//	7   1  zero
//	8   4  length of the whole record
//	12 12  ID: of the fill, of the lease or of the tombstone
//	24  4  hash of the codec's format     from here on: values only
//	28  4  cost: how long the load took, in microseconds
//	32  6  fresh: how long the value is fresh, in milliseconds
//	38  6  window: how long it may be served stale after that, in milliseconds
//	44  6  ends: when fresh and window are over by the clock of its Redis, in milliseconds since 1970; zero: not known
//	50     the codec's bytes
//
// A session, which lives as long as it is used, has this from 24 on instead:
//
//	24  4  hash of the codec's format
//	28  6  end: a time that no use extends, in milliseconds since 1970; zero: none
//	34     the codec's bytes
//
// A session with a life of its own has, between its end and the codec's bytes:
//
//	40  6  how old it may become, in milliseconds; zero: as other sessions
//	46     the codec's bytes
//
// A failure ends with text that says why the load failed; its ID is that of the load's lease. An empty text means that the load was given
// up. A lease may end with a failure too: the ID of the latest load that failed or was given up, and the text.
//
// Numbers are big-endian. The package defines what the bytes mean, never when to write them.
package record

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// Kind says what bytes are.
type Kind uint8

const (
	Plain     Kind = iota // not a record: a value that another program wrote
	Value                 // a value of ours, or a remembered miss
	Lease                 // somebody is loading the value
	Tombstone             // deleted; for a while nothing may be stored
	Session               // a value that lives as long as it is used
	Failure               // the latest load failed
	Alien                 // a record that is damaged or of a version this program does not know: load anew
)

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

var kinds = [...]string{"plain", "value", "lease", "tombstone", "session", "failure", "alien"}

// Flags say what is special about a value.
type Flags uint8

const (
	Negative   Flags = 1 << iota // no value: the origin was asked and has none
	Compressed                   // the codec's bytes are compressed
	OwnLife                      // a session with room for a life of its own

	known = Negative | Compressed // of a value
)

// ID tells one fill, lease, tombstone or write of a session from every other, so that a command that was sent again because its reply was
// lost recognizes its own work. The writer draws it at random.
type ID [12]byte

// NewID draws an ID. 96 random bits do not collide by chance.
func NewID() (id ID) {
	rand.Read(id[:]) // never fails
	return id
}

// Header is what a value's record says besides the value. A plain value has the zero Header.
type Header struct {
	ID     ID
	Flags  Flags
	Format uint32 // FormatOf the codec that wrote the value

	// Cost is how long the load took; zero if it was not timed. It is kept to the microsecond, up to 71 minutes.
	Cost time.Duration

	// Fresh and Window add up to the TTL that the record was written with. They are kept to the millisecond, up to 8,900 years.
	Fresh, Window time.Duration

	// Ends is when that TTL is over, in milliseconds since 1970 by the clock of the Redis that keeps the record; zero if that was not
	// known. PTTL is the truth: another program may have changed the TTL since.
	Ends int64
}

const (
	magic        = "\xc1mfy"
	version      = 1
	valueVersion = 2 // with its end; version 1 will always be readable

	// HeadLen is the length of the part of a record that tells it from every other. It ends with the ID.
	HeadLen = 24

	// EndsFrom and EndsTo are where a value's record has its end, for scripts.
	EndsFrom = 44
	EndsTo   = 50

	maxMillis = 1<<48 - 1
)

// versionOf returns the version that records of a kind are written in.
func versionOf(k Kind) byte {
	if k == Value {
		return valueVersion
	}
	return version
}

// reads reports whether this package reads records of kind k and version v.
func reads(v byte, k Kind) bool { return v == versionOf(k) || v == version }

// SetEnds writes the end of its value into rec, which was made by [Begin] and [Seal], and changes nothing else. It leaves other bytes
// alone.
func SetEnds(rec []byte, ends int64) {
	if k, _, _ := Parse(rec); k == Value && rec[4] == valueVersion && ends <= maxMillis {
		appendUint48(rec[:EndsFrom], clamp(ends, maxMillis))
	}
}

// FormatOf returns the hash of a codec's format, as records store it.
func FormatOf(format string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(format))
	return h.Sum32()
}

// Begin appends the header of a value to dst. The caller then appends the codec's bytes and calls [Seal].
func Begin(dst []byte, h Header) []byte {
	dst = appendHead(dst, Value, h.Flags, h.ID)
	dst = binary.BigEndian.AppendUint32(dst, h.Format)
	dst = binary.BigEndian.AppendUint32(dst, uint32(clamp(h.Cost.Microseconds(), math.MaxUint32)))
	dst = appendUint48(dst, clamp(h.Fresh.Milliseconds(), maxMillis))
	dst = appendUint48(dst, clamp(h.Window.Milliseconds(), maxMillis))
	return appendUint48(dst, clamp(h.Ends, maxMillis))
}

// SessionLen is the length of a session's header, and EndAt the position of its end in it. OwnLifeLen is the length with room for a life of
// its own.
const (
	SessionLen = 34
	EndAt      = 28
	OwnLifeLen = 46
)

// BeginSession appends the header of a session without an end to dst. The caller then appends the codec's bytes and calls [Seal].
func BeginSession(dst []byte, id ID, format uint32) []byte {
	dst = appendHead(dst, Session, 0, id)
	dst = binary.BigEndian.AppendUint32(dst, format)
	return appendUint48(dst, 0)
}

// BeginOwnLife is BeginSession for a session with room for a life of its own: how much longer each use lets it live, and how old it may
// become.
func BeginOwnLife(dst []byte, id ID, format uint32, ttl, maxAge time.Duration) []byte {
	dst = appendHead(dst, Session, OwnLife, id)
	dst = binary.BigEndian.AppendUint32(dst, format)
	dst = appendUint48(dst, 0)
	dst = appendUint48(dst, clamp(ttl.Milliseconds(), maxMillis))
	return appendUint48(dst, clamp(maxAge.Milliseconds(), maxMillis))
}

// Seal writes the length of rec into rec, which starts with [Begin], [BeginSession] or [BeginOwnLife] and ends with the codec's last byte.
// It reports whether rec is short enough to be stored: Redis takes values of up to 512 MB.
func Seal(rec []byte) bool {
	if len(rec) > MaxLen {
		return false
	}
	binary.BigEndian.PutUint32(rec[8:], uint32(len(rec)))
	return true
}

// MaxLen is the length of the longest value that Redis takes, header included.
const MaxLen = 512 << 20

// AppendLease appends a lease with this token.
func AppendLease(dst []byte, token ID) []byte { return appendShort(dst, Lease, token) }

// AppendTombstone appends a tombstone.
func AppendTombstone(dst []byte, id ID) []byte { return appendShort(dst, Tombstone, id) }

func appendShort(dst []byte, k Kind, id ID) []byte {
	start := len(dst)
	dst = appendHead(dst, k, 0, id)
	Seal(dst[start:])
	return dst
}

func appendHead(dst []byte, k Kind, f Flags, id ID) []byte {
	dst = append(dst, magic...)
	dst = append(dst, versionOf(k), byte(k), byte(f), 0, 0, 0, 0, 0)
	return append(dst, id[:]...)
}

// Parse returns the kind, the header and the body of b. Header and body are valid for a Value. A Lease and a Tombstone have only the header's ID, and
// a Session only the ID and the Format. The body of Plain is b itself; that of a Failure or a Lease is for [FailureOf]. The body is a part of b, not
// a copy. Parse never fails: what it cannot read is Alien, and should be replaced.
func Parse(b []byte) (k Kind, h Header, body []byte) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return Plain, Header{}, b
	}
	if len(b) < HeadLen || !reads(b[4], Kind(b[5])) || b[7] != 0 || uint64(binary.BigEndian.Uint32(b[8:])) != uint64(len(b)) {
		return Alien, Header{}, nil
	}
	k, h.Flags = Kind(b[5]), Flags(b[6])
	h.ID = ID(b[12:HeadLen])
	switch {
	case (k == Lease || k == Tombstone) && len(b) == HeadLen && h.Flags == 0:
		return k, h, nil
	case k == Failure && h.Flags == 0, k == Lease && len(b) >= HeadLen+len(h.ID) && h.Flags == 0:
		return k, h, b[HeadLen:]
	case k == Session && len(b) >= SessionLen && h.Flags == 0:
		h.Format = binary.BigEndian.Uint32(b[24:])
		return k, h, b[SessionLen:]
	case k == Session && len(b) >= OwnLifeLen && h.Flags == OwnLife:
		h.Format = binary.BigEndian.Uint32(b[24:])
		return k, h, b[OwnLifeLen:]
	case k == Value && len(b) >= EndsFrom && h.Flags&^known == 0:
		body = b[EndsFrom:]
		if b[4] == valueVersion {
			if len(b) < EndsTo {
				break
			}
			h.Ends, body = int64(uint48(b[EndsFrom:])), b[EndsTo:]
		}
		h.Format = binary.BigEndian.Uint32(b[24:])
		h.Cost = time.Duration(binary.BigEndian.Uint32(b[28:])) * time.Microsecond
		h.Fresh = millis(b[32:])
		h.Window = millis(b[38:])
		return Value, h, body
	}
	return Alien, Header{}, nil
}

func clamp(n, high int64) uint64 { return uint64(min(max(n, 0), high)) }

func appendUint48(dst []byte, n uint64) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(n>>32))
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

func uint48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// millis reads 48 bits of milliseconds. More than a Duration can hold becomes the longest Duration.
func millis(b []byte) time.Duration {
	return time.Duration(min(uint48(b), math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}
