// ioredis against a server: RESP2, pipelines, transactions, scripts, blocking, SCAN. Usage: node ioredis.cjs PORT
const assert = require('node:assert')
const Redis = require('ioredis')

async function main() {
  const c = new Redis(Number(process.argv[2]), '127.0.0.1')
  await c.flushall()
  assert.equal(await c.set('k', 'v', 'PX', 60000, 'NX'), 'OK')
  assert.equal(await c.set('k', 'w', 'NX'), null)
  assert.deepEqual(await c.pipeline().get('k').incr('n').lpush('k', 'x').exec()
    .then(all => all.map(([err, reply]) => err ? err.message.split(' ')[0] : reply)), ['v', 1, 'WRONGTYPE'])
  assert.deepEqual(await c.multi().hset('h', 'f', '1').hgetall('h').exec(), [[null, 1], [null, { f: '1' }]])
  c.defineCommand('twice', { numberOfKeys: 1, lua: 'return {redis.call("get", KEYS[1]), ARGV[1]}' })
  assert.deepEqual(await c.twice('k', 'x'), ['v', 'x'])
  const other = c.duplicate()
  const popped = c.blpop('q', 5)
  await other.rpush('q', 'job')
  assert.deepEqual(await popped, ['q', 'job'])
  const keys = []
  for await (const some of c.scanStream({ match: '*' })) keys.push(...some)
  assert.deepEqual(keys.sort(), ['h', 'k', 'n'])
  await other.quit()
  await c.quit()
}
main().then(() => console.log('ioredis: ok'), err => { console.error(err); process.exit(1) })
