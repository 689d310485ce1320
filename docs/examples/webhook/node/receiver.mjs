// A receiver of webhooks. It uses Node's own modules alone, and runs on Node 18 or newer.
//
// A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is acknowledged.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'

const { ADDRESS: address = '127.0.0.1:8000', EVENTS: events = 'events', WEBHOOK_SECRET: secret = '' } = process.env
const tolerance = 5 * 60 // seconds that webhook-timestamp may be off
const kept = 7 * 24 * 3600e3 // milliseconds: an event is sent again for about three days
const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)
if (key.length < 24) throw new Error('WEBHOOK_SECRET needs 24 bytes or more') // with an empty key, anyone could sign

// isAuthentic reports whether the body was signed within the last minutes. It throws nothing, whatever the headers are.
function isAuthentic(rawBody, headers, key) {
  const { 'webhook-id': id = '', 'webhook-timestamp': sent = '', 'webhook-signature': presented = '' } = headers
  if (!/^[0-9]{1,12}$/.test(sent) || Math.abs(Date.now() / 1000 - Number(sent)) > tolerance) return false
  const want = Buffer.from('v1,' + createHmac('sha256', key).update(`${id}.${sent}.`).update(rawBody).digest('base64'))
  return presented.split(' ').map((part) => Buffer.from(part)).some((got) => got.length === want.length && timingSafeEqual(got, want))
}

async function receive(request) {
  if (request.method !== 'POST' || request.url !== '/hooks/phone') return 404
  const body = await readBody(request)
  if (!body) return 413
  if (!isAuthentic(body, request.headers, key)) return 401
  const isNew = await storeEvent(request.headers['webhook-id'], body)
  if (isNew) setImmediate(() => doWork(body).catch(console.error)) // after the answer
  return 204
}

// storeEvent stores an event that will outlive a crash, and returns whether it is new.
async function storeEvent(id, body) {
  const temporary = join(events, randomUUID())
  const file = await open(temporary, 'wx')
  try {
    await file.writeFile(body)
    await file.sync()
    await link(temporary, join(events, `${id}.json`)) // fails if the event is there already
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return false
  } finally {
    await file.close()
    await unlink(temporary)
    const folder = await open(events)
    await folder.sync().finally(() => folder.close())
  }
  return true
}

async function deleteOldEvents() {
  for (const name of await readdir(events)) {
    const { mtimeMs } = await stat(join(events, name)).catch(() => ({})) // a temporary file may be gone
    if (Date.now() - mtimeMs > kept) await unlink(join(events, name))
  }
}

async function readBody(request) {
  const parts = []
  let size = 0
  for await (const part of request) {
    size += part.length
    if (size > 65536) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts) // as it came: the signature is over these bytes
}

// doWork stands for yours.
async function doWork(body) {
  const { event, requestId } = JSON.parse(body)
  console.log(event, requestId)
}

await mkdir(events, { recursive: true })
await deleteOldEvents()
setInterval(() => deleteOldEvents().catch(console.error), 3600e3)
const server = createServer((request, response) => {
  receive(request).catch(() => 500).then((status) => response.writeHead(status).end()) // after a 500 the event is sent again
})
server.requestTimeout = 15e3
const [host, port] = address.split(':')
server.listen(Number(port), host)
