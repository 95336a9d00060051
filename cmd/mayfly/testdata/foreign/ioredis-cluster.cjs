// ioredis's cluster client against a cluster, of which it knows one port. Usage: node ioredis-cluster.cjs PORT
const assert = require('node:assert')
const Redis = require('ioredis')

async function main() {
  const c = new Redis.Cluster([{ host: '127.0.0.1', port: Number(process.argv[2]) }])
  for (const key of ['b', 'k', 'foo']) { // one at each node
    await c.set(key, key, 'EX', 60)
    assert.equal(await c.get(key), key)
  }
  assert.equal(c.nodes('master').length, 3)
  assert.deepEqual(await c.pipeline().get('b').incr('{b}n').exec(), [[null, 'b'], [null, 1]])
  await assert.rejects(c.mget('b', 'k'), /CROSSSLOT/)
  const sub = c.duplicate()
  const heard = new Promise(resolve => sub.on('message', (_, text) => resolve(text)))
  await sub.subscribe('news')
  await c.publish('news', 'hello')
  assert.equal(await heard, 'hello')
  sub.disconnect()
  await c.quit()
}
main().then(() => console.log('ioredis, cluster: ok'), err => { console.error(err); process.exit(1) })
