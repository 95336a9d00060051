package checks

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var play = flag.Bool("mutants", false, "build and test every mutant")

// within is how soon a mutant must be caught after it was built.
const within = 60 * time.Second

// mutants break the protocol of the cache on purpose, one rule at a time, to show that a test notices:
//
//	make mutants
//
// Each replaces one piece of one file, through go's -overlay: the tree is not touched. Without the flag the test only checks that each piece
// still occurs exactly once, so that the list does not rot.
var mutants = []struct {
	name     string
	file     string
	old, new string
	test     string // the test that catches it, in file's package or in the one named before a colon; and its flags
}{
	{"a fill without compare-and-set", "internal/client/lease/script.go",
		"if v and #v == tonumber(ARGV[2]) and string.sub(v, 1, #ARGV[1]) == ARGV[1] then", "if true then",
		"TestProtocol/redistest"},
	{"a fill of a value that tells its end, without compare-and-set", "internal/client/lease/script.go",
		"if v and string.sub(v, 1, #ARGV[1]) == ARGV[1] and #v == tonumber(ARGV[2]) then", "if true then",
		"cacheaside: TestBackends/redistest/a_Get_after_Delete"},
	{"a HEAD whose Last-Modified proves that a page is the current one", "internal/rfc9111/update.go",
		"return tag != \"\" && strong(tag), false", "_ = tag; return true, false",
		"httpcache: TestAHeadWithoutAStrongTagFreshensNothing"},
	{"a page for one client that a HEAD of another frees", "httpcache/unchanged.go",
		"if same && stored.policy.Reusable() {", "if same {",
		"httpcache: TestAHeadGivesNobodyAnothersPage"},
	{"a Content-Type that is guessed although a handler around the cache set it", "httpcache/forward.go",
		"&& !out.typed {", "{",
		"TestATypeSetAroundTheCacheIsNotGuessed"},
	{"a page that is stored although a handler around the cache forbade it", "httpcache/capture.go",
		"		c.keepNoMore(errForbidden)\n", "",
		"TestForbiddenAroundTheCache"},
	{"a page that loses the tags of its body", "httpcache/unchanged.go",
		"r.tags = append(r.tags, stored.tags...)", "_ = stored.tags",
		"httpcache: TestAPageKeepsTheTagsOfItsBody"},
	{"a session's cookie that is lost when the cache answers after an interim answer", "httpcache/forward.go",
		"a.exchange.w = a.out.next()\n", "",
		"TestFieldsSetAtAnInterimAnswerThatTheCacheEnds"},
	{"memory of a page is lent again while a writer that failed may still send it", "httpcache/answer.go",
		"done = n == len(body) && err == nil", "_, _ = n, err",
		"TestAWriterThatFailedKeepsItsPage"},
	{"a call after a failed Delete joins one that has asked Redis before", "cacheaside/get.go",
		"	if l.apart {", "	if l.apart && l.seen.due {",
		"TestAGetAfterAFailedDeleteJoinsNoOlderCall"},
	{"a renewal has the value that a caller may change", "cacheaside/freshness.go",
		"		body = bytes.Clone(body)\n", "		body = append(body[:0:len(body)], bytes.TrimPrefix(body, nil)...)\n",
		"TestACallerMayChangeWhatCameFromRedis"},
	{"the renewal of a copy has bytes that the codec has changed", "cacheaside/load.go",
		"l.draw, l.copied != nil)", "l.draw, false)",
		"TestTheRenewalOfACopyIsShownWhatRedisHas"},
	{"what is still right is what the loader was shown", "cacheaside/load.go",
		"		answer.Value = v\n", "		_ = v\n		answer.Value = l.seen.entry.Value\n",
		"TestACallerMayChangeWhatCameFromRedis"},
	{"Rotate stores what a codec has decoded in place", "sliding/rotate.go",
		"s.decode(slices.Clone(raw))", "s.decode(slices.Clip(raw))",
		"TestACodecThatDecodesInPlace"},
	{"those who share a load share its value", "internal/client/flight/flight.go",
		"f.early, f.shared = value, err, early, f.waiting > 1", "f.early, f.shared = value, err, early, f.waiting > 99",
		"cacheaside: TestThoseWhoShareALoadGetCopies"},
	{"failed removals that are too many for one trip are repeated for ever", "internal/client/redelete/redelete.go",
		"*some, tooMany = max(n/2, 1), true", "*some, tooMany = n, true",
		"TestAsManyAtOnceAsCanBeDone"},
	{"the claims of a list's absent keys end one by one", "cacheaside/fill.go",
		"	c.end(ctx, s.ends)", "	for i := range s.ends {\n\t\tc.end(ctx, s.ends[i:i+1])\n\t}",
		"TestWhatIsNotStoredCostsOneTrip"},
	{"a file whose end a crash tore off must be the last one", "internal/redis/journal/replay.go",
		"if info, err := os.Stat(filepath.Join(j.dir, names[i])); err != nil || info.Size() > 0 {", "if true {",
		"TestACrashBeforeTheOldFileIsComplete"},
	{"the writer's memory is what is recorded into next", "internal/redis/journal/journal.go",
		"	j.spare = nil // it is", "	// it is",
		"TestWhatIsBeingWrittenIsNotOverwritten"},
	{"the end of a file is judged by its looks alone", "internal/redis/journal/scan.go",
		"!torn || begun {", "!torn {",
		"TestATornValueThatEndsInWholeWrites"},
	{"an old note explains what somebody else has written", "internal/redis/journal/intent.go",
		"i.from <= at && size < i.to", "i.from <= at",
		"TestATornValueThatEndsInWholeWrites"},
	{"a file may be torn although a newer one has data", "internal/redis/journal/replay.go",
		"if info, err := os.Stat(filepath.Join(j.dir, names[i])); err != nil || info.Size() > 0 {", "if false {",
		"TestACrashBeforeTheOldFileIsComplete"},
	{"a fill without a TTL", "internal/client/lease/script.go",
		"	redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])", "	redis.call('SET', KEYS[1], ARGV[3])",
		"TestProtocol/redistest"},
	{"a release without compare", "internal/client/lease/script.go",
		"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end", "if true then return redis.call('DEL', KEYS[1]) end",
		"TestProtocol/redistest"},
	{"a heart beat without compare", "internal/client/lease/script.go",
		"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end", "if true then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end",
		"TestProtocol/redistest"},
	{"tokens that are not unique", "internal/client/record/record.go",
		"rand.Read(id[:]) // never fails", "_ = rand.Reader",
		"internal/client/lease: TestProtocol/redistest"},
	{"a claim that go-redis repeats", "internal/client/lease/claim.go",
		"lost := node.AskOnce(ctx, cmds...)", "lost := node.Ask(ctx, cmds...)",
		"TestTheWholeWayOfALateClaim"},
	{"a claim that is asked again with the same token", "internal/client/lease/claim.go",
		"second[n] = g.newClaim(wants[i])", "second[n] = claims[i]",
		"TestTheWholeWayOfALateClaim"},
	{"a claim whose lost reply hides that it was done", "internal/client/lease/claim.go",
		"string(a.Lease) == string(answers[i].Claim.token)", "len(a.Lease) == 1",
		"TestAClaimWhoseReplyWasLostIsAskedAgain"},
	{"a Set that go-redis repeats", "internal/client/lease/write.go",
		"(*nodes.Node).AskOnce, func(ctx context.Context, node *nodes.Node, i int)", "(*nodes.Node).Ask, func(ctx context.Context, node *nodes.Node, i int)",
		"TestASetIsSentOnce"},
	{"a plain renewal that compares bytes only", "internal/client/lease/fill.go",
		"return fillPlain.Call([]string{lock.lock, c.key}", "if c.renew {\n\t\t\treturn c.seen.swap(c.key, f.Value, f.TTL)\n\t\t}\n\t\treturn fillPlain.Call([]string{lock.lock, c.key}",
		"TestAPlainRenewalEndsWithADelete"},
	{"waiting for a lease that cannot end", "internal/client/lease/acquire.go",
		"h.dead = time.Since(h.since) > 3*Beat", "h.dead = false",
		"TestALeaseThatCannotEndIsTakenOver"},
	{"a late caller gets a value that was not stored", "cacheaside/load.go",
		"if kept || got.err", "if true || got.err",
		"TestAGetAfterDeleteJoinsNoOlderLoad"},
	{"a list that comes too late is loaded key by key", "cacheaside/many.go",
		"keys = c.getSome(ctx, keys, began, begun, keep)", "more := c.getSome(ctx, keys[:1], began, begun, keep)\n\t\tkeys = append(more, keys[1:]...)",
		"TestAListThatComesTooLateIsLoadedByOneMoreCall"},
	{"a list's wish for a key counts as much as a Get's", "cacheaside/many.go",
		"c.lead(ctx, l, len(waiting))", "c.lead(ctx, l, 1)",
		"TestListsThatOverlapHoldUpNoGet"},
	{"reads of a list that fail are not counted", "cacheaside/many.go",
		"l.tellEnd(ctx, e.Outcome, begun, err)", "if err == nil {\n\t\t\tl.tellEnd(ctx, e.Outcome, begun, err)\n\t\t}",
		"TestStatsCountReadsThatFail"},
	{"reads that fail before Redis was asked are not counted", "cacheaside/many.go",
		"c.tellFailed(ctx, l.full, call, ctx.Err())", "_ = call",
		"TestStatsCountReadsThatFail"},
	{"what Hold keeps from being stored is loaded key by key", "cacheaside/flymany.go",
		"case l.unstorable():", "case l.found.State == lease.Held:\n\t\t\tgroup.Go(func() { l.fly(ctx) })\n\t\tcase l.alone:",
		"TestAListIsOneCallWhileHoldLasts"},
	{"a list does not wait for an overdue load", "cacheaside/flymany.go",
		"case ended != nil:", "case ended != nil && l == nil:",
		"TestAListWaitsForAnOverdueLoad"},
	{"a list that another process loads is waited for key by key", "cacheaside/flymany.go",
		"if len(ls) < 2 {", "if true {",
		"TestAListThatAnotherProcessLoads"},
	{"waits for many keys end all at the first one's time", "internal/client/lease/waitmany.go",
		"case w.Wait.Err() != nil:", "case w.Wait.Err() != nil && i == 0:",
		"TestWaitsForManyLoads"},
	{"a wait for many keys hears of no change", "internal/client/lease/waitmany.go",
		"changed, stop = pushed, end", "stop = end",
		"TestAPushWakesAWaiterForMany"},
	{"a list makes no progress by what others store", "cacheaside/flymany.go",
		"brought = len(loads)+len(lost) < len(some)", "brought = false && len(lost) < len(some)",
		"TestAListThatOthersLoadGoesOn"},
	{"what cannot be stored stands in the queue key by key", "cacheaside/flymany.go",
		"free, alone = append(free, alone...), nil", "for _, l := range alone {\n\t\t\tgroup.Go(func() { l.fly(ctx) })\n\t\t}\n\t\talone = nil",
		"TestAListThatCannotBeStoredIsWorkedThrough"},
	{"a caller joins a flight that is being stored", "cacheaside/fill.go",
		"l.flight.Stores()", "_ = l.flight",
		"TestAGetAfterDeleteDoesNotJoinAFillThatWasSent"},
	{"a clock that was set back gives a value more time", "cacheaside/freshness.go",
		"const clockSlack = time.Second", "const clockSlack = time.Hour",
		"TestAClockThatIsSetBackGivesNoValueMoreTime"},
	{"a purge by tag that misses late callers", "httpcache/store.go",
		"late && c.stands(ctx, s, r)", "late",
		"TestARequestAfterPurgeJoinsNoOlderOne"},
	{"waiters get a shared answer without a check", "httpcache/sharing.go",
		"r.policy.Decide(x.q, r.policy.Received) != rfc9111.Revalidate", "true",
		"TestAWaiterMayDemandMore"},
	{"a crowd waits for an answer that must be revalidated", "httpcache/sharing.go",
		"(stored == nil || stored.policy.Reusable()) &&", "true &&",
		"TestAnAnswerThatMustBeValidatedIsNotShared"},
	{"an answer that was never fresh is served after a failure", "internal/rfc9111/judge.go",
		"if p.Lifetime > 0 { // else only its own", "if true { // what was never fresh",
		"httpcache: TestWhatWasNeverFreshIsNotServedStale"},
	{"the handler edits the request that the cache judges by", "httpcache/forward.go",
		"theirs.Header = r.Header.Clone()", "theirs.Header = r.Header",
		"TestAHandlerMayChangeItsRequest"},
	{"mounts share their entries", "httpcache/lookup.go",
		"(says.Inner == \"\" || byInner(r.fields))", "true",
		"TestTenantsDoNotMerge"},
	{"clients that never read take unlimited memory", "httpcache/inflight.go",
		"if h.of.used+n > h.of.most {", "if false {",
		"TestClientsThatNeverRead"},
	{"other processes wait for a body that they cannot use", "httpcache/forward.go",
		"a.fill.stop()\n\tpassed := make", "if true {\n\t\treturn\n\t}\n\tpassed := make",
		"TestOtherProcessesHearTheHeader"},
	{"an answer purged after its header is stored", "httpcache/store.go",
		"fill.passed == nil || s.found.State == lease.Present", "true",
		"TestWhatMustBeValidatedIsStoredInTheEnd"},
	{"a closed cache keeps what its handlers hold", "httpcache/httpcache.go",
		"c.abandon()", "",
		"TestCloseHandsBackWhatHandlersHold"},
	{"a circle of pages is not detected", "httpcache/circle.go",
		"if w.holdsUp(inside, on) {", "if false {",
		"TestPagesThatShowEachOther"},
	{"by chance: waiters get a shared answer without a check", "httpcache/sharing.go",
		"r.policy.Decide(x.q, r.policy.Received) != rfc9111.Revalidate", "true",
		"TestNobodyGetsAnothersPage$"},
	{"by chance: an answer that was never fresh is served after a failure", "internal/rfc9111/judge.go",
		"if p.Lifetime > 0 { // else only its own", "if true { // what was never fresh",
		"httpcache: TestNobodyGetsAnothersPage$"},
	{"by chance: the handler edits the request that the cache judges by", "httpcache/forward.go",
		"theirs.Header = r.Header.Clone()", "theirs.Header = r.Header",
		"TestNobodyGetsAnothersPage$"},
	{"a barrier that is lowered", "httpcache/tags.go",
		"c.guard.Raise(ctx, values)", "c.guard.Set(ctx, values)",
		"TestABarrierIsNotLowered"},
	{"a barrier with the purger's own life", "httpcache/tags.go",
		"rec, TTL: drawn.Left}", "rec, TTL: c.life()}",
		"TestATagPurgeOutlivesPagesOfAnotherTTL$"},
	{"a lock named by the key only", "internal/client/lease/names.go",
		"hex.EncodeToString(fill)", "hex.EncodeToString(nil)",
		"TestLocksOfTwoFillsDiffer"},
	{"a renewal without lock", "internal/client/lease/claim.go",
		"answers[i] = c.answer(sets[n], lost)", "if answers[i] = (Claimed{Claim: c}); !c.renew { answers[i] = c.answer(sets[n], lost) }",
		"TestProtocol/redistest"},
	{"Hold is ignored", "internal/client/lease/write.go",
		"	if g.hold > 0 {\n		calls", "	if g.hold < 0 {\n		calls",
		"cacheaside: TestBackends/redistest/Hold"},
	{"Delete leaves the stale copy", "internal/client/lease/write.go",
		`		return []redis.Cmder{redis.NewIntCmd(ctx, "del", keys[i])}`, `		return []redis.Cmder{redis.NewIntCmd(ctx, "exists", keys[i])}`,
		"cacheaside: TestBackends/redistest/Delete_kills"},
	{"waiters for a plain value do not see its lease", "internal/client/lease/wait.go",
		"if !g.plain {", "if true {",
		"cacheaside: TestWaitersForAPlainValueAskGently"},
	{"a flight is not forgotten", "cacheaside/write.go",
		"c.flights.Forget(full)", "_ = full",
		"TestBackends/redistest/a_Get_after_Delete"},
	{"a failed Delete is forgotten", "cacheaside/write.go",
		"	c.deleteLater(ctx, err, again...)", "	_ = again",
		"TestWhatWritesReturn"},
	{"an absence is kept as a value", "cacheaside/entry.go",
		"Flags: record.Negative, ", "",
		"TestBackends/redistest/an_absence"},
	{"another codec's bytes are read", "cacheaside/freshness.go",
		"h.Format != c.format", "h.Format == c.format+1",
		"TestBackends/redistest/what_cannot_be_read"},
	{"the window counts as fresh", "cacheaside/freshness.go",
		"s.entry.Fresh = f.Left - h.Window", "s.entry.Fresh = f.Left",
		"TestBackends/redistest/stale"},
	{"no heart beat", "cacheaside/supervise.go",
		"c.guard.KeepMany(ctx, w.claims)", "_ = w.claims",
		"TestWaitersHaveItSoonAfterTheLoad"},
	{"a value that ends also ends its renewal", "cacheaside/supervise.go",
		"heirs.inherit(ctx, time.Now())\n", "_ = heirs\n",
		"TestAValueEndsWhileItIsRenewed"},
	{"a value that ends also ends its renewal, if that has overrun its time", "cacheaside/overdue.go",
		"heirs.inherit(ctx, time.Now())\n", "_ = heirs\n",
		"TestOneLoadAtATimeOfASlowOrigin"},
	{"a renewal that has overrun its time leaves a tombstone where its value was", "internal/client/lease/claim.go",
		"token = overrun(c.id, c.why)", "_ = overrun",
		"cacheaside: TestOneLoadAtATimeOfASlowOrigin"},
	{"a codec that exits keeps all waiting", "cacheaside/load.go",
		"defer l.fail(flight.ErrGoexit)", "_ = flight.ErrGoexit",
		"TestCodeThatExitsItsGoroutineKeepsNobodyWaiting"},
	{"a codec that exits loses what was loaded", "cacheaside/fill.go",
		"if l.land(&got[i], kept[i]); !ready {", "if !ready { continue }; if l.land(&got[i], kept[i]); !ready {",
		"TestCodeThatExitsItsGoroutineKeepsNobodyWaiting"},
	{"a list whose call ends before its loads", "cacheaside/many.go",
		"if !started {", "if false && !started {",
		"TestACallThatEndsBeforeItsLoadsHoldsUpNobody"},
	{"a live holder is waited for as long as a dead one", "internal/client/lease/acquire.go",
		"h.lives.Add(-TTL).After(h.want.Until)", "false && h.lives.Add(-TTL).After(h.want.Until)",
		"cacheaside: TestALiveHolderIsWaitedForAboutLoadTimeout"},
	{"a holder that has died just before is taken for a live one", "internal/client/lease/acquire.go",
		"h.lives.Add(-TTL).After(h.want.Until)", "h.lives.After(h.want.Until)",
		"cacheaside: TestAHolderThatDiesLeadsToOneLoadAtATime"},
	{"a Delete with less Hold shortens a longer one", "internal/client/lease/script.go",
		"ms = math.max(ms, redis.call('PTTL', k))", "ms = ms",
		"cacheaside: TestBackends/redistest/Hold_is_not_shortened"},
	{"Clear removes tombstones", "internal/client/lease/script.go",
		"string.sub(v, 1, 12) == string.sub(like, 1, 12) then return 0 end", "false then return 0 end",
		"cacheaside: TestBackends/redistest/Hold_is_not_shortened"},
	{"a caller that leaves ends the load", "internal/client/background/background.go",
		"context.WithCancelCause(context.WithoutCancel(ctx))", "context.WithCancelCause(ctx)",
		"cacheaside: TestBackends/redistest/who_leaves"},
	{"a breaker that never opens", "internal/client/nodes/breaker.go",
		"b.failures.Add(int32(n)) >= Threshold", "b.failures.Add(1) >= 1<<30",
		"cacheaside: TestRedisIsGoneInTime/hung,_CacheClient"},
	{"a breaker that opens without releasing waiters", "internal/client/nodes/breaker.go",
		"n.line.Dismiss(ErrOpen)", "_ = n.line",
		"TestASilentServerCostsTheBudget"},
	{"a read that joins one that was sent", "internal/client/turns/line.go",
		"delete(l.unsent, r.Question)", "_ = r.Question",
		"TestModel"},
	{"callers that share their bytes", "internal/client/turns/line.go",
		"c.answer.Raw = bytes.Clone(r.Raw)", "_ = bytes.Clone(nil)",
		"TestModel"},
	{"waiting for other callers counts as the server's time", "internal/client/turns/turns.go",
		"max(instant(since), g.heard.Load())", "instant(since)",
		"internal/client/nodes: TestACrowdThatDoesNotEnd"},
	{"a flight that lands late takes down its successor", "internal/client/flight/flight.go",
		"if f.group.flights[f.key] == f {", "if f.group.flights[f.key] != nil {",
		"internal/client: TestAForgottenFlightLandsForItsOwnAndLeavesItsSuccessor"},
	{"no ticket", "internal/client/localstore/ticket.go",
		"return v.store.Ticket(key) == t", "return true",
		"TestTickets"},
	{"a change that does not void the tickets", "internal/client/localstore/ticket.go",
		"s.changes[maphash.String(s.seed, key)%stripes].Add(1)", "_ = s.seed",
		"internal/client/localsync: TestACopyIsNotOlder"},
	{"a ticket that is drawn after the read", "cacheaside/get.go",
		"c.keepCopy(full, ticket,", "_ = ticket; c.keepCopy(full, c.local.Begin(full),",
		"TestWhatChangedWhileItWasRead"},
	{"a copy is kept for all of Redis's time, not for what was left of it", "cacheaside/copies.go",
		"heldCost+int64(size), left)", "heldCost+int64(size), f.Header.Fresh)",
		"TestACopyLivesForTheTimeLeft"},
	{"a copy's end counts from its insertion", "internal/client/localsync/lifetime.go",
		"end := min(k.End(left), k.at+k.most-1)", "end := min(t.Now()+left.Milliseconds()-1, k.at+k.most-1)",
		"TestACopyEndsBeforeTheOriginal"},
	{"in histories: a claim that go-redis repeats", "internal/client/lease/claim.go",
		"lost := node.AskOnce(ctx, cmds...)", "lost := node.Ask(ctx, cmds...)",
		"trials/histories: TestCacheaside/(default|renewed),_double -for 40s"},
	{"in histories: a claim that is asked again with the same token", "internal/client/lease/claim.go",
		"second[n] = g.newClaim(wants[i])", "second[n] = claims[i]",
		"trials/histories: TestCacheaside/(default|renewed),_double -for 40s"},
	{"in histories: a late caller gets a value that was not stored", "cacheaside/load.go",
		"if kept || got.err", "if true || got.err",
		"trials/histories: TestCacheaside/(default|renewed),_double -for 5s"},
	{"in histories: a caller joins a flight that is being stored", "cacheaside/fill.go",
		"l.flight.Stores()", "_ = l.flight",
		"trials/histories: TestCacheaside/(default|renewed),_double -for 40s"},
	{"in histories: a Set that go-redis repeats", "internal/client/lease/write.go",
		"(*nodes.Node).AskOnce, func(ctx context.Context, node *nodes.Node, i int)", "(*nodes.Node).Ask, func(ctx context.Context, node *nodes.Node, i int)",
		"trials/histories: TestCacheaside/(default|renewed),_double -for 5s"},
	{"in histories: a purge by tag that misses late callers", "httpcache/store.go",
		"late && c.stands(ctx, s, r)", "late",
		"trials/histories: TestHTTPCache/(one|renewed).*_double -for 40s"},
	{"in histories: a barrier that is lowered", "httpcache/tags.go",
		"c.guard.Raise(ctx, values)", "c.guard.Set(ctx, values)",
		"trials/histories: TestHTTPCache/(one|renewed).*_double -for 40s"},
	{"a share that is not counted", "sliding/leasescript.go",
		"local take = ok and n + share or 0", "local take = ok and n or 0",
		"TestAdmittedCallsAreCounted"},
	{"a share that is used for longer than its lease", "sliding/share.go",
		"if age >= s.length {", "if age >= 2*s.length {",
		"TestAShareEndsWithItsWindow"},
	{"a share whose time counts from the answer", "sliding/trip.go",
		"s.size, s.length = size, length-length/128", "s.begun, s.size, s.length = time.Now(), size, length",
		"TestAShareEndsWithItsWindow"},
	{"a share that outlives its window", "sliding/leasescript.go",
		"local length = math.min(lease, $stays)", "local length = lease",
		"TestAShareEndsWithItsWindow"},
	{"what is unused of a share comes back twice", "sliding/leasescript.go",
		"unused, changed = math.min(unused, size), true", "unused, changed = math.min(unused, size), true\n\t\tkept[#kept + 1] = string.format('%s %d %d %d %d', id, size, stamp, stop, long)",
		"TestAGiveBackThatComesTwice"},
	{"what is unused of a share comes back to a later part", "sliding/counter.go",
		"local p = at - stamp + 1", "local p = 1",
		"TestSharesOfPartsThatWere"},
	{"what is given back was used meanwhile", "sliding/leases.go",
		"s.calls.Swap(closed)", "s.calls.Load()",
		"TestAdmittedCallsAreCounted"},
	{"one of several limits counts though another denies", "sliding/allowall.go",
		"count[i](all and calls[i] or 0)", "count[i](fit[i] and calls[i] or 0)",
		"TestAllowAll/redistest"},
	{"what one share lacked is lost to another", "sliding/allowall.go",
		"calls.Add(int64(back.n))", "calls.Add(0 * int64(back.n))",
		"TestAllowAllOfShares$"},
	{"a brief lease forgets the shares of longer ones", "sliding/leasescript.go",
		"math.abs(stop - now) <= 8 * long", "math.abs(stop - now) <= 8 * lease",
		"TestAShareBesideShorterOnes"},
	{"a refusal tells when other calls fit", "sliding/trip.go",
		"retry = l.retry(n, reply)\n\t\t\treturn", "retry = l.retry(1, reply)\n\t\t\treturn",
		"TestAWaiterIsAdmitted"},
	{"a fixed window's last millisecond is not waited for", "sliding/counter.go",
		"then left = left + 1 else", "then left = left else",
		"TestAWaiterIsAdmitted"},
	{"in histories: a write of sliding that go-redis repeats", "internal/client/sendonce/once.go",
		"func (once) NoRetry() bool { return true }", "func (once) NoRetry() bool { return false }",
		"trials/linear: TestSlidingIsLinearizable/.*double"},
	{"in histories: a write that mistakes other writes for its own", "sliding/write.go",
		"if lost == nil && bytes.Equal(headOf(there), headOf(rec)) {", "if _, _ = there, bytes.Equal; lost == nil {",
		"trials/linear: TestSlidingIsLinearizable/.*double"},
	{"in histories: an update that was done is done again", "sliding/scripts.go",
		"			return lost\n", "			return err\n",
		"trials/linear: TestSlidingIsLinearizable/.*double -for 10s"},
	{"in histories: a swap of whatever is there", "sliding/scripts.go",
		"if #v ~= tonumber(ARGV[6]) or string.sub(v, 1, #ARGV[5]) ~= ARGV[5] then return 0 end", "",
		"trials/linear: TestSlidingIsLinearizable/.*double"},
	{"judged before calibration", "internal/client/nodes/clock.go",
		"r := &reading{sent: sent, heard: now, millis: millis}", "r := &reading{sent: sent, heard: now, millis: millis, agrees: true}",
		"cacheaside: TestNothingIsJudgedBeforeTheFirstLook"},
	{"judged though records disagree", "internal/client/nodes/clock.go",
		"r.agrees = c.wary == 0 && (off >= -tooEarly.Milliseconds() || was.met && was.agrees)", "r.agrees = true",
		"cacheaside: TestTheClockIsMoved"},
	{"a record that is late is forgotten at the next look", "internal/client/nodes/clock.go",
		"c.wary = wary", "c.wary = 1",
		"TestALateRecordIsRemembered"},
	{"TIME is asked for in each script of who may not", "internal/client/lease/fill.go",
		"err == nil && node.TellsTime()", "err == nil && node != nil",
		"cacheaside: TestFillsOfAUserWithoutTIME"},
	{"judged by an old look", "internal/client/nodes/clock.go",
		"r != nil && r.agrees && now-r.sent <= int64(relied)", "r != nil && r.agrees",
		"TestALookIsGoodForTwoSeconds"},
	{"offset of another node", "internal/client/nodes/budget.go",
		"n.gate, n.clock = shared.gate, &shared.clock", "n.gate = shared.gate\n\t\tone, _ := servers.LoadOrStore(1, &server{})\n\t\tn.clock = &one.(*server).clock",
		"cacheaside: TestServersOfAClusterHaveTheirOwnClocks"},
	{"offset of the node that was asked first", "internal/client/nodes/node.go",
		"n.clock.detours.Add(1)", "_ = n.clock",
		"cacheaside: TestASlotThatWasMovedHasAnotherClock"},
	{"copy filled without PTTL", "cacheaside/copies.go",
		"left := f.Left - f.Header.Window", "left := f.Header.Fresh",
		"TestACopyLivesAsLongAsPTTLSays"},
	{"done because a record says so", "cacheaside/get.go",
		"if err == nil && c.doubts(l.found, l.draw) {", "if false {",
		"TestTheClockIsMoved"},
	{"what Redis has is not handed out when it fails", "cacheaside/freshness.go",
		"if now.Err == nil || f.Header.Window > 0 {", "if true {",
		"TestRedisFailsBetweenTwoLooks"},
	{"a second look that takes RedisTimeout again", "cacheaside/freshness.go",
		"left := c.opt.RedisTimeout - f.Spent", "left := 9*c.opt.RedisTimeout - f.Spent",
		"TestRedisFailsBetweenTwoLooks"},
	{"a second look that there is no time for", "cacheaside/freshness.go",
		"worth = left >= 2*f.Spent", "worth = true",
		"TestARedisThatIsFarAway"},
	{"glances that do not pay", "internal/client/lease/habit.go",
		"return !h.slow.Load() && h.blind.Load() < blindFrom", "return true",
		"cacheaside: TestRecordsThatTellNoEnd"},
	{"an end that may be too late", "internal/client/nodes/clock.go",
		"return r.earliest(instant(time.Now()))", "return r.latest(instant(time.Now()))",
		"TestTheTimeIsWithinBounds"},
	{"a record that says its end too late, and agrees", "internal/client/nodes/clock.go",
		"if off > tooLate.Milliseconds() {", "if off > time.Minute.Milliseconds() {",
		"TestWhichRecordsAgree"},
	{"TIME along with what was lost with it", "internal/client/nodes/clock.go",
		"return c.lost == 0 || c.proven", "return true",
		"TestAProxyThatSwallowsTIME"},
	{"records of the version before are unknown", "internal/client/record/record.go",
		"return v == versionOf(k) || v == version", "return v == versionOf(k)",
		"TestVersion1IsRead"},
	{"an own write leaves the copy", "internal/client/localsync/announce.go",
		"t.store.Invalidate(key)", "_ = key",
		"cacheaside: TestOwnWritesAreSeenAtOnce"},
	{"a refused probe proves that pushes are swallowed", "internal/client/localsync/probe.go",
		"case accepted > 0 && s.pushed.Load() == 0:", "case accepted >= 0 && s.pushed.Load() == 0:",
		"TestWritesAreRefused"},
	{"a push has no time to arrive", "internal/client/localsync/probe.go",
		"if beat > accepted {", "if beat > 0 {",
		"TestAPushThatIsLate"},
	{"a full Redis cannot be probed", "internal/client/localsync/probe.go",
		"|| longAgo(now-p.heard.Load(), probeTTL.Milliseconds()/4)", "",
		"TestRedisIsFull"},
	{"what was not acknowledged is not announced again", "internal/client/localsync/announce.go",
		"t.announcer.again(failed)", "_ = failed",
		"TestAnAnnouncementFails"},
}

func TestMutantsApply(t *testing.T) {
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %s has %d times %q, want once", m.name, m.file, n, m.old)
		}
	}
}

func TestMutantsAreCaught(t *testing.T) {
	if !*play {
		t.Skip("run it with -mutants")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir, test := filepath.Dir(m.file), m.test
			if other, its, ok := strings.Cut(m.test, ": "); ok {
				dir, test = other, its
			}
			binary := filepath.Join(t.TempDir(), "test")
			build := exec.Command("go", "test", "-c", "-overlay", overlay(t, m.file, m.old, m.new), "-o", binary, ".")
			build.Dir = filepath.Join(root, dir)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("it does not build: %.1000s", out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			test, flags, _ := strings.Cut(test, " -")
			args := []string{"-test.run", test, "-test.timeout", "55s"}
			if flags != "" {
				args = append(args, strings.Fields("-"+flags)...)
			}
			run := exec.CommandContext(ctx, binary, args...)
			run.Dir = filepath.Join(root, dir)
			if strings.HasPrefix(m.name, "by chance") { // as many tries as there are
				run.Env = append(os.Environ(), "MAYFLY_LONG=1")
			}
			begun := time.Now()
			out, err := run.CombinedOutput()
			if err == nil || ctx.Err() != nil {
				t.Fatalf("%s does not notice (%v): %.300s", test, err, out)
			}
			if strings.Contains(string(out), "no tests to run") {
				t.Fatalf("there is no %s", test)
			}
			t.Logf("caught by %s after %v", test, time.Since(begun).Round(time.Millisecond))
		})
	}
}

// overlay writes the mutated file, and the list of replacements that go build takes.
func overlay(t *testing.T, file, from, to string) string {
	t.Helper()
	dir := t.TempDir()
	original, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	mutated, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{mutated: strings.Replace(string(text), from, to, 1), list: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
