// A website whose visitors verify a phone number at the level Session. It uses Node's own modules alone, and runs on Node 18 or newer.
//
// The id of a request stays in the session that began it. A code that a browser brings is redeemed for that request, and for no other.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'

const { ADDRESS: address = '127.0.0.1:8000', PHONEPROOF_URL: api = 'http://127.0.0.1:8080', PHONEPROOF_KEY: key } = process.env
const { ORIGIN: origin = `http://${address}` } = process.env
const cookieName = origin.startsWith('https:') ? '__Host-session' : 'session'
const sessions = new Map() // what the website knows of each browser, by the value of its cookie

const routes = {
  async 'GET /me'({ number, typed, page }) {
    if (number) return { status: 200, message: `Verified: ${number}` }
    return { status: 401, message: typed ? `Not verified. Your number: ${typed}` : 'Not verified.', page } // which shows two of its digits
  },
  async 'POST /start'(_, form) {
    const [typed, returnURL] = [form.get('number'), `${origin}/return`]
    const begun = await call('init', { phoneNumber: typed, assurance: 'SESSION', purpose: 'sign-in', returnURL })
    if (!begun.requestId) return { status: 400, message: chooseText(begun) }
    // The request is in no form and comes from no URL. /me has the whole number beside the link to the page.
    return { session: { request: begun.requestId, typed, page: begun.pageURL }, location: '/me' }
  },
  async 'GET /return'(session, query) { // a code does not count in a browser whose session did not begin that request
    if (!session.request || session.request !== query.get('requestId') || !query.get('code')) return { location: '/me' }
    return redeem(session, query.get('code'))
  },
  async 'POST /digits'(session, form) {
    return session.request ? redeem(session, form.get('code') ?? '') : { location: '/me' }
  },
}

async function redeem(session, code) {
  let result = await call('confirm', { requestId: session.request, code })
  if (result.error?.code === 'already_confirmed') { // by this session, whose answer was lost: no other one knows the request
    result = await call(`status?id=${encodeURIComponent(session.request)}`)
  }
  if (result.status !== 'VERIFIED' || result.assurance !== 'session') return { status: 422, message: chooseText(result) }
  session.number = result.phoneNumber
  return { location: '/me' }
}

const texts = { // what visitors read, by the reason or the code of an error; its message is for developers
  no_country_code: 'Begin with the country code, such as +49.',
  unknown_country_code: 'Begin with the country code, such as +49.',
  invalid_phone_number: 'This number cannot be verified. Is it complete?',
  not_proven: 'Send the message from your phone first.',
  invalid_code: 'Enter the six digits from the chat, or the eight of a code that was sent.',
  wrong_code: 'These digits are wrong.',
  request_expired: 'This has ended. Begin again.',
}
const chooseText = ({ error }) => texts[error?.reason] ?? texts[error?.code] ?? 'Try again later.'

// call returns the answer of the API. An exception means that it is not known what became of the call.
async function call(operation, body) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const response = await fetch(`${api}/api/verify/${operation}`, { method: body ? 'POST' : 'GET', headers, body: JSON.stringify(body) })
  return response.json()
}

const forms = `<form method="post" action="/start"><label>Phone number <input name="number" type="tel"></label>
<button>Verify</button></form>
<form method="post" action="/digits"><label>Six or eight digits
<input name="code" inputmode="numeric" autocomplete="one-time-code"></label> <button>Confirm</button></form>`
const escape = (message) => message.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

async function readForm(request) {
  let body = ''
  request.setEncoding('utf8')
  for await (const part of request) {
    body += part
    if (body.length > 8192) throw new Error('the form is too large')
  }
  return new URLSearchParams(body)
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, origin)
  const id = RegExp(`(?:^|; )${cookieName}=([^;]*)`).exec(request.headers.cookie)?.[1]
  const route = routes[`${request.method} ${pathname === '/' ? '/me' : pathname}`]
  let answer = { status: 404, message: 'Not found.' }
  try {
    if (request.method === 'POST' && request.headers.origin !== origin) { // which browsers name in each POST: it is a form of another site
      answer = { status: 403, message: `Send this form from ${origin}.` }
    } else if (route) answer = await route(sessions.get(id) ?? {}, request.method === 'POST' ? await readForm(request) : searchParams)
  } catch {
    answer = { status: 502, message: 'Try again.' }
  }
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Referrer-Policy': 'strict-origin' }
  // The address may hold a code. With no-referrer, Origin would be null.
  if (answer.session) { // a new one for each verification
    const value = randomUUID()
    sessions.set(value, answer.session)
    headers['Set-Cookie'] = `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax${origin.startsWith('https:') ? '; Secure' : ''}`
  }
  if (answer.location) response.writeHead(303, { ...headers, Location: answer.location }).end()
  else {
    const link = answer.page ? `<p><a href="${escape(answer.page)}">Verify it</a></p>` : ''
    response.writeHead(answer.status, headers).end(`<!doctype html><title>Shop</title><p>${escape(answer.message)}</p>${link}${forms}`)
  }
})
server.listen({ host: address.split(':')[0], port: Number(address.split(':')[1]) })
