// What the HTTP API takes and answers, with the names of api/openapi.yaml. Times are strings (RFC 3339, UTC, milliseconds).
// Answers are the parsed JSON as it came: fields that a later version adds are there, too.

/** A string of an open list: later versions of the service may answer others. */
export type Open<Known extends string> = Known | (string & {})

export type Method = Open<'WHATSAPP' | 'TELEGRAM'>

/** What verified the number, if it was not the messenger's word alone. `session` needs a redeemed code; the others are weaker. */
export type Assurance = Open<'session' | 'shared_contact' | 'echo'>

export type VerificationStatus = Open<'PENDING' | 'VERIFIED' | 'EXPIRED'>

/** Why a request is not verified yet, or never was. */
export type Hint = Open<
  | 'NUMBER_HIDDEN' | 'OTHER_NUMBER' | 'TOO_LATE' | 'AWAITING_CONTACT' | 'AWAITING_CONFIRMATION' | 'TEXT_CHANGED'
  | 'TEXT_REFUSED' | 'CONTACT_REFUSED' | 'NUMBER_ANONYMOUS' | 'NO_QUESTION' | 'DECLINED' | 'WRONG_CODE' | 'CANCELED'
  | 'NUMBER_WRONG' | 'CODE_NOT_SENT'
>

/** What `start` takes. `null` is the same as none. */
export interface StartParams {
  /** The number with its country code, as the user typed it. */
  phoneNumber: string
  /** The messenger that the user sends the text from. Default: WHATSAPP. */
  method?: Method | null
  /** Whom the verification is for, such as your user's id. Required with `deliver`. */
  subject?: string | null
  /** Your name for the request, of 1 to 128 characters. */
  reference?: string | null
  /** Your data: at most 16 pairs. */
  metadata?: Record<string, string> | null
  /** The language of the texts for the user (BCP 47). */
  locale?: string | null
  /** Where the page leads back to. */
  returnURL?: string | null
  assurance?: Open<'SESSION' | 'POSSESSION'> | null
  /** The name of one of the project's purposes. */
  purpose?: string | null
  /** The user's browser and system, such as CHROME/WINDOWS. */
  browser?: string | null
  /** CODE sends eight digits to the number. */
  deliver?: Open<'CODE'> | null
}

/** What `deliver` takes. Fields that `start` has, too, mean the same. */
export interface DeliverParams {
  phoneNumber: string
  /** 4 to 10 digits, or also letters from A to Z if the API key may send them. */
  code: string
  method?: Method | null
  locale?: string | null
  subject?: string | null
}

/** The answer of `deliver`. */
export interface Delivered {
  /** What `get` knows it by. */
  deliveryId: string
  test?: boolean
  [field: string]: unknown
}

/** A started verification. Send the user to `pageURL`, or without a page to the link. */
export interface Started {
  requestId: string
  /** Opens WhatsApp with the text prepared. Present with the method WHATSAPP. */
  waLink?: string
  /** Opens Telegram at the project's bot. Present with the method TELEGRAM. */
  tgLink?: string
  /** The text that the user is expected to send. It holds the code: do not log it. */
  expectedText: string
  /** Present if the project has a page. It holds the code, encrypted: do not log it. */
  pageURL?: string
  /** Seconds with their unit, such as 600s. */
  expiresIn: string
  expiresAt: string
  /** How many digits are sent to the number. Present with `deliver`. */
  codeLength?: number
  test?: boolean
  [field: string]: unknown
}

/** Where a verification stands. VERIFIED and EXPIRED are final. */
export interface Status {
  status: VerificationStatus
  /** The number of `start` in E.164 form. */
  phoneNumber: string
  expiresAt: string
  method?: Method
  verifiedAt?: string
  /** The number that the messenger reported. */
  actualPhoneNumber?: string
  assurance?: Assurance
  via?: Open<'CODE'>
  codeDelivery?: Open<'SENT' | 'NOT_SENT' | 'UNKNOWN'>
  hint?: Hint
  reference?: string
  metadata?: Record<string, string>
  test?: boolean
  [field: string]: unknown
}

/** A stored request, as `get`, `list`, `find` and `redeliver` answer it. */
export interface StoredRequest extends Status {
  /** The requestId of `start`, or the name of a request that was made with kubectl. */
  requestId: string
  /** DELIVERY for what `deliver` stored. */
  kind?: Open<'DELIVERY'>
  method: Method
  createdAt: string
  locale?: string
  /** The name of the API key that started it. */
  apiKey?: string
  /** What the messenger answered to the code. Do not show it to users. */
  codeReason?: string
  /** How far the event of the request is. */
  delivery?: EventDelivery
  /** The last attempts to deliver events, newest first. In the answer of a single request alone. */
  attempts?: DeliveryAttempt[]
}

export interface EventDelivery {
  state: Open<'WAITING' | 'DELIVERED' | 'EXHAUSTED'>
  attempts: number
  nextAttemptAt?: string
  deliveredAt?: string
  [field: string]: unknown
}

export interface DeliveryAttempt {
  at: string
  event: string
  /** The HTTP status of the receiver, if it answered. */
  statusCode?: number
  /** Why the attempt failed. */
  reason?: string
  [field: string]: unknown
}

/** Which requests `list` returns: all without parameters. */
export interface ListParams {
  status?: VerificationStatus
  /** Requests with exactly this reference. */
  reference?: string
  /** DELIVERY for what `deliver` stored, which is listed in no other way. */
  kind?: Open<'DELIVERY'>
  /** Requests that were created then or later. */
  since?: string
  /** How many requests one call asks for: 1 to 200, default 50. The iteration goes on to the last page. */
  limit?: number
}

/** Which requests `find` returns. */
export interface FindParams {
  phoneNumber: string
  status?: VerificationStatus
  kind?: Open<'DELIVERY'>
  since?: string
  limit?: number
}

/** One page of requests. */
export interface RequestList {
  requests: StoredRequest[]
  nextCursor?: string
  [field: string]: unknown
}

interface EventFields {
  phoneNumber: string
  requestId: string
  projectId: string
  method: Method
  /** When it happened. */
  timestamp: string
  /** True in the events of test keys alone. */
  test?: boolean
  reference?: string
  metadata?: Record<string, string>
  [field: string]: unknown
}

/** A number was verified. */
export interface VerificationSuccess extends EventFields {
  event: 'verification.success' | 'test.verification.success'
  actualPhoneNumber: string
  assurance?: Assurance
  via?: Open<'CODE'>
}

/** A request ended without a verification, or waits for its user. */
export interface VerificationUpdate extends EventFields {
  event:
    | 'verification.expired' | 'verification.declined' | 'verification.attention'
    | 'test.verification.expired' | 'test.verification.declined' | 'test.verification.attention'
  hint?: Hint
}

/** An event of a later version. Its `event` may be any string: the pattern only lets TypeScript tell it from the known ones. */
export interface UnknownEvent {
  event: `another kind: ${string}`
  [field: string]: unknown
}

export type WebhookEvent = VerificationSuccess | VerificationUpdate | UnknownEvent
