// What the table of scenarios in test/sdk does not reach.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { handleExpress, handleRequest, PhoneProof, SessionProof } from 'PhoneProof'

const secret = 'a secret of 24 bytes or more'
const pending = { status: 'PENDING', phoneNumber: '+4915112345678', expiresAt: '2026-11-21T12:10:00.000Z' }

function sign(body, id = 'evt_1', time = Math.floor(Date.now() / 1000)) {
  const signature = createHmac('sha256', secret).update(`${id}.${time}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(time), 'webhook-signature': `v1,${signature}` }
}

test('a call names the version of the package', async () => {
  let headers
  const fetch = async (_, init) => {
    headers = init.headers
    return Response.json(pending)
  }
  await new PhoneProof({ baseURL: 'https://verify.example.com', apiKey: 'pp_1', fetch }).status('vr1')
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  assert.equal(headers['User-Agent'], `phoneproof-typescript/${version}`)
})

test('wait reports each new hint once', async () => {
  const answers = [pending, { ...pending, hint: 'OTHER_NUMBER' }, { ...pending, hint: 'OTHER_NUMBER' }, { ...pending, status: 'VERIFIED' }]
  const asked = []
  const fetch = async (url) => {
    asked.push(new URL(url).searchParams.get('hint'))
    return Response.json(answers.shift())
  }
  const hints = []
  const client = new PhoneProof({ baseURL: 'https://verify.example.com', apiKey: 'pp_1', fetch })
  assert.equal((await client.wait('vr1', { onHint: ({ hint }) => hints.push(hint) })).status, 'VERIFIED')
  assert.deepEqual(hints, ['OTHER_NUMBER'])
  assert.deepEqual(asked, ['', '', 'OTHER_NUMBER', 'OTHER_NUMBER'])
})

test('options that cannot be meant are refused', () => {
  const refuse = (make) => assert.throws(make, { code: 'invalid_argument' })
  refuse(() => new PhoneProof({ baseURL: 'https://verify.example.com', apiKey: 'pp_1', timeout: 1e6 })) // milliseconds
  refuse(() => handleRequest({ secrets: secret, onEvent() {} })) // each character would be a secret
  refuse(() => handleRequest({ secrets: [undefined], onEvent() {} }))
  refuse(() => handleRequest({ secrets: [secret], onTest() {} }))
  refuse(() => handleRequest({ secrets: [secret], onEvent() {}, bodySignature: true }))
})

test('behind a parser of Express the raw body is required', async () => {
  const body = '{"event":"verification.success","metadata":{"b":"1","1":"2"}}'
  const events = []
  const handle = handleExpress({ secrets: [secret], onEvent: ({ event }) => events.push(event), onError() {} })
  const send = async (changes) => {
    const request = Object.assign(Readable.from([Buffer.from(body)]), { method: 'POST', headers: sign(body) }, changes.fields)
    if (changes.isRead) await request.toArray()
    const response = { setHeader() {}, end(text) { this.text = text } }
    await handle(request, response)
    return response
  }
  assert.equal((await send({ fields: { body: Buffer.from(body) }, isRead: true })).statusCode, 204) // express.raw()
  assert.equal((await send({ fields: { body: {} } })).statusCode, 204) // express.json(), for which the type of the body was another
  const parsed = await send({ fields: { body: JSON.parse(body) }, isRead: true })
  assert.equal(parsed.statusCode, 500)
  assert.match(parsed.text, /raw bytes/)
  assert.deepEqual(events, ['verification.success', 'verification.success'])
})

test('a confirm that is under way is not one whose answer was lost', async () => {
  let [asked, stranger] = [0]
  const fetch = async (url) => {
    if (url.endsWith('/init')) return Response.json({ requestId: 'vr1', expectedText: 'text', expiresIn: '600s', expiresAt: pending.expiresAt })
    if (url.endsWith('/confirm') && asked++ > 0) return Response.json({ error: { code: 'already_confirmed', message: 'again' } }, { status: 409 })
    stranger ??= await proof.redeem('old', '123456', { newSessionId: 'stranger' }).catch(({ code }) => code)
    return Response.json({ ...pending, status: 'VERIFIED', assurance: 'session' })
  }
  const states = new Map()
  const store = { load: (id) => states.get(id), save: (id, state) => states.set(id, state), remove: (id) => states.delete(id) }
  const proof = new SessionProof(new PhoneProof({ baseURL: 'https://verify.example.com', apiKey: 'pp_1', fetch }), store)
  await proof.begin('old', { phoneNumber: pending.phoneNumber })
  await proof.redeem('old', '654321', { newSessionId: 'new' })
  assert.equal(stranger, 'already_confirmed')
  assert.deepEqual([...states.keys()], ['new'])
})
