# The TTL guide's functions, on the keys that a Go program caches at the same time. Ends with its stdin; any byte that
# json.loads refuses is an exception, and the exit code.
import json
import random
import sys
import threading

import redis

r = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))


def get_user(user_id):
    cache_key = f"cache:user:{user_id}"
    cached = r.get(cache_key)
    if cached:
        return json.loads(cached)
    user = {"Name": f"Python's {user_id}", "Version": user_id}
    r.setex(cache_key, 3600, json.dumps(user))
    return user


def get_with_early_refresh(key, compute_fn, ttl=3600, beta=1.0):
    pipe = r.pipeline()
    pipe.get(key)
    pipe.ttl(key)
    value, remaining_ttl = pipe.execute()
    if value is None:
        value = compute_fn()
        r.setex(key, ttl, json.dumps(value))
        return value
    if remaining_ttl > 0 and remaining_ttl - (beta * ttl * random.random()) < 0:
        r.setex(key, ttl, json.dumps(compute_fn()))
    return json.loads(value)


done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
reads = 0
while not done.is_set():
    user_id = random.randrange(50)
    if random.random() < 0.5:
        user = get_user(user_id)
    else:
        user = get_with_early_refresh(f"cache:user:{user_id}", lambda: {"Name": "early", "Version": user_id})
    assert user["Version"] == user_id, user
    reads += 1
    r.set("reads of Python", reads)
    if random.random() < 0.2:
        r.delete(f"cache:user:{user_id}")
print(reads)
