"""redis-py's cluster client against a cluster, of which it knows one port. Usage: redispy_cluster.py PORT"""
import sys

from redis.cluster import RedisCluster

c = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True)
assert len(c.get_primaries()) == 3
for key in ["b", "k", "foo"]:  # one at each node
    c.set(key, key, ex=60)
    assert c.get(key) == key
assert c.mset_nonatomic({"b": "1", "k": "2"}) and c.mget_nonatomic("b", "k") == ["1", "2"]
p = c.pipeline()
p.incr("b")
p.incr("k")
assert p.execute() == [2, 3]
c.close()
print("redis-py, cluster: ok")
