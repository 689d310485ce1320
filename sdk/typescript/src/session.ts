import { isOutcomeKnown, type PhoneProof, type StartOptions, type CallOptions } from './client.js'
import { AlreadyConfirmedError, PhoneProofError, SessionError } from './errors.js'
import type { Assurance, Started, StartParams, Status } from './types.js'

/** Keeps one text for each session of your website, on the server, as long as the session lasts. Its functions may be async. */
export interface SessionStore {
  load(sessionId: string): string | null | undefined | Promise<string | null | undefined>
  save(sessionId: string, state: string): unknown
  remove(sessionId: string): unknown
}

export interface SessionProofOptions {
  /** What may have verified the number beside `session`: all others are weaker. */
  accept?: readonly Assurance[]
}

export interface RedeemOptions extends CallOptions {
  /** The id of the session from now on. It must be a new one: the user's browser gets it, and no other knows it. */
  newSessionId: string
  /** The requestId of the address that the browser came back to: it must be that of the session. Leave it out for typed digits. */
  returnedRequestId?: string | null | undefined
}

interface State {
  /** The request that the session began. */
  request: string
  /** Whether the answer of a confirm was lost. */
  lost?: boolean
  /** The number that the session verified. */
  verified?: string
}

/** The codes of refusals that show that no earlier confirm of the session was carried out. */
const settling = [
  'already_confirmed', 'wrong_code', 'not_proven', 'request_expired', 'confirmation_not_needed', 'request_not_found',
]

/**
 * Verifies numbers for the sessions of a website: a code counts for the session that began the request, and for no other. The id
 * of the request stays in the session's state, and is never an argument.
 */
export class SessionProof {
  readonly #client: PhoneProof
  readonly #store: SessionStore
  readonly #accept: readonly string[]

  constructor(client: PhoneProof, store: SessionStore, { accept = [] }: SessionProofOptions = {}) {
    this.#client = client
    this.#store = store
    this.#accept = ['session', ...accept]
  }

  /** Starts a verification for a session. Only the latest one of a session counts. */
  async begin(sessionId: string, params: StartParams, options: StartOptions = {}): Promise<Started> {
    if (typeof sessionId !== 'string' || sessionId === '') {
      throw new PhoneProofError('invalid_argument', 'sessionId must be the id of a session')
    }
    const assurance = params.deliver === 'CODE' ? null : 'SESSION' // a code that is sent implies it
    const started = await this.#client.start({ ...params, assurance }, options)
    await this.#save(sessionId, { request: started.requestId, lost: false })
    return started
  }

  /**
   * Redeems a code for the request that the session began, and returns its status. The number is then verified for the session
   * `newSessionId`, and the former session is removed: send the new id to the browser.
   *
   * It fails with a SessionError if the session may not redeem it, and as `confirm` does. Try again after an error without an answer:
   * a code that was redeemed is found then.
   */
  async redeem(sessionId: string | undefined = '', code: string, options: RedeemOptions): Promise<Status> {
    const { newSessionId, returnedRequestId, signal } = options
    if (typeof newSessionId !== 'string' || newSessionId === '' || newSessionId === sessionId) {
      throw new SessionError('session_id_not_new', 'newSessionId must be new: who knew the former id would be verified, too')
    }
    const state = await this.#loadOpen(sessionId)
    if ('returnedRequestId' in options && returnedRequestId !== state.request) {
      throw new SessionError('other_request', 'the code belongs to a request that this session did not begin')
    }
    const status = await this.#confirm(sessionId, state, code, { signal })
    if (status.status !== 'VERIFIED' || !this.#accept.includes(status.assurance ?? '')) {
      throw new SessionError('not_verified', `the status is ${status.status}, by ${status.assurance ?? 'a message'}, which does not do`)
    }
    await this.#loadOpen(sessionId, state.request)
    await this.#save(newSessionId, { request: state.request, verified: status.phoneNumber })
    await this.#store.remove(sessionId)
    return status
  }

  /** Returns the number that the session verified, in E.164 form. */
  async verified(sessionId: string | undefined): Promise<string | undefined> {
    return (await this.#load(sessionId))?.verified
  }

  async #confirm(sessionId: string, state: State, code: string, options: CallOptions): Promise<Status> {
    try {
      return await this.#client.confirm(state.request, code, options)
    } catch (error) {
      // Not while a confirm is under way: it may be that of another browser, which has the same session.
      if (error instanceof AlreadyConfirmedError && state.lost) {
        const status = await this.#client.status(state.request, options)
        if (status.status === 'VERIFIED') return status
      }
      const isSettled = error instanceof PhoneProofError && settling.includes(error.code)
      const lost = !isOutcomeKnown(error) || (state.lost === true && !isSettled)
      if (lost !== state.lost) await this.#save(sessionId, { ...(await this.#loadOpen(sessionId, state.request)), lost })
      throw error
    }
  }

  /**
   * Returns the state of a session that has a request to redeem; if one is named, that one. It is called again after each confirm:
   * meanwhile another browser, which has the same session, may have redeemed the request or begun another one.
   */
  async #loadOpen(sessionId: string, request?: string): Promise<State> {
    const state = await this.#load(sessionId)
    if (state?.lost === undefined || (request ?? state.request) !== state.request) {
      throw new SessionError('no_request', 'this session has no such verification that is open')
    }
    return state
  }

  async #load(sessionId: string | undefined): Promise<State | undefined> {
    const state = sessionId && (await this.#store.load(sessionId))
    return state ? (JSON.parse(state) as State) : undefined
  }

  async #save(sessionId: string, state: State): Promise<void> {
    await this.#store.save(sessionId, JSON.stringify(state))
  }
}
