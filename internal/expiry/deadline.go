// Package expiry knows when things end: one predicate that says whether a deadline has passed, an index that
// finds what has passed without looking at the rest, and the sampling cycle that the documentation of EXPIRE describes.
//
// Deadlines are absolute unix milliseconds. Time is an argument: the package reads no clock, starts no goroutine,
// takes no lock and holds no value. It knows its entries only as slot numbers that the owner hands out.
//
// Asking and reaping are separate. A reader asks [Dead] about a deadline that it keeps beside its value, and treats a
// dead entry as absent; it changes nothing and needs no exclusive lock. Whoever may write calls [Index.Reap]
// and gives the memory back:
//
//	var x expiry.Index
//	x.Set(7, now+1000)                                 // slot 7 ends in a second
//	x.Reap(now, 100, func(id uint32) { release(id) })  // up to 100 that are over
//	at, ok := x.Next()                                 // wake me then; !ok: nothing to wait for
package expiry

// None is the deadline of what has none.
const None int64 = 0

// Dead reports whether something with this deadline is over at now. It is the only such question in the program.
//
// A deadline is the last millisecond of a life, not the first of death: what ends at 5000 is still there when the
// clock shows 5000 and is gone at 5001. So does a reader of Redis see it, for keys and for fields of hashes
// (TestDeadIsWhatAReaderOfRedisSees). Redis asks differently in two other places:
//
//   - EXPIRE and its kin, GETEX, HEXPIRE and HSETEX delete at once what they are told to end in this very millisecond
//     or earlier; SET with such a deadline does not. That is for those commands to compare; nothing is indexed then.
//   - The active cycle of Redis 8.0 deletes in the last millisecond already, that of 7.0 does not
//     (TestTheCycleOfRedis8DeletesInTheLastMillisecond). Here reaping asks Dead as readers do, so nothing is gone
//     that could still be read.
func Dead(deadline, now int64) bool { return deadline != None && now > deadline }
