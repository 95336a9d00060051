// Package expiry knows when things end: a predicate that says whether a deadline has passed, an index that finds the entries whose deadline
// has passed without looking at the rest, and the sampling cycle that the documentation of EXPIRE describes.
//
// Deadlines are absolute unix milliseconds. Time is an argument: the package reads no clock, starts no goroutine, takes no lock and holds no
// values. Its entries are slot numbers that the owner assigns.
//
// Checking and reaping are separate. A reader calls [Dead] with a deadline that it keeps beside its value, and treats a dead entry as absent;
// it changes nothing and needs no exclusive lock. A writer calls [Index.Reap] and releases the memory:
//
//	var x expiry.Index
//	x.Set(7, now+1000)                                 // slot 7 ends in a second
//	x.Reap(now, 100, func(id uint32) { release(id) })  // up to 100 that are over
//	at, ok := x.Next()                                 // wake me then; !ok: nothing to wait for
package expiry

// None is the deadline of an entry without one.
const None int64 = 0

// Dead reports whether something with this deadline is over at now. Every check in the program uses it.
//
// A deadline is the last millisecond of a life, not the first of death: what ends at 5000 is still there when the clock shows 5000 and is
// gone at 5001. That is how readers of Redis see it, for keys and for fields of hashes (TestDeadIsWhatAReaderOfRedisSees). Redis decides
// differently in two other places:
//
//   - EXPIRE and its relatives, GETEX, HEXPIRE and HSETEX delete at once what is to end in the present millisecond
//     or earlier; SET with such a deadline does not. Those commands compare by themselves; nothing is indexed then.
//   - The active cycle of Redis 8.0 already deletes in the last millisecond, that of 7.0 does not
//     (TestTheCycleOfRedis8DeletesInTheLastMillisecond). Here reaping uses Dead as readers do, so nothing is removed
//     that could still be read.
func Dead(deadline, now int64) bool { return deadline != None && now > deadline }
