"""redis-py against a server: pipelines, transactions, locks, pub/sub, expiry. Usage: redispy.py PORT"""
import sys

import redis

c = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
c.flushall()
c.setex("k", 60, "v")
assert c.get("k") == "v" and 55 < c.ttl("k") <= 60
with c.pipeline(transaction=True) as p:
    p.hset("h", mapping={"f": "1", "g": "2"})
    p.hgetall("h")
    p.zadd("z", {"a": 1.5})
    p.zrange("z", 0, -1, withscores=True)
    assert p.execute() == [2, {"f": "1", "g": "2"}, 1, [("a", 1.5)]]
try:
    c.lpush("k", "x")
    raise AssertionError("no WRONGTYPE")
except redis.ResponseError as e:
    assert str(e).startswith("WRONGTYPE"), e
with c.lock("job", timeout=10):  # Lua
    assert c.ttl("job") > 0
assert not c.exists("job")
sub = c.pubsub(ignore_subscribe_messages=True)
sub.subscribe("news")
sub.get_message(timeout=5)
c.publish("news", "hello")
assert sub.get_message(timeout=5)["data"] == "hello"
sub.close()
assert c.info("server")["redis_version"].startswith("8.")
print("redis-py: ok")
