/** What is known of a failed call. */
export interface ErrorDetails {
  /** What is wrong with a phone number, with the code invalid_phone_number. */
  reason?: string
  /** The field, query parameter or header at fault. */
  field?: string
  /** The HTTP status of the answer; 0 if there was none. */
  status?: number
  /** X-Request-Id of the answer, which the service's log has, too. */
  httpRequestId?: string
  /** How many seconds to wait before another try. */
  retryAfter?: number
  /** The limit that was met, by the name that the header RateLimit has, such as `declined`. */
  rateLimit?: string
}

/**
 * The one type of all errors of this library. Decide by `code`: one of the service, or one of the library's own. `message` is for
 * developers, and holds no API key, secret or number.
 */
export class PhoneProofError extends Error {
  override readonly name: string = 'PhoneProofError'
  readonly code: string
  readonly reason: string | undefined
  readonly field: string | undefined
  readonly status: number
  readonly httpRequestId: string | undefined
  readonly retryAfter: number | undefined
  readonly rateLimit: string | undefined

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(`${code}: ${message}`)
    Object.assign(this, details)
    this.code = code
    this.status = details.status ?? 0
  }
}

/** A code of the request was redeemed before (already_confirmed), perhaps in another session: it is no success. */
export class AlreadyConfirmedError extends PhoneProofError {
  override readonly name = 'AlreadyConfirmedError'
}

/** The server is too old to send codes (codes_unsupported): nothing was sent to the number, and the link works. */
export class CodesUnsupportedError extends PhoneProofError {
  override readonly name = 'CodesUnsupportedError'
}

/** A webhook is not authentic: missing_signature, invalid_signature, stale_timestamp or already_seen. */
export class SignatureError extends PhoneProofError {
  override readonly name = 'SignatureError'
}

/** A session may not redeem a code: no_request, other_request, session_id_not_new or not_verified. */
export class SessionError extends PhoneProofError {
  override readonly name = 'SessionError'
}
