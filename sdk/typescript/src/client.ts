import { isObject, parseObject, readBytes } from './bytes.js'
import { AlreadyConfirmedError, CodesUnsupportedError, PhoneProofError, type ErrorDetails } from './errors.js'
import type { Delivered, DeliverParams, FindParams, ListParams, RequestList, Started, StartParams, Status, StoredRequest } from './types.js'

const version = '0.1.0'
const tries = 3
const firstPause = 0.2 // seconds, at most; each further pause may be twice as long
const longestRetryAfter = 10 // seconds
const longestWait = 20 // seconds that the server is asked to hold one answer
const shortestRound = 1 // seconds between two calls of a wait
const grace = 0.5 // seconds that the last answer of a wait may be late
const longestTimeout = 86_400 // seconds: more is a number of milliseconds
const answerLimit = 1 << 20 // bytes

export interface ClientOptions {
  /** The base address of the project, which may have a path. */
  baseURL: string
  apiKey: string
  /** Seconds that each try of a call may take. Default: 10. */
  timeout?: number
  /** What sends the calls, in place of the global fetch. */
  fetch?: typeof globalThis.fetch
}

export interface CallOptions {
  /** Cancels the call: it fails with the signal's reason, which is an AbortError unless you chose another. */
  signal?: AbortSignal | undefined
}

export interface StartOptions extends CallOptions {
  /**
   * The same key for each try to start one verification, or to deliver one code. Default: a new key for each call of `start`; for
   * `deliver` none, because the server knows a repetition by the number and the code.
   */
  idempotencyKey?: string | undefined
}

export interface WaitOptions extends CallOptions {
  /** Seconds to wait at most. Default: until the status is final. */
  timeout?: number | undefined
  /** Is called for each new hint of the request while it is pending. */
  onHint?: ((status: Status) => void) | undefined
}

interface Call extends CallOptions {
  path: string
  query?: Record<string, string | number | undefined>
  /** Makes it a POST. */
  body?: unknown
  idempotencyKey?: string | undefined
  /** The fields of the answer that are strings in every version of the service. */
  expect: readonly string[]
  /** Seconds that one try may take. */
  timeout?: number
  shouldRetry?: (error: PhoneProofError) => boolean
}

const statusFields = ['status', 'phoneNumber', 'expiresAt']
const requestFields = ['requestId', ...statusFields]

/**
 * A client of one project. All methods fail with a PhoneProofError.
 *
 * A call that got no answer, 429, 500, 502, 503 or 504 is tried up to three times in all, after Retry-After if that is at most ten
 * seconds. A call of `confirm` that got no answer is followed by the status instead.
 */
export class PhoneProof {
  readonly #baseURL: string
  readonly #apiKey: string
  readonly #timeout: number
  readonly #fetch: typeof globalThis.fetch

  constructor({ baseURL, apiKey, timeout = 10, fetch = globalThis.fetch }: ClientOptions) {
    this.#baseURL = parseBaseURL(baseURL)
    if (!isVisibleASCII(apiKey)) {
      throw new PhoneProofError('invalid_api_key', 'apiKey must be one line of ASCII without blanks')
    }
    this.#apiKey = apiKey
    checkTimeout(timeout, 0.001)
    this.#timeout = timeout
    this.#fetch = fetch
  }

  /** Starts a verification. With `deliver: 'CODE'` it fails with a CodesUnsupportedError if the server is too old to send codes. */
  async start(params: StartParams, { idempotencyKey = newIdempotencyKey(), signal }: StartOptions = {}): Promise<Started> {
    const started = await this.#send<Started>({
      path: '/api/verify/init',
      body: params,
      idempotencyKey,
      expect: ['requestId', 'expectedText', 'expiresIn', 'expiresAt'],
      signal,
    })
    if (params.deliver === 'CODE' && typeof started.codeLength !== 'number') {
      throw new CodesUnsupportedError('codes_unsupported', 'the server is too old to send codes, and sent none', { status: 200 })
    }
    return started
  }

  /**
   * Has a code that you made sent to a number. It is stored when this returns, and sent then: `get` with the `deliveryId` shows how it
   * went. You check the code.
   */
  async deliver(params: DeliverParams, { idempotencyKey, signal }: StartOptions = {}): Promise<Delivered> {
    return this.#send({ path: '/api/verify/deliver', body: params, idempotencyKey, expect: ['deliveryId'], signal })
  }

  /** Reads where a verification stands. */
  async status(requestId: string, { signal }: CallOptions = {}): Promise<Status> {
    return this.#send({ path: '/api/verify/status', query: { id: checkID(requestId) }, expect: statusFields, signal })
  }

  /**
   * Waits until a verification is VERIFIED or EXPIRED. When the time is up it returns the last status, which is PENDING, and fails
   * with timed_out if none came.
   */
  async wait(requestId: string, { timeout, signal, onHint }: WaitOptions = {}): Promise<Status> {
    checkID(requestId)
    if (timeout !== undefined) checkTimeout(timeout)
    const deadline = timeout === undefined ? Infinity : now() + timeout
    const limit = limitTime(timeout === undefined ? undefined : timeout + grace, signal)
    let last: Status | undefined
    try {
      for (;;) {
        const begin = now()
        const hold = Math.floor(Math.max(0, Math.min(longestWait, deadline - begin)))
        const status = await this.#send<Status>({
          path: '/api/verify/status',
          query: { id: requestId, wait: `${hold}s`, hint: onHint && (last?.hint ?? '') },
          expect: statusFields,
          timeout: hold + this.#timeout,
          signal: limit.signal,
        })
        if (status.status === 'VERIFIED' || status.status === 'EXPIRED') return status
        if (status.hint !== undefined && status.hint !== last?.hint) onHint?.(status)
        last = status
        await sleep(Math.min(begin + shortestRound, deadline) - now(), limit.signal)
        if (now() >= deadline) return status
      }
    } catch (error) {
      if (last && error instanceof PhoneProofError && now() >= deadline && !signal?.aborted) return last
      throw error
    } finally {
      limit.stop()
    }
  }

  /**
   * Redeems a session code. The request must come from the session that started it: a SessionProof takes care of that.
   *
   * It fails with an AlreadyConfirmedError if a code was redeemed before. If the answer is lost, the status shows whether the code was
   * redeemed: it is returned if it is VERIFIED; else the error says what happened to the call.
   */
  async confirm(requestId: string, code: string, { signal }: CallOptions = {}): Promise<Status> {
    try {
      return await this.#send<Status>({
        path: '/api/verify/confirm',
        body: { requestId: checkID(requestId), code },
        expect: statusFields,
        signal,
        shouldRetry: (error) => shouldRetry(error) && isOutcomeKnown(error), // nothing was counted
      })
    } catch (error) {
      if (signal?.aborted || isOutcomeKnown(error)) throw error
      const status = await this.status(requestId, { signal }).catch(() => undefined)
      signal?.throwIfAborted()
      if (status?.status !== 'VERIFIED') throw error
      return status
    }
  }

  /** Ends a pending verification: it becomes EXPIRED with the hint CANCELED. */
  async cancel(requestId: string, { signal }: CallOptions = {}): Promise<Status> {
    const body = { requestId: checkID(requestId) }
    return this.#send({ path: '/api/verify/cancel', body, expect: statusFields, signal })
  }

  /** Sends the event of a verification that has ended once more. The API key needs the scope Redeliver. */
  async redeliver(requestId: string, { signal }: CallOptions = {}): Promise<StoredRequest> {
    const body = { requestId: checkID(requestId) }
    return this.#send({ path: '/api/verify/redeliver', body, expect: requestFields, signal })
  }

  /** Reads a stored request with the attempts to deliver its events. The API key needs the scope Read. */
  async get(requestId: string, { signal }: CallOptions = {}): Promise<StoredRequest> {
    const path = `/api/verify/requests/${encodeURIComponent(checkID(requestId))}`
    return this.#send({ path, expect: requestFields, signal })
  }

  /** Iterates over the stored requests, newest first. The API key needs the scope Read. */
  list(params: ListParams = {}, { signal }: CallOptions = {}): AsyncGenerator<StoredRequest, void, undefined> {
    return this.#iterate((cursor) => ({ path: '/api/verify/requests', query: { ...params, cursor }, expect: [], signal }))
  }

  /** Iterates over the stored requests of a phone number, newest first. The API key needs the scope Read. */
  find(params: FindParams, { signal }: CallOptions = {}): AsyncGenerator<StoredRequest, void, undefined> {
    return this.#iterate((cursor) => ({ path: '/api/verify/requests/find', body: { ...params, cursor }, expect: [], signal }))
  }

  /** Reads the description of the server's API (OpenAPI 3.1). */
  async openAPI({ signal }: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#send({ path: '/openapi.json', expect: ['openapi'], signal })
  }

  async *#iterate(page: (cursor: string | undefined) => Call): AsyncGenerator<StoredRequest, void, undefined> {
    let cursor: string | undefined
    do {
      const { requests, nextCursor } = await this.#send<RequestList>(page(cursor))
      const isPage = Array.isArray(requests) && requests.every((request) => isObject(request) && hasStrings(request, requestFields))
      if (!isPage || (nextCursor !== undefined && typeof nextCursor !== 'string')) {
        throw new PhoneProofError('unexpected_answer', 'the answer is no page of requests', { status: 200 })
      }
      yield* requests
      cursor = nextCursor
    } while (cursor)
  }

  async #send<Answer>(call: Call): Promise<Answer> {
    if (call.idempotencyKey !== undefined && !isVisibleASCII(call.idempotencyKey)) {
      throw new PhoneProofError('invalid_argument', 'idempotencyKey must be ASCII without blanks', { field: 'Idempotency-Key' })
    }
    for (let count = 1; ; count++) {
      try {
        return (await this.#sendOnce(call)) as Answer
      } catch (error) {
        const again = error instanceof PhoneProofError && (call.shouldRetry ?? shouldRetry)(error)
        if (count === tries || !again) throw error
        await sleep(Math.max(error.retryAfter ?? 0, Math.random() * firstPause * 2 ** (count - 1)), call.signal)
      }
    }
  }

  async #sendOnce({ path, query = {}, body, idempotencyKey, expect, timeout = this.#timeout, signal }: Call): Promise<unknown> {
    const url = new URL(this.#baseURL + path)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const limit = limitTime(timeout, signal)
    try {
      const fetch = this.#fetch // which takes no other `this`
      const response = await fetch(url.href, {
        ...post,
        headers: {
          Authorization: `Bearer ${this.#apiKey}`,
          'Content-Type': 'application/json',
          'User-Agent': `phoneproof-typescript/${version}`,
          ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
        },
        cache: 'no-store', // frameworks replace fetch by one that caches
        redirect: 'manual',
        signal: limit.signal,
      })
      const bytes = response.body ? await readBytes(response.body, answerLimit) : new Uint8Array()
      return readAnswer(response, bytes, expect)
    } catch (error) {
      limit.signal.throwIfAborted()
      if (error instanceof PhoneProofError) throw error
      throw new PhoneProofError('connection_failed', `no answer: ${nameCause(error)}`)
    } finally {
      limit.stop()
    }
  }
}

/** Reports whether it is known what became of a call. */
export function isOutcomeKnown(error: unknown): boolean {
  if (!(error instanceof PhoneProofError)) return false
  const { code, status } = error
  if (['connection_failed', 'timed_out', 'unexpected_answer', 'store_unavailable'].includes(code)) return false
  return status < 500 || status === 503
}

function shouldRetry({ code, status, rateLimit, retryAfter = 0 }: PhoneProofError): boolean {
  if (retryAfter > longestRetryAfter) return false
  if (status === 429) return code !== 'codes_limited' && rateLimit !== 'declined'
  return [500, 502, 503, 504].includes(status) || code === 'connection_failed' || code === 'timed_out'
}

/** Returns the answer, or throws what it says went wrong. Bytes are undefined if there were too many. */
function readAnswer(response: Response, bytes: Uint8Array | undefined, expect: readonly string[]): unknown {
  const { status, headers } = response
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    throw new PhoneProofError('redirected', 'the answer is a redirect, which is not followed: check baseURL', { status })
  }
  const answer = bytes && parseObject(bytes)
  if (response.ok && answer && hasStrings(answer, expect)) return answer

  const details: ErrorDetails = { status }
  const requestId = headers.get('X-Request-Id')
  if (requestId !== null) details.httpRequestId = requestId
  const retryAfter = headers.get('Retry-After')
  if (retryAfter) details.retryAfter = parseRetryAfter(retryAfter)
  const rateLimit = /^"([^"]+)"/.exec(headers.get('RateLimit') ?? '')?.[1]
  if (rateLimit !== undefined) details.rateLimit = rateLimit
  const problem = answer?.['error']
  if (response.ok || !isObject(problem) || typeof problem['code'] !== 'string') {
    const what = bytes ? 'is not what the service answers; is a proxy between?' : `has more than ${answerLimit} bytes`
    throw new PhoneProofError('unexpected_answer', `the answer with status ${status} ${what}`, details)
  }
  const { code, message, field, reason } = problem
  if (typeof field === 'string') details.field = field
  if (typeof reason === 'string') details.reason = reason
  const ErrorType = code === 'already_confirmed' ? AlreadyConfirmedError : PhoneProofError
  throw new ErrorType(code, typeof message === 'string' ? message : `status ${status}`, details)
}

/** Returns seconds: a day at most, also for what is neither a number nor a date. */
function parseRetryAfter(value: string): number {
  const seconds = /^[0-9]+$/.test(value) ? Number(value) : value.endsWith('GMT') ? Date.parse(value) / 1000 - now() : NaN
  return seconds < longestTimeout ? Math.max(0, seconds) : longestTimeout
}

function hasStrings(answer: Record<string, unknown>, fields: readonly string[]): boolean {
  return fields.every((field) => typeof answer[field] === 'string')
}

/** Names what made fetch fail, such as ECONNREFUSED. What another implementation throws may hold headers, so only its name is used. */
function nameCause(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection failed'
  const { cause } = error
  return cause instanceof Error ? String((cause as { code?: string }).code ?? cause.message) : error.name
}

function isVisibleASCII(text: unknown): boolean {
  return typeof text === 'string' && /^[\x21-\x7e]+$/.test(text)
}

function parseBaseURL(baseURL: string): string {
  if (typeof baseURL !== 'string' || !/^https?:\/\/[^\s?#@\\]+$/i.test(baseURL) || !URL.canParse(baseURL)) {
    throw new PhoneProofError('invalid_base_url', 'baseURL must be an http or https address without user, query and fragment')
  }
  return new URL(baseURL).href.replace(/\/+$/, '')
}

function checkTimeout(timeout: number, least = 0): void {
  if (typeof timeout !== 'number' || !(timeout >= least && timeout <= longestTimeout)) {
    throw new PhoneProofError('invalid_argument', `timeout must be a number of seconds from ${least} to ${longestTimeout}`)
  }
}

/** Returns the id. What would be another path is refused. */
function checkID(requestId: string): string {
  if (typeof requestId !== 'string' || ['', '.', '..'].includes(requestId)) {
    throw new PhoneProofError('invalid_argument', 'requestId must be the requestId of a verification', { field: 'requestId' })
  }
  return requestId
}

/** Makes a key in the form that the service knows as one of a single call: 130 random bits. */
function newIdempotencyKey(): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
  return 'once_' + Array.from(crypto.getRandomValues(new Uint8Array(26)), (byte) => alphabet[byte % 32]).join('')
}

const now = () => Date.now() / 1000

/** Makes a signal that is aborted with the caller's, and after a time. It must be stopped. */
function limitTime(seconds: number | undefined, signal: AbortSignal | undefined): { signal: AbortSignal; stop(): void } {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const cancel = () => controller.abort(signal?.reason)
  const end = () => controller.abort(new PhoneProofError('timed_out', `no answer within ${seconds} s`))
  const timer = seconds === undefined ? undefined : setTimeout(end, seconds * 1000)
  signal?.addEventListener('abort', cancel)
  const stop = () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', cancel)
  }
  return { signal: controller.signal, stop }
}

/** Ends after some seconds, or fails with the reason of the signal. */
async function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  if (seconds <= 0) return
  await new Promise<void>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      if (signal?.aborted) reject(signal.reason)
      else resolve()
    }
    const timer = setTimeout(end, seconds * 1000)
    signal?.addEventListener('abort', end)
  })
}
