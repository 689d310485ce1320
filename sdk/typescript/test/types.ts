// Compiled by `npm test`, and never run. Each line below a mark must be refused: if it compiles, the mark is an error.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { handleExpress, handleRequest, PhoneProof, receive, SessionProof, type WebhookEvent } from 'PhoneProof'

const options = { secrets: ['whsec_AAAA'] }

export async function receiveEvents(headers: Headers, request: IncomingMessage, text: string, parsed: { event: string }): Promise<void> {
  await receive(options, headers, new Uint8Array())
  await receive(options, request.headers, Buffer.from(text))
  await receive(options, headers, new ArrayBuffer(0))
  // @ts-expect-error a string has other bytes
  await receive(options, headers, text)
  // @ts-expect-error parsed JSON has other bytes
  await receive(options, headers, parsed)
  // @ts-expect-error one secret is no list
  await receive({ secrets: 'whsec_AAAA' }, headers, new Uint8Array())
  // @ts-expect-error x-webhook-signature requires the hook
  await receive({ ...options, bodySignature: {} }, headers, new Uint8Array())
}

export function narrow(event: WebhookEvent): string | undefined {
  if (event.event === 'verification.success') return event.actualPhoneNumber
  if (event.event === 'verification.attention') return event.hint
  // @ts-expect-error it may be of a later version
  return event.phoneNumber
}

export const ofNode: (request: IncomingMessage, response: ServerResponse) => unknown = handleExpress({ ...options, onEvent: narrow })
export const ofFetch: (request: Request) => Promise<Response> = handleRequest({ ...options, onTest: narrow, seen: new Set<string>() })

export async function useSession(client: PhoneProof, session: SessionProof): Promise<void> {
  const status = await client.status('vr1')
  const later: unknown = status['aFieldOfALaterVersion']
  if (status.status === 'A_LATER_ONE') throw later
  await session.redeem('id', '123456', { newSessionId: 'new' })
  // @ts-expect-error the session needs a new id
  await session.redeem('id', '123456', {})
  // @ts-expect-error the request comes from the session
  await session.redeem('id', '123456', { newSessionId: 'new', requestId: 'vr1' })
}
