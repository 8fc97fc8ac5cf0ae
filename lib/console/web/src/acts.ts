// Changes that are asked for: whether the session may, what is sent, and what an answer says of whether it was done. Nothing here asks a
// second time by itself.
import { send, session, Refusal, Unreachable, type Change } from './api'
import { byKey } from './key'
import { askAgain } from './live'

export type Scope = 'run' | 'write'

/** lacks tells why the session may not do what asks for a scope; undefined where it may. A server that asks for no token lets everybody. */
export function lacks(scope: Scope): string | undefined {
  const held = session.value?.scopes
  if (!held || held.includes(scope) || held.includes('write')) return undefined
  const then = byKey ? 'End the command belfry console and start it without --read-only.' : 'Sign in again without “only look”, or with another token.'
  return `This needs the scope ${scope}. The session of this tab has ${held.join(' and ')}. ${then}`
}

/** carry sends a change once, and has the page look again whatever the answer is. */
export async function carry<T>(change: Change): Promise<T> {
  try {
    return await send<T>(change)
  } finally {
    askAgain()
  }
}

const at = (kind: 'jobs' | 'runs', name: string, then = '') => `/${kind}/${encodeURIComponent(name)}${then}`
const posted = (path: string, body: object): Change => ({ method: 'POST', path, body: JSON.stringify(body) })
const ifMatch = (etag: string | undefined) => (etag ? { headers: { 'If-Match': etag } } : {})

/** pause and resume are of a job as it was seen, where its etag is given: they take back nothing that somebody has changed since. */
export const pause = (job: string, reason = '', etag?: string): Change => ({ ...posted(at('jobs', job, '/pause'), reason ? { reason } : {}), ...ifMatch(etag) })
export const resume = (job: string, etag?: string): Change => ({ ...posted(at('jobs', job, '/resume'), {}), ...ifMatch(etag) })
export const cancel = (run: string, reason: string): Change => posted(at('runs', run, '/cancel'), reason ? { reason } : {})

/** retry is of a run that ended before a time: one that it has opened, and that has ended again, is not opened a second time. */
export const retry = (run: string, force: boolean, before: string): Change => posted(at('runs', run, '/retry'), { force: force || undefined, ended_before: before })

/** remove deletes a job as it was seen. */
export const remove = (job: string, etag: string | undefined): Change => ({ method: 'DELETE', path: at('jobs', job), ...ifMatch(etag) })

/** trigger asks for a run. payload is a text of JSON, which goes as it is: its numbers keep their digits. */
export function trigger(job: string, given: { at?: string; payload?: string; ignorePause?: boolean; overlap?: string }): Change {
  const fields = [given.at && `"at":${JSON.stringify(given.at)}`, given.payload && `"payload":${given.payload}`, given.ignorePause && '"ignore_pause":true', given.overlap && `"overlap":${JSON.stringify(given.overlap)}`]
  return { method: 'POST', path: at('jobs', job, '/runs'), body: `{${fields.filter(Boolean).join(',')}}` }
}

// The keys of requests whose outcome is not known, by what was asked for.
const unsettled = new Map<string, { key: string; until: number }>()
const remembered = 15 * 60_000

/** carryOnce sends a request for a run under an idempotency key. Who asks for the same again while nobody knows what became of it asks under
 * the same key, and gets the run that there is: again says so. */
export async function carryOnce<T>(change: Change): Promise<{ made: T; again: boolean }> {
  const what = [session.peek()?.id, change.path, change.body].join(' ')
  const before = unsettled.get(what)
  const again = before !== undefined && before.until > Date.now()
  const key = again ? before.key : unique()
  unsettled.set(what, { key, until: Date.now() + remembered })
  try {
    const made = await carry<T>({ ...change, headers: { 'Idempotency-Key': key } })
    unsettled.delete(what)
    return { made, again }
  } catch (error) {
    if (!outcome(error).maybe) unsettled.delete(what)
    throw error
  }
}

// Not every page has crypto.randomUUID: only those on https and of this machine.
const unique = () => 'console-' + [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')

/** Outcome is what an error says of a change, in words. maybe: it may have been made all the same. */
export interface Outcome {
  title: string
  detail: string
  maybe: boolean
  fields: { field: string; message: string }[]
  code: string // with the ID of the request
}

// Of belfry console: the server of its profile knows its credential no more, or there is none to send.
const refusedCredential = 'credential_refused'

// Codes of the range of 500 that say that nothing was done. All others, and what stands in front of a server, leave it open.
const undone = new Set(['throttled', 'not_ready', 'clock_skewed', 'stopping', refusedCredential])

/** outcome: where reads, nothing was to be changed. */
export function outcome(error: unknown, reads = false): Outcome {
  if (reads && error instanceof Unreachable) return { title: 'Not done: no answer came.', detail: 'Ask again when the server answers.', maybe: false, fields: [], code: '' }
  if (error instanceof Unreachable) return { title: 'No answer came. It may have been done.', detail: 'Look again before you ask a second time.', maybe: true, fields: [], code: '' }
  if (!(error instanceof Refusal)) return { title: 'This page made an error.', detail: String(error), maybe: true, fields: [], code: '' }
  const { problem, requestID, retryAfter } = error
  const maybe = !reads && problem.status >= 500 && !undone.has(problem.code)
  const told = { detail: problem.detail, maybe, fields: problem.errors ?? [], code: [problem.code || problem.status, requestID && 'request ' + requestID].filter(Boolean).join(' · ') }
  const later = retryAfter > 0 ? ` Try again in ${Math.ceil(retryAfter / 1000)} s.` : ' Try again later.'
  if (problem.code === 'outcome_unknown') return { ...told, title: 'It may have been done.', detail: 'The server does not know whether the change was written. Look again before you ask a second time.' }
  if (maybe) return { ...told, title: 'It may have been done: the server made an error.', detail: problem.detail + ' Look again before you ask a second time.' }
  if (problem.code === refusedCredential) return { ...told, title: 'Not done: the credential of the profile was refused.' }
  switch (problem.status) {
    case 403:
      return { ...told, title: 'Not done: not allowed.' }
    case 404:
      return { ...told, title: 'Not done: it is not there.' }
    case 409:
      return { ...told, title: 'Not done: not possible as things are.' }
    case 412:
      return { ...told, title: 'Not done: it was changed meanwhile.', detail: 'It has changed since this page read it. Look at it as it is now, and ask again if you still want to.' }
    case 429:
      return { ...told, title: 'Not done: too many requests.' + later }
    case 503:
      return { ...told, title: 'Not done: the server cannot do it now.' + later }
  }
  return { ...told, title: 'Not done.' }
}
