// Calls the TypeScript library for the table of scenarios: one JSON object a line comes in, and one answer a line goes out, in order.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'
import {
  AlreadyConfirmedError, CodesUnsupportedError, handleExpress, handleRequest, PhoneProof, receive, SessionError, SessionProof,
  SignatureError,
} from 'PhoneProof'

const clients = new Map()
const states = new Map() // of sessions
const store = {
  load: async (session) => states.get(session),
  save: async (session, state) => states.set(session, state),
  remove: async (session) => states.delete(session),
}
const received = { events: [], tests: [] }
const seenDigests = new Set()
let background // the operation of later

const operations = {
  client({ name = 'c', baseURL, apiKey, timeout }) {
    const client = new PhoneProof({ baseURL, apiKey, timeout })
    clients.set(name, client)
    return { text: [String(client), inspect(client, { depth: 9, showHidden: true }), JSON.stringify(client)].join('\n') }
  },
  start: ({ params, idempotencyKey }, client) => client.start(params, { idempotencyKey }),
  deliver: ({ delivery, idempotencyKey }, client) => client.deliver(delivery, { idempotencyKey }),
  status: ({ id }, client) => client.status(id),
  wait: ({ id, timeout }, client) => client.wait(id, { timeout }),
  async waitCancel({ id, after }, client) {
    const abort = new AbortController()
    setTimeout(() => abort.abort(), after * 1000)
    const error = await client.wait(id, { signal: abort.signal }).catch((error) => error)
    return { cancelled: error.name === 'AbortError' }
  },
  confirm: ({ id, code }, client) => client.confirm(id, code),
  cancel: ({ id }, client) => client.cancel(id),
  get: ({ id }, client) => client.get(id),
  redeliver: ({ id }, client) => client.redeliver(id),
  list: ({ max, client: _, ...params }, client) => takeFirst(client.list(params), max),
  find: ({ max, client: _, ...params }, client) => takeFirst(client.find(params), max),
  later({ op, args }) {
    background = operations[op](args, clients.get('c'))
    background.catch(() => {}) // join tells it
    return {}
  },
  join: () => background,
  async openapi(_, client) {
    const { openapi } = await client.openAPI()
    return { openapi }
  },

  async receive({ secrets, testSecrets, tolerance, now, headers, body, as, bodySignature }) {
    const bytes = Buffer.from(body, 'base64')
    const given = as === 'string' ? bytes.toString() : as === 'object' ? JSON.parse(bytes.toString()) : bytes
    const options = { secrets, testSecrets, tolerance }
    if (bodySignature) options.bodySignature = { seen: rememberDigest }
    const clock = Date.now
    if (now !== undefined) Date.now = () => now * 1000
    try {
      return await receive(options, headers, given)
    } finally {
      Date.now = clock
    }
  },
  async serve({ handler, secrets, testSecrets, bodySignature }) {
    const failed = new Set()
    const record = (list) => (event) => {
      if (event.reference === 'fail' && !failed.has(event.requestId)) {
        failed.add(event.requestId)
        throw new Error('the callback fails')
      }
      list.push(event)
    }
    const options = {
      secrets, testSecrets, bodySignature, seen: new Set(), onEvent: record(received.events), onTest: record(received.tests), onError() {},
    }
    const server = createServer(handler === 'fetch' ? serveFetch(handleRequest(options)) : handleExpress(options))
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    server.unref()
    return { port: server.address().port }
  },
  events: () => received,

  begin: ({ session, params }, client) => new SessionProof(client, store).begin(session, params),
  redeem({ session, code, returned, newSession }, client) {
    const isReturn = returned === undefined ? {} : { returnedRequestId: returned || undefined }
    return new SessionProof(client, store).redeem(session, code, { newSessionId: newSession, ...isReturn })
  },
  verified: async ({ session }, client) => (await new SessionProof(client, store).verified(session)) ?? null,
}

async function takeFirst(requests, max = Infinity) {
  const taken = []
  for await (const request of requests) {
    taken.push(request)
    if (taken.length >= max) break
  }
  return taken
}

function rememberDigest(digest) {
  const known = seenDigests.has(digest)
  seenDigests.add(digest)
  return known
}

// serveFetch has a handler of Request and Response answer requests of Node.js.
function serveFetch(handle) {
  return async (incoming, outgoing) => {
    const hasBody = !['GET', 'HEAD'].includes(incoming.method)
    const request = new Request(`http://127.0.0.1${incoming.url}`, {
      method: incoming.method, headers: incoming.headers, ...(hasBody ? { body: incoming, duplex: 'half' } : {}),
    })
    const response = await handle(request)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
  }
}

function describe(error) {
  const { code, reason, field, status, httpRequestId, retryAfter } = error
  const kinds = { AlreadyConfirmed: AlreadyConfirmedError, CodesUnsupported: CodesUnsupportedError, Signature: SignatureError, Session: SessionError }
  const [kind = ''] = Object.entries(kinds).find(([, type]) => error instanceof type) ?? []
  const text = [String(error), inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error)].join('\n')
  return { code: code ?? error.name, reason, field, status, httpRequestId, retryAfter, kind, text }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, args = {} } = JSON.parse(line)
  let answer
  try {
    answer = { id, ok: await operations[op](args, clients.get(args.client ?? 'c')) }
  } catch (error) {
    answer = { id, error: describe(error) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit(0)
