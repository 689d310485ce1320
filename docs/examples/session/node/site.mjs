// A website whose visitors verify a phone number at the level Session. What it knows of a session is in memory.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { PhoneProof, SessionError, SessionProof } from 'PhoneProof'

const { ADDRESS: address = '127.0.0.1:8000', PHONEPROOF_URL: baseURL = 'http://127.0.0.1:8080', PHONEPROOF_KEY: apiKey } = process.env
const { ORIGIN: origin = `http://${address}` } = process.env
const [cookieName, secure] = origin.startsWith('https:') ? ['__Host-session', '; Secure'] : ['session', '']
const [states, begun] = [new Map(), new Map()] // by session: what the library keeps; the number that was typed, and the link to its page
const store = { load: (id) => states.get(id), save: (id, state) => states.set(id, state), remove: (id) => states.delete(id) } // yours is a table
const proof = new SessionProof(new PhoneProof({ baseURL, apiKey }), store)

const routes = {
  async 'POST /start'({ newId, fields }) {
    const typed = fields.get('number') ?? ''
    const { pageURL } = await proof.begin(newId, { phoneNumber: typed, purpose: 'sign-in', returnURL: `${origin}/return` })
    begun.set(newId, { typed, page: pageURL })
    return { location: '/me', cookie: newId }
  },
  async 'GET /return'({ id, newId, fields }) {
    if (!fields.get('code')) return { location: '/me' } // the user gave up
    await proof.redeem(id, fields.get('code'), { newSessionId: newId, returnedRequestId: fields.get('requestId') })
    return { location: '/me', cookie: newId }
  },
  async 'POST /digits'({ id, newId, fields }) {
    await proof.redeem(id, fields.get('code') ?? '', { newSessionId: newId })
    return { location: '/me', cookie: newId }
  },
  async 'GET /me'({ id }) {
    const [number, { typed, page }] = [await proof.verified(id), begun.get(id) ?? {}]
    if (number) return { status: 200, message: `Verified: ${number}` }
    return { status: 401, message: typed ? `Not verified. Your number: ${typed}` : 'Not verified.', page } // which shows two of its digits
  },
}

const texts = { no_country_code: 'Begin with the country code, such as +49.', invalid_phone_number: 'Is this number complete?',
  not_proven: 'Send the message from your phone first.', wrong_code: 'These digits are wrong.' } // docs/errors.md has all
const forms = `<form method="post" action="/start">Phone number <input name="number" type="tel"> <button>Verify</button></form>
<form method="post" action="/digits">Six or eight digits <input name="code" autocomplete="one-time-code"> <button>Confirm</button></form>`
const escape = (message) => message.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

async function answer(request) {
  const { pathname, searchParams } = new URL(request.url, origin)
  const route = routes[`${request.method} ${pathname === '/' ? '/me' : pathname}`]
  if (!route) return { status: 404, message: 'Not found.' }
  if (request.method === 'POST' && request.headers.origin !== origin) { // which browsers name in each POST: it is a form of another site
    return { status: 403, message: `Send this form from ${origin}.` }
  }
  let form = ''
  for await (const part of request.setEncoding('utf8')) if ((form += part).length > 8192) throw new Error('the form is too large')
  const id = RegExp(`(?:^|; )${cookieName}=([^;]*)`).exec(request.headers.cookie)?.[1]
  return route({ id, newId: randomUUID(), fields: request.method === 'POST' ? new URLSearchParams(form) : searchParams })
}

const server = createServer(async (request, response) => {
  const { status = 303, message = '', page, location, cookie } = await answer(request).catch((error) => {
    if (error instanceof SessionError) return { location: '/me' } // the code belongs to another session
    return { status: { 400: 400, 409: 422, 422: 422 }[error.status] ?? 502, message: texts[error.reason] ?? texts[error.code] ?? 'Try again.' }
  })
  response.setHeader('Referrer-Policy', 'strict-origin') // the address may hold a code. With no-referrer, Origin would be null.
  if (cookie) response.setHeader('Set-Cookie', `${cookieName}=${cookie}; Path=/; HttpOnly; SameSite=Lax${secure}`)
  if (location) response.setHeader('Location', location)
  const link = page ? `<p><a href="${escape(page)}">Verify it</a></p>` : ''
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8' }).end(`<!doctype html><p>${escape(message)}</p>${link}${forms}`)
})
server.listen({ host: address.split(':')[0], port: Number(address.split(':')[1]) })
