// node-redis's cluster client against a cluster, of which it knows one port. Usage: node noderedis-cluster.cjs PORT
const assert = require('node:assert')
const { createCluster } = require('redis')

async function main() {
  const c = createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:' + process.argv[2] }], defaults: { RESP: 3 } })
  c.on('error', err => { throw err })
  await c.connect()
  assert.equal(c.masters.length, 3)
  for (const key of ['b', 'k', 'foo']) { // one at each node
    await c.set(key, key, { EX: 60 })
    assert.equal(await c.get(key), key)
  }
  assert.deepEqual(await c.multi().incr('{k}n').incr('{k}n').exec(), [1, 2])
  await assert.rejects(c.mGet(['b', 'k']), /CROSSSLOT/)
  await c.close()
}
main().then(() => console.log('node-redis, cluster: ok'), err => { console.error(err); process.exit(1) })
