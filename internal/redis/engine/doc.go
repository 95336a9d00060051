// Package engine is Redis's commands as a state machine: the time, a session and a command go in; a reply comes out, byte for byte that of
// Redis 8.0.2. The engine has no network, files, goroutines, locks or clock. internal/redis/server supplies the bytes and the time.
//
// # How a command runs
//
//	server: now, session, args --> Engine.Do
//	  turn      (dispatch.go)   CLIENT REPLY, pushes to the caller itself
//	  process   (dispatch.go)   checks in Redis's order: known? arity? password? transaction? memory?    refused: reject
//	  run       (dispatch.go)   a call, the handler, then tracking and recording
//	    handler (a family's file)   parse, guard, act:
//	      read, write, peek, readAs   (call.go)      find the key; a dead one is removed on the way: lazy expiry
//	      add, set, remove, rearm ... (db.go)        the only verbs that change a keyspace
//	      notify, changed             (notify.go, watch.go)  keyspace events; watchers, tracking
//	  serveReady (blocking.go)      serves the sessions blocked on what this command made
//	--> reply in Session.Out, Outcome; other sessions whose Out grew: Engine.Dirty
//
// [Engine.Tick] does what is due without a command: it reaps dead keys and fields by the index of deadlines, and ends waits.
// [Engine.NextWake] says when to call it. The data structures are in package values, which knows nothing of replies; package expiry keeps the
// deadlines.
//
// A command reads the clock once: Engine.now stands still during transactions and scripts as well.
//
// # How to add a command
//
//  1. Put a row into the table slice of its family (stringCommands in strings.go ...): name, arity, flags and categories as
//     COMMAND INFO of Redis 8.0 prints them, key positions, handler.
//  2. Write the handler, func(c *call). Parse and check the arguments first, in Redis's order, since the first error wins: after c.fail
//     nothing more is replied or looked up, so check c.failed once, before the first change. Options: c.options.
//  3. Find the key: c.read or c.peek for reading, c.write for changing, or readAs and writeAs for a value of a family.
//     Answer WRONGTYPE before you change anything.
//  4. Change the value in place, or with c.add, c.set, c.remove. After a hash's deadlines changed: c.rearm.
//  5. In this order: c.wrote(key, n, class, event) if it changed; c.removeIfEmpty; the reply by c.out.
//  6. Args alias the connection's buffer: copy what you keep. Nothing of call survives the handler.
//  7. A relative time or a random choice is recorded as its result: c.rewrite.
//  8. A blocking command calls c.park when there is nothing to do; the handler then runs again by itself.
//  9. Error texts are in errors.go and sent with c.fail.
//  10. Test it with lines of command and reply (play, in play_test.go), and add it to its family's draws (draws_*_test.go), which are
//     played on the engine and on a real Redis side by side. The rules of expiry are testdata/expire-rules.md.
package engine
