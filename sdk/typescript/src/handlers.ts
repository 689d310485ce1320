import { readBytes } from './bytes.js'
import { PhoneProofError, SignatureError } from './errors.js'
import type { WebhookEvent } from './types.js'
import { bodyLimit, createReceiver, isTestEvent, rawBytesSentence, type ReceiverOptions, type RequestHeaders } from './webhook.js'

/** What a callback gets beside the event. */
export interface Delivery {
  /** The webhook-id, which is the same with each attempt: make it unique where you store events. */
  id: string
  /** The body as it came. */
  body: Uint8Array
}

export interface HandlerOptions extends Omit<ReceiverOptions, 'bodySignature'> {
  /** Stores a live event. If it fails, the answer is 500, and the event comes again. Required with `secrets`. */
  onEvent?(event: WebhookEvent, delivery: Delivery): unknown
  /** The same for the events of test keys. Required with `testSecrets`. */
  onTest?(event: WebhookEvent, delivery: Delivery): unknown
  /** Also takes events that have x-webhook-signature alone: ids are digests of bodies then. Requires `seen`. */
  bodySignature?: boolean
  /** Knows the ids of the events that were stored: these are acknowledged without a callback. A Set does for one process. */
  seen?: {
    has(id: string): boolean | Promise<boolean>
    add(id: string): unknown
  }
  /** Is called with what made the answer 500. Default: console.error. */
  onError?(error: unknown): void
}

/** The part of a request of Express, or of Node.js, that is used. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined }
  readonly body?: unknown
  readonly readableEnded?: boolean
  iterator(options: { destroyOnReturn: boolean }): AsyncIterable<Uint8Array>
}

/** The part of a response of Express, or of Node.js, that is used. */
export interface NodeResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(text: string): unknown
}

interface Answer {
  status: number
  text: string
}

/** Makes a handler of webhooks that takes a Request and returns a Response, for frameworks that have these. */
export function handleRequest(options: HandlerOptions): (request: Request) => Promise<Response> {
  const answer = createHandler(options)
  return async (request) => {
    const { status, text } = await answer(request.method, request.headers, async () => {
      if (request.bodyUsed) throw new PhoneProofError('not_raw_bytes', rawBytesSentence)
      return request.body ? readBytes(request.body, bodyLimit) : new Uint8Array()
    })
    return new Response(status === 204 ? null : text, { status, headers: status === 405 ? { Allow: 'POST' } : {} })
  }
}

/**
 * Makes a handler of webhooks for Express, and for the http module of Node.js. It reads the body, or takes the Buffer of
 * express.raw(). Behind express.json() it answers 500: the raw body is gone there.
 */
export function handleExpress(options: HandlerOptions): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  const answer = createHandler(options)
  return async (request, response) => {
    const { status, text } = await answer(request.method, request.headers, async () => {
      if (ArrayBuffer.isView(request.body)) return request.body as Uint8Array
      if (request.readableEnded) throw new PhoneProofError('not_raw_bytes', rawBytesSentence)
      return readBytes(request.iterator({ destroyOnReturn: false }), bodyLimit) // destroyed, it could not be answered
    })
    response.statusCode = status
    if (status === 405) response.setHeader('Allow', 'POST')
    response.end(text)
  }
}

/** Returns what answers a delivery. Its function read returns undefined if the body is too large. */
function createHandler(options: HandlerOptions) {
  const { onEvent, onTest, seen, onError = console.error, bodySignature, ...receiverOptions } = options
  if ((options.secrets?.length && !onEvent) || (options.testSecrets?.length && !onTest)) {
    throw new PhoneProofError('invalid_argument', 'secrets require onEvent, and testSecrets require onTest')
  }
  if (bodySignature && !seen) throw new PhoneProofError('invalid_argument', 'bodySignature requires seen, against replays')
  // An event whose callback failed may come again, so that `seen` finds repetitions.
  const check = createReceiver(bodySignature ? { ...receiverOptions, bodySignature: { seen: () => false } } : receiverOptions)

  async function handle(headers: RequestHeaders, read: () => Promise<Uint8Array | undefined>): Promise<void> {
    const bytes = await read().catch((error) => {
      if (error instanceof PhoneProofError) throw error
      throw new PhoneProofError('incomplete_body', 'the body did not arrive as a whole')
    })
    if (!bytes) throw new PhoneProofError('body_too_large', `the body has more than ${bodyLimit} bytes`)
    const { event, id, body } = await check(headers, bytes)
    const key = isTestEvent(event) ? `test:${id}` : id // a holder of a test secret chooses ids, too
    if (await seen?.has(key)) return
    await (isTestEvent(event) ? onTest : onEvent)?.(event, { id, body })
    await seen?.add(key)
  }

  return async (method: string | undefined, headers: RequestHeaders, read: () => Promise<Uint8Array | undefined>): Promise<Answer> => {
    if (method !== 'POST') return { status: 405, text: 'webhooks are sent by POST' }
    try {
      await handle(headers, read)
      return { status: 204, text: '' }
    } catch (error) {
      if (error instanceof SignatureError) return { status: 401, text: error.message }
      const code = error instanceof PhoneProofError ? error.code : ''
      if (code === 'body_too_large') return { status: 413, text: code }
      if (code === 'invalid_event' || code === 'incomplete_body') return { status: 400, text: code }
      onError(error)
      return { status: 500, text: code === 'not_raw_bytes' ? rawBytesSentence : 'the event was not stored' }
    }
  }
}
