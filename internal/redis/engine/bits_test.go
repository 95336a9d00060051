package engine

import "testing"

func TestBitsAsRedis(t *testing.T) {
	play(t, Options{}, `
		SET k foobar                         +OK
		BITCOUNT k                           :26
		BITCOUNT k 1 -2                      :18
		BITCOUNT k 5 30 BIT                  :17
		BITCOUNT k 0                         -ERR syntax error
		BITCOUNT k 0 b foo                   -ERR value is not an integer or out of range
		BITPOS k 1 0 x foo                   -ERR syntax error
		BITPOS k 1                           :1
		BITPOS k 0 2                         :16
		BITPOS none 0                        :0
		BITPOS none 1                        :-1
		SETBIT k 4294967296 1                -ERR bit offset is not an integer or out of range
		BITOP NOT a k k                      -ERR BITOP NOT must be called with a single source key.
		BITOP AND a k none                   :6
		GET a                                "\x00\x00\x00\x00\x00\x00"
		SET k foobar                         +OK
		BITFIELD k GET u8 0 GET i5 3         [:102, :6]
		BITFIELD k SET u8 0 256 GET u8 0     [:102, :0]
		BITFIELD k OVERFLOW FAIL INCRBY u8 0 300  [(nil)]
		BITFIELD k OVERFLOW SAT INCRBY u8 0 300   [:255]
		BITFIELD k OVERFLOW SAT SET i8 0 300 GET i8 0  [:-1, :127]
		BITFIELD k OVERFLOW SAT SET u8 0 -1 GET u8 0  [:127, :255]
		BITFIELD k SET i64 0 -1 GET u63 1    [:-40691403290705920, :9223372036854775807]
		SET z "\x00"                          +OK
		BITFIELD z OVERFLOW SAT INCRBY u8 0 -1  [:0]
		BITFIELD z OVERFLOW WRAP INCRBY u8 0 -1  [:255]
		BITFIELD k OVERFLOW SAT INCRBY i64 0 -9223372036854775808  [:-9223372036854775808]
		BITFIELD k OVERFLOW FAIL SET i64 0 -9223372036854775808 GET i64 0  [:-9223372036854775808, :-9223372036854775808]
		BITFIELD k INCRBY i64 0 -1           [:9223372036854775807]
		BITFIELD_RO k SET u8 0 1             -ERR BITFIELD_RO only supports the GET subcommand
		BITFIELD k                           []
	`)
}
