package redistest

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// Errors for values that are not numbers or do not fit, and for overflows.
var (
	ErrIntValueError         = errors.New("ERR value is not an integer or out of range")
	ErrIntValueOverflowError = errors.New("ERR increment or decrement would overflow")
	ErrFloatValueError       = errors.New("ERR value is not a valid float")
	//lint:ignore ST1005 it is Redis's sentence
	ErrNotValidHllValue = errors.New("WRONGTYPE Key is not a valid HyperLogLog string value.")
)

func (d *data) text(args ...string) (string, error) {
	v := d.do(args...)
	return v.Text, failure(v)
}

func (d *data) number(args ...string) (int, error) {
	v := d.do(args...)
	return int(v.Int), failure(v)
}

func (d *data) float(args ...string) (float64, error) {
	v := d.do(args...)
	f, _ := strconv.ParseFloat(v.Text, 64)
	return f, failure(v)
}

// of returns the reply to a command about a key that must exist and have the given type.
func (d *data) of(kind string, args ...string) (resp.Value, error) {
	if err := d.expect(args[1], kind); err != nil {
		return resp.Value{}, err
	}
	return d.do(args...), nil
}

// FlushDB removes all keys of the database.
func (d *data) FlushDB() { d.do("FLUSHDB") }

// Type returns the type of a key, "" if there is none.
func (d *data) Type(k string) string {
	if kind := d.do("TYPE", k).Text; kind != "none" {
		return kind
	}
	return ""
}

// Unlink is Del.
func (d *data) Unlink(k string) bool { return d.Del(k) }

// Incr adds to a number, and returns the sum.
func (d *data) Incr(k string, delta int) (int, error) {
	return d.number("INCRBY", k, strconv.Itoa(delta))
}

// Incrfloat adds to a number, and returns the sum.
func (d *data) Incrfloat(k string, delta float64) (float64, error) {
	return d.float("INCRBYFLOAT", k, formatFloat(delta))
}

// Lpop removes and returns the first element of a list.
func (d *data) Lpop(k string) (string, error) {
	v, err := d.of("list", "LPOP", k)
	return v.Text, err
}

// Pop removes and returns the last element of a list.
func (d *data) Pop(k string) (string, error) {
	v, err := d.of("list", "RPOP", k)
	return v.Text, err
}

// SetAdd adds members to a set, and returns how many were new.
func (d *data) SetAdd(k string, elems ...string) (int, error) {
	if len(elems) == 0 {
		return 0, nil
	}
	return d.number(append([]string{"SADD", k}, elems...)...)
}

// Members returns the members of a set, sorted.
func (d *data) Members(k string) ([]string, error) {
	v, err := d.of("set", "SMEMBERS", k)
	return slices.Sorted(slices.Values(texts(v))), err
}

// IsMember reports whether v is a member of a set.
func (d *data) IsMember(k, v string) (bool, error) {
	is, err := d.of("set", "SISMEMBER", k, v)
	return is.Int == 1, err
}

// SCard returns the number of members of a set.
func (d *data) SCard(key string) (int, error) { return d.number("SCARD", key) }

// SRandMember returns a random member of a set, "" if it is empty.
func (d *data) SRandMember(key string) (string, error) { return d.text("SRANDMEMBER", key) }

// SRem removes members from a set, and returns how many were there.
func (d *data) SRem(k string, fields ...string) (int, error) {
	if len(fields) == 0 {
		return 0, d.expect(k, "set")
	}
	v, err := d.of("set", append([]string{"SREM", k}, fields...)...)
	return int(v.Int), err
}

// HKeys returns the fields of a hash, sorted.
func (d *data) HKeys(k string) ([]string, error) {
	v, err := d.of("hash", "HKEYS", k)
	return slices.Sorted(slices.Values(texts(v))), err
}

// HDel removes a field of a hash.
func (d *data) HDel(k, f string) { d.do("HDEL", k, f) }

// HIncr adds to a field of a hash, and returns the sum.
func (d *data) HIncr(k, f string, delta int) (int, error) {
	return d.number("HINCRBY", k, f, strconv.Itoa(delta))
}

// HIncrfloat adds to a field of a hash, and returns the sum.
func (d *data) HIncrfloat(k, f string, delta float64) (float64, error) {
	return d.float("HINCRBYFLOAT", k, f, formatFloat(delta))
}

// HExpire gives a field a TTL, and reports whether the field exists.
func (d *data) HExpire(key, field string, ttl time.Duration) bool {
	v := d.do("HPEXPIRE", key, milliseconds(ttl), "FIELDS", "1", field)
	return len(v.List) == 1 && v.List[0].Int > 0
}

// HPersist removes the TTL of a field, and reports whether it had one.
func (d *data) HPersist(key, field string) bool {
	v := d.do("HPERSIST", key, "FIELDS", "1", field)
	return len(v.List) == 1 && v.List[0].Int == 1
}

// HTTL returns the remaining TTL of a field; 0 if it has none, or does not exist.
func (d *data) HTTL(key, field string) time.Duration {
	v := d.do("HPTTL", key, "FIELDS", "1", field)
	if len(v.List) != 1 {
		return 0
	}
	return time.Duration(max(v.List[0].Int, 0)) * time.Millisecond
}

// HSetEX sets fields to the values that follow them, with a TTL.
func (d *data) HSetEX(key string, ttl time.Duration, fv ...string) {
	d.HSet(key, fv...)
	for pair := range slices.Chunk(fv, 2) {
		d.HExpire(key, pair[0], ttl)
	}
}

// ZAdd sets the score of a member of a sorted set, and reports whether it is new.
func (d *data) ZAdd(k string, score float64, member string) (bool, error) {
	n, err := d.number("ZADD", k, formatFloat(score), member)
	return n == 1, err
}

// ZMembers returns the members of a sorted set, by score.
func (d *data) ZMembers(k string) ([]string, error) {
	v, err := d.of("zset", "ZRANGE", k, "0", "-1")
	return texts(v), err
}

// SortedSet returns a sorted set.
func (d *data) SortedSet(k string) (map[string]float64, error) {
	v, err := d.of("zset", "ZRANGE", k, "0", "-1", "WITHSCORES")
	if err != nil {
		return nil, err
	}
	all := make(map[string]float64)
	for pair := range slices.Chunk(texts(v), 2) {
		all[pair[0]], _ = strconv.ParseFloat(pair[1], 64)
	}
	return all, nil
}

// ZRem removes a member of a sorted set, and reports whether it was there.
func (d *data) ZRem(k, member string) (bool, error) {
	v, err := d.of("zset", "ZREM", k, member)
	return v.Int == 1, err
}

// ZScore returns the score of a member, 0 if it does not exist.
func (d *data) ZScore(k, member string) (float64, error) {
	v, err := d.of("zset", "ZSCORE", k, member)
	f, _ := strconv.ParseFloat(v.Text, 64)
	return f, err
}

func (d *data) zmscore(k string, members []string) ([]float64, error) {
	v, err := d.of("zset", append([]string{"ZMSCORE", k}, members...)...)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(v.List))
	for i, score := range v.List {
		scores[i], _ = strconv.ParseFloat(score.Text, 64)
	}
	return scores, nil
}

// ZMScore returns the scores of members, 0 for those that do not exist.
func (db *RedisDB) ZMScore(k string, members []string) ([]float64, error) {
	return db.zmscore(k, members)
}

// HllAdd adds elements to a HyperLogLog, and returns 1 if its estimate may have changed.
func (d *data) HllAdd(k string, elems ...string) (int, error) {
	return d.number(append([]string{"PFADD", k}, elems...)...)
}

// HllCount returns the estimated number of different elements of all keys.
func (d *data) HllCount(keys ...string) (int, error) {
	return d.number(append([]string{"PFCOUNT"}, keys...)...)
}

// HllMerge makes destKey the union of itself and the sources.
func (d *data) HllMerge(destKey string, sourceKeys ...string) error {
	return failure(d.do(append([]string{"PFMERGE", destKey}, sourceKeys...)...))
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
