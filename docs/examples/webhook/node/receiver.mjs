// A receiver of webhooks.
//
// A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is acknowledged.
import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { handleExpress } from 'PhoneProof'

const { ADDRESS: address = '127.0.0.1:8000', EVENTS: events = 'events', WEBHOOK_SECRET: secret = '' } = process.env
const kept = 7 * 24 * 3600e3 // milliseconds: an event is sent again for about three days

// receive checks the signature over the bytes that came. It answers 2xx once onEvent has returned, and then alone.
const receive = handleExpress({
  secrets: [secret],
  async onEvent(event, { id, body }) {
    const isNew = await storeEvent(id, body)
    if (isNew) setImmediate(() => doWork(event).catch(console.error)) // after the answer
  },
})

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

// doWork stands for yours.
async function doWork({ event, requestId }) {
  console.log(event, requestId)
}

await mkdir(events, { recursive: true })
await deleteOldEvents()
setInterval(() => deleteOldEvents().catch(console.error), 3600e3)
const server = createServer((request, response) => {
  if (request.url === '/hooks/phone') receive(request, response)
  else response.writeHead(404).end()
})
server.requestTimeout = 15e3
const [host, port] = address.split(':')
server.listen(Number(port), host)
