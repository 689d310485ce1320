import { joinBytes, parseObject } from './bytes.js'
import { PhoneProofError, SignatureError } from './errors.js'
import type { UnknownEvent, VerificationSuccess, VerificationUpdate, WebhookEvent } from './types.js'

/** How many bytes the body of an event may have. */
export const bodyLimit = 1 << 16

export interface ReceiverOptions {
  /** The secrets of live events: the project's and, while it is rotated, the one before. */
  secrets?: readonly string[]
  /** The secrets of the events of test keys. Those events count under these alone, and live ones never do. */
  testSecrets?: readonly string[]
  /** How many seconds the time of an event may be off. Default: 300. */
  tolerance?: number
  /**
   * Also takes events that have x-webhook-signature alone, whose signature covers no time. `seen` stores the digest of a body, and
   * reports whether it was stored before.
   */
  bodySignature?: { seen(digest: string): boolean | Promise<boolean> }
}

/** Headers of a request: those of fetch, or an object as Node.js has it. Names are not case-sensitive. */
export type RequestHeaders = Headers | { readonly [name: string]: string | readonly string[] | undefined }

/** An authentic event, its id, which is the same with each attempt, and its body. */
export interface ReceivedEvent {
  event: WebhookEvent
  id: string
  body: Uint8Array
}

interface Secret {
  /** The key of Standard Webhooks. */
  standard: Uint8Array<ArrayBuffer>
  /** The key of x-webhook-signature. */
  literal: Uint8Array<ArrayBuffer>
}

interface Secrets {
  live: readonly Secret[]
  test: readonly Secret[]
}

/**
 * Checks an event and returns it. The body is that of the request, byte by byte, before anything parsed or decoded it.
 *
 * It fails with a SignatureError if the event is not authentic, and with a PhoneProofError of the code not_raw_bytes, body_too_large,
 * invalid_event, no_secret or invalid_argument.
 */
export async function receive(options: ReceiverOptions, headers: RequestHeaders, body: Uint8Array | ArrayBuffer): Promise<WebhookEvent> {
  const { event } = await createReceiver(options)(headers, body)
  return event
}

/** Checks the options, and returns what checks events. */
export function createReceiver(
  options: ReceiverOptions,
): (headers: RequestHeaders, body: Uint8Array | ArrayBuffer) => Promise<ReceivedEvent> {
  const { tolerance = 300, bodySignature } = options
  if (typeof tolerance !== 'number' || !(tolerance > 0)) throw invalidArgument('tolerance must be a number of seconds above 0')
  const secrets = parseSecrets(options)
  const isStale = (time: number) => !(Math.abs(Date.now() / 1000 - time) <= tolerance)

  return async (headers, rawBody) => {
    const body = copyBytes(rawBody)
    if (body.length > bodyLimit) throw new PhoneProofError('body_too_large', `the body has more than ${bodyLimit} bytes`)
    const id = getHeader(headers, 'webhook-id')
    const sent = getHeader(headers, 'webhook-timestamp')
    const presented = getHeader(headers, 'webhook-signature')
    if (id && sent && presented) {
      if (!/^[0-9]{1,12}$/.test(sent)) throw new SignatureError('invalid_signature', 'webhook-timestamp must be a number')
      if (isStale(Number(sent))) throw staleTimestamp('webhook-timestamp')
      const content = joinBytes([encode(`${id}.${sent}.`), body])
      const signatures = presented.split(' ').flatMap((part) => (part.startsWith('v1,') ? decodeBase64(part.slice(3)) : []))
      const event = await checkEvent(secrets, 'standard', content, signatures, body)
      return { event, id: bodySignature ? await hash(body) : id, body }
    }
    const hex = getHeader(headers, 'x-webhook-signature')
    if (!bodySignature || presented || !hex) {
      throw new SignatureError('missing_signature', 'the event needs webhook-id, webhook-timestamp and webhook-signature')
    }
    const event = await checkEvent(secrets, 'literal', body, decodeHex(hex), body)
    if (isStale(Date.parse(String(event['timestamp'])) / 1000)) throw staleTimestamp('timestamp of the body')
    const digest = await hash(body)
    if (await bodySignature.seen(digest)) throw new SignatureError('already_seen', 'the event came before')
    return { event, id: digest, body }
  }
}

/** Returns the event of a body that a secret of its kind signed. */
async function checkEvent(
  secrets: Secrets,
  key: keyof Secret,
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array[],
  body: Uint8Array,
): Promise<WebhookEvent> {
  const isLive = await isSigned(secrets.live, key, content, signatures)
  const isTest = await isSigned(secrets.test, key, content, signatures)
  if (!isLive && !isTest) throw new SignatureError('invalid_signature', 'no secret has made the signature')
  const event = parseObject(body)
  if (!event || typeof event['event'] !== 'string') {
    throw new PhoneProofError('invalid_event', 'the body is signed, and no event: it must be a JSON object with the field event')
  }
  if (!(isTestEvent(event as UnknownEvent) ? isTest : isLive)) {
    throw new SignatureError('invalid_signature', 'events of test keys need a secret of testSecrets, and all others one of secrets')
  }
  return event as VerificationSuccess | VerificationUpdate | UnknownEvent
}

/** Reports whether the event is one of a test key: it verifies no number. */
export function isTestEvent({ event }: WebhookEvent): boolean {
  return event.startsWith('test.')
}

/** Reports whether one of the secrets made one of the signatures. All are compared, in constant time. */
async function isSigned(
  secrets: readonly Secret[],
  key: keyof Secret,
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array[],
): Promise<boolean> {
  let found = false
  for (const secret of secrets) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const hmac = await crypto.subtle.importKey('raw', secret[key], algorithm, false, ['sign'])
    const want = new Uint8Array(await crypto.subtle.sign('HMAC', hmac, content))
    for (const signature of signatures) if (isEqual(want, signature)) found = true
  }
  return found
}

function isEqual(want: Uint8Array, got: Uint8Array): boolean {
  let difference = want.length ^ got.length
  want.forEach((byte, i) => (difference |= byte ^ (got[i] ?? 0)))
  return difference === 0
}

function parseSecrets({ secrets = [], testSecrets = [] }: ReceiverOptions): Secrets {
  if (!Array.isArray(secrets) || !Array.isArray(testSecrets)) throw invalidArgument('secrets and testSecrets must be arrays')
  const live = secrets.map(parseSecret)
  const test = testSecrets.map(parseSecret)
  if (live.length + test.length === 0) throw new PhoneProofError('no_secret', 'secrets or testSecrets must have a secret')
  if (live.some((a) => test.some((b) => isEqual(a.standard, b.standard)))) {
    throw invalidArgument('a secret is in secrets and in testSecrets: tests could sign live events')
  }
  return { live, test }
}

function parseSecret(secret: unknown): Secret {
  if (typeof secret !== 'string' || secret === '') throw invalidArgument('a secret is empty or no string')
  const literal = encode(secret)
  const [standard] = secret.startsWith('whsec_') ? decodeBase64(secret.slice('whsec_'.length)) : [literal]
  if (!standard || standard.length === 0) throw invalidArgument('a secret has no base64 after whsec_')
  return { standard, literal }
}

function copyBytes(body: unknown): Uint8Array<ArrayBuffer> {
  if (ArrayBuffer.isView(body)) return joinBytes([new Uint8Array(body.buffer, body.byteOffset, body.byteLength)])
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') return new Uint8Array((body as ArrayBuffer).slice(0))
  throw new PhoneProofError('not_raw_bytes', rawBytesSentence)
}

/** Says why a body that is no Uint8Array is refused. */
export const rawBytesSentence =
  'the body must be the raw bytes of the request (Uint8Array): the signature is over these, and JSON that was parsed or decoded and ' +
  'written again has other bytes. Read the body before any parser does, such as by express.raw({ type: "*/*" })'

function getHeader(headers: RequestHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return (headers as Headers).get(name) ?? undefined
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? []
  return Array.isArray(value) ? value.join(', ') : (value as string | undefined)
}

const encode = (text: string) => new TextEncoder().encode(text)

/** Returns the decoded bytes in an array, which is empty if the text is no base64. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer>[] {
  try {
    return [Uint8Array.from(atob(text), (char) => char.charCodeAt(0))]
  } catch {
    return []
  }
}

function decodeHex(text: string): Uint8Array[] {
  return /^([0-9a-f]{2})+$/.test(text) ? [Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16))] : []
}

/** Returns the SHA-256 of a body in hex. */
async function hash(body: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', body)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function invalidArgument(message: string): PhoneProofError {
  return new PhoneProofError('invalid_argument', message)
}

function staleTimestamp(what: string): SignatureError {
  return new SignatureError('stale_timestamp', `the ${what} is off by more than the tolerance: is this computer's clock right?`)
}
