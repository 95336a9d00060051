package engine

import "testing"

func TestSort(t *testing.T) {
	play(t, Options{}, `
		RPUSH l 3 1 2 10                       :4
		SORT l                                 ["1", "2", "3", "10"]
		SORT l DESC LIMIT 1 2                  ["3", "2"]
		SORT l ALPHA                           ["1", "10", "2", "3"]
		SORT l BY nosort DESC                  ["10", "2", "1", "3"]
		MSET w_1 30 w_2 20 w_3 10              +OK
		SORT l BY w_* GET # GET w_*            ["10", (nil), "3", "10", "2", "20", "1", "30"]
		HSET h_1 f 5                           :1
		SORT l BY h_*->f GET h_*->f            [(nil), (nil), (nil), "5"]
		SORT l BY h_*->                        ["1", "10", "2", "3"]
		SORT_RO l STORE d                      -ERR syntax error
		SORT l LIMIT 1                         -ERR syntax error
		SORT l LIMIT x 1                       -ERR value is not an integer or out of range
		SET w_1 x                              +OK
		SORT l BY w_*                          -ERR One or more scores can't be converted into double
		SORT w_1                               -WRONGTYPE Operation against a key holding the wrong kind of value
		SORT none GET #                        []
	`)
}

func TestWhatSortStoresHasTheFormOfItsSize(t *testing.T) {
	play(t, Options{}, `
		CONFIG SET list-max-listpack-size 2    +OK
		RPUSH l 2 1                            :2
		SORT l STORE d                         :2
		OBJECT ENCODING d                      "listpack"
		SORT l GET # GET # STORE d             :4
		OBJECT ENCODING d                      "quicklist"
	`)
}

func TestSortReadsNumbersAsCStrings(t *testing.T) {
	play(t, Options{}, `
		RPUSH l "" 1e400 1e-400 -inf .5        :5
		SORT l                                 ["-inf", "", "1e-400", ".5", "1e400"]
		RPUSH l " 1"                           :6
		SORT l                                 -ERR One or more scores can't be converted into double
	`)
}

func TestSortStore(t *testing.T) {
	play(t, Options{}, `
		SADD s b a c                           :3
		RPUSH d x                              :1
		EXPIRE d 100                           :1
		SORT s BY nosort DESC STORE d          :3
		LRANGE d 0 -1                          ["c", "b", "a"]
		TTL d                                  :-1
		SORT s ALPHA GET none_* STORE d        :3
		LRANGE d 0 -1                          ["", "", ""]
		SORT none STORE d                      :0
		EXISTS d                               :0
		ZADD z 2 a 1 b                         :2
		SORT z BY nosort STORE z               :2
		LRANGE z 0 -1                          ["b", "a"]
		COMMAND GETKEYS SORT l BY w_* GET h_* STORE d STORE e  ["l", "e"]
	`)
}
