package engine

import "testing"

func TestScoresAreWrittenAsRedisWritesThem(t *testing.T) {
	play(t, Options{}, `
		ZADD z 0.1 a 1e17 b 1e22 c -inf d inf e 3.0 f 1e-7 g 123456789012345678 h -0 i 196552962118081.375 j  :10
		ZMSCORE z a b c d e f g h i j          ["0.1", "100000000000000000", "1e+22", "-inf", "inf", "3", "1e-7", "123456789012345680", "0", "196552962118081.37"]
		ZSCAN z 0 MATCH [adi]                  ["0", ["d", "-inf", "i", "0", "a", "0.1"]]
		SORT_RO z ALPHA LIMIT 0 1              ["a"]
		OBJECT ENCODING z                      "skiplist"
		ZSCAN z 0 MATCH [adij]                 ["0", ["d", "-inf", "i", "0", "a", "0.10000000000000001", "j", "196552962118081.38"]]
		HELLO 3 SETNAME x                      {"server", "redis", "version", "8.0.2", "proto", :3, "id", :1, "mode", "standalone", "role", "master", "modules", []}
		ZMSCORE z a b e nope                   [,0.1, ,100000000000000000, ,inf, null]
		ZRANGE z -1 -1 WITHSCORES              [["e", ,inf]]
		ZRANK z d WITHSCORE                    [:0, ,-inf]
		ZPOPMIN z                              ["d", ,-inf]
		ZPOPMIN z 1                            [["i", ,0]]
		ZRANGESTORE z2 z 0 0                   :1
	`)
}

func TestZaddOptions(t *testing.T) {
	play(t, Options{}, `
		ZADD z NX XX 1 a                       -ERR XX and NX options at the same time are not compatible
		ZADD z GT LT 1 a                       -ERR GT, LT, and/or NX options at the same time are not compatible
		ZADD z 1                               -ERR wrong number of arguments for 'zadd' command
		ZADD z NX CH                           -ERR syntax error
		ZADD z 1 a 2                           -ERR syntax error
		ZADD z INCR 1 a 2 b                    -ERR INCR option supports a single increment-element pair
		ZADD z 1 a x b                         -ERR value is not a valid float
		EXISTS z                               :0
		ZADD z XX 1 a                          :0
		ZADD z XX INCR 1 a                     (nil)
		EXISTS z                               :0
		ZADD z 1 a 2 b 1 a                     :2
		ZADD z CH 1 a 3 b 4 c                  :2
		ZADD z GT CH 2 b 5 c 1 d               :2
		ZADD z LT CH 2 b 9 c 9 d               :1
		ZADD z NX INCR 1 a                     (nil)
		ZADD z GT INCR 0 a                     (nil)
		ZADD z LT INCR 0 a                     (nil)
		ZADD z INCR 1.5 a                      "2.5"
		ZADD z inf i                           :1
		ZINCRBY z -inf i                       -ERR resulting score is not a number (NaN)
		ZRANGE z 0 -1 WITHSCORES               ["d", "1", "b", "2", "a", "2.5", "c", "5", "i", "inf"]
	`)
}

func TestRanges(t *testing.T) {
	play(t, Options{}, `
		ZADD z 1 a 2 b 3 c 4 d                 :4
		ZRANGE z 1 2                           ["b", "c"]
		ZRANGE z -2 -1 REV                     ["b", "a"]
		ZRANGE z 0 -100                        []
		ZRANGE z (1 3 BYSCORE                  ["b", "c"]
		ZRANGE z 3 (1 BYSCORE REV              ["c", "b"]
		ZRANGE z 0 -1 LIMIT 0 1                -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
		ZRANGE z -inf +inf BYSCORE LIMIT 1 2   ["b", "c"]
		ZRANGE z +inf -inf BYSCORE REV LIMIT 1 -1  ["c", "b", "a"]
		ZRANGEBYSCORE z -inf +inf LIMIT -1 2   []
		ZREVRANGEBYSCORE z 2 -inf WITHSCORES   ["b", "2", "a", "1"]
		ZCOUNT z (1 (4                         :2
		ZADD l 0 a 0 b 0 c                     :3
		ZRANGE l [b + BYLEX                    ["b", "c"]
		ZREVRANGEBYLEX l (c -                  ["b", "a"]
		ZLEXCOUNT l - (c                       :2
		ZRANGESTORE d l [b + BYLEX             :2
		ZREMRANGEBYLEX l - [a                  :1
		ZREMRANGEBYRANK l 0 0                  :1
		ZREMRANGEBYSCORE l -inf +inf           :1
		EXISTS l                               :0
	`)
}

// With different scores, a small sorted set is walked member by member.
func TestRangesOfMembersWithDifferentScores(t *testing.T) {
	play(t, Options{}, `
		ZADD z 1 c 2 a 3 b                     :3
		ZRANGEBYLEX z [a +                     ["c", "a", "b"]
		ZRANGEBYLEX z [b [c                    ["c", "a", "b"]
		ZRANGEBYLEX z - [b                     []
		ZREVRANGEBYLEX z [b [b                 []
		ZREVRANGEBYLEX z + [b                  ["b"]
	`)
}

func TestCombinations(t *testing.T) {
	play(t, Options{}, `
		ZADD a 1 x 2 y inf i                   :3
		ZADD b 10 y 20 z -inf i                :3
		SADD s y z                             :2
		ZUNION 2 a b WITHSCORES                ["i", "0", "x", "1", "y", "12", "z", "20"]
		ZINTER 3 a b s WEIGHTS 1 2 3 WITHSCORES  ["y", "25"]
		ZINTER 2 a b AGGREGATE MAX WITHSCORES  ["y", "10", "i", "inf"]
		ZDIFF 2 a s WITHSCORES                 ["x", "1", "i", "inf"]
		ZUNION 1 a WEIGHTS 0 WITHSCORES        ["i", "0", "x", "0", "y", "0"]
		ZINTERCARD 2 a b LIMIT 1               :1
		ZUNION 2 a                             -ERR syntax error
		ZUNION 0 a                             -ERR at least 1 input key is needed for 'zunion' command
		ZDIFF 1 a WEIGHTS 1                    -ERR syntax error
		SET d v EX 100                         +OK
		ZUNION 1 d FOO                         -WRONGTYPE Operation against a key holding the wrong kind of value
		ZUNIONSTORE d 2 a b                    :4
		TTL d                                  :-1
		ZINTERSTORE d 2 a none                 :0
		EXISTS d                               :0
		ZDIFFSTORE d 1 a                       :3
		OBJECT ENCODING d                      "listpack"
	`)
}

func TestPops(t *testing.T) {
	play(t, Options{}, `
		ZADD z 1 a 2 b 3 c 4 d                 :4
		ZPOPMAX z                              ["d", "4"]
		ZPOPMIN z 2                            ["a", "1", "b", "2"]
		ZPOPMIN z 0                            []
		ZPOPMIN z -1                           -ERR value is out of range, must be positive
		ZMPOP 2 none z MAX COUNT 9             ["z", [["c", "3"]]]
		ZMPOP 2 none z MAX                     (nil array)
		EXISTS z                               :0
		BZPOPMIN none x                        -ERR timeout is not a float or out of range
		BZPOPMIN none -1                       -ERR timeout is negative
		BZPOPMIN none 1e30                     -ERR timeout is out of range
		BZMPOP x 0 none MIN                    -ERR numkeys should be greater than 0
	`)
}

func TestBlockedPopsAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	play(t, Options{}, `
		@c1 BZPOPMIN none z 0
		@c2 BZMPOP 0 2 z none MAX COUNT 2
		@c3 BZPOPMAX z 0.5
		ZADD z 1 a 2 b 3 c 4 d                 :4
		@out 1                                 ["z", "a", "1"]
		@out 2                                 ["z", [["d", "4"], ["c", "3"]]]
		@out 3                                 ["z", "b", "2"]
		EXISTS z                               :0
		@c3 BZPOPMAX z 0.5
		@c4 BZMPOP 0.5 1 z MIN
		SADD z x                               :1
		@out 3
		@sleep 499
		@out 3
		@out 4
		@sleep 2
		@out 3                                 (nil array)
		@out 4                                 (nil array)
		@c1 BZPOPMIN z 0                       -WRONGTYPE Operation against a key holding the wrong kind of value
		MULTI                                  +OK
		BZPOPMIN none 0                        +QUEUED
		EXEC                                   [(nil array)]
		@c1 BZPOPMIN d 0
		ZADD a 7 q                             :1
		ZUNIONSTORE d 1 a                      :1
		@out 1                                 ["d", "q", "7"]
	`)
}
