// The client of /v1. It knows problem documents, entity tags, Retry-After and the clock of the server, and nothing of pages.
import { signal } from '@preact/signals'

const root = document.documentElement.dataset
export const prefix = root.prefix ?? '/console'
const base = (root.api ?? '') + '/v1'

/** Problem is an error document of the API, after RFC 9457. */
export interface Problem {
  title: string
  status: number
  code: string
  detail: string
  errors?: { field: string; message: string }[]
}

/** Refusal is an answer that is none: what the server said, in its words. */
export class Refusal extends Error {
  constructor(
    readonly problem: Problem,
    readonly requestID: string,
    readonly retryAfter: number, // ms, 0 where the server asked for none
  ) {
    super(problem.detail)
  }
}

/** Unreachable says that no answer came. */
export class Unreachable extends Error {}

// Refusals that say nothing of what was asked for: the session had ended or may not, it took too long to come, or there is too much to do.
const ofOthers = [401, 403, 408, 429]

/** ofItself tells whether an error is a refusal of the very thing that was asked for, so that another thing may still be taken. */
export const ofItself = (error: unknown): boolean => error instanceof Refusal && error.problem.status < 500 && !ofOthers.includes(error.problem.status)

// Refusals of a moment: the session had ended, it took too long to come, there is too much to do, or what stands in front of the server had no answer
// from it.
const ofNow = [401, 408, 429, 502, 503, 504]

/** unanswered tells whether an error says nothing of what was asked for, so that it is to be asked again. What may not be asked for, what the server makes
 * an error of, and an error of the page itself would be the same again. */
export const unanswered = (error: unknown): boolean => error instanceof Unreachable || (error instanceof Refusal && ofNow.includes(error.problem.status))

/** Answer is what came: the JSON read, and as it was sent, since numbers beyond 2^53 lose digits when they are read. */
export interface Answer<T> {
  data: T
  text: string
  headers: Headers
}

/** skew is how far the server's clock is ahead of the browser's, in ms. Ages are reckoned by the server's. */
export const skew = signal(0)
export const serverNow = (): number => Date.now() + skew.value

/** locked is why the server wants a token, where there is more to say than that it does; undefined where it wants none. */
export const locked = signal<string>()

/** Session is what the server gave for a token: it allows no more than that, and ends soon. */
export interface Session {
  token?: string // where this tab keeps it; none where a cookie does
  id: string
  parent: string
  scopes: string[]
  expires_at: string
}

// Over TLS a cookie that no script can read carries the session, for all tabs of this browser. Elsewhere a cookie would go to every port of the
// host: the session is kept for this tab alone, of this origin with its port. The token of which it was made is kept nowhere.
export const overTLS = location.protocol === 'https:'
const sessionKey = 'belfry-session'
export const session = signal(read())
const tabs = overTLS ? new BroadcastChannel(sessionKey) : undefined
tabs?.addEventListener('message', () => void resume())

/** byCookie tells whether the session is this browser's, in all its tabs. */
export const byCookie = (): boolean => session.value !== undefined && !session.value.token

function read(): Session | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(sessionKey) ?? 'null') as Session | null
    return typeof found?.token === 'string' ? { ...found, scopes: found.scopes ?? ['read'] } : undefined
  } catch {
    return undefined // storage is switched off: the session lasts until the page is left
  }
}

function hold(next: Session | undefined, why: string | undefined): void {
  session.value = next
  locked.value = why
  tagged.clear()
  try {
    if (next?.token) sessionStorage.setItem(sessionKey, JSON.stringify(next))
    else sessionStorage.removeItem(sessionKey)
  } catch {
    // as in read
  }
}

const shown = ({ token, id, parent, scopes, expires_at }: Session): Session => ({ ...(token ? { token } : {}), id, parent, scopes, expires_at })

/** signIn opens a session of a token, with all that the token allows, or with the scope read alone. */
export async function signIn(token: string, readOnly: boolean): Promise<void> {
  const wants = { name: 'console', scopes: readOnly ? ['read'] : ['read', 'run', 'write'], ...(overTLS ? { cookie: true } : {}) }
  const before = session.peek()?.token
  const answer = await ask(base + '/session', { ...json, Authorization: 'Bearer ' + token }, undefined, { method: 'POST', body: JSON.stringify(wants) })
  // Nobody would use it any more. Where the server cannot be told, it ends by itself.
  if (before) void ask(base + '/session', { Authorization: 'Bearer ' + before }, undefined, { method: 'DELETE', keepalive: true }).catch(() => {})
  hold(shown((await answer.json()) as Session), undefined)
  tabs?.postMessage('in')
}

// Whether this browser has a session in a cookie is not known before the server has said so.
let unsure = overTLS && !session.peek()

/** resume takes up the session that a cookie of this browser carries, as in a new tab, or after another tab has signed in or out. */
export async function resume(): Promise<void> {
  const held = session.peek()
  if (!overTLS || held?.token) return
  unsure = false
  try {
    const answer = await ask(base + '/session', { [named]: '' }, undefined)
    const found = (await answer.json()) as Session
    if (session.peek() !== held || (held && held.id === found.id)) return
    hold(found.parent ? shown(found) : undefined, undefined) // a server that asks for no token answers, too
  } catch (error) {
    if (!(error instanceof Refusal)) unsure = true
  }
}

/** signOut ends the session. One that this tab keeps is forgotten even where the server does not answer; a cookie only the server takes back. */
export async function signOut(): Promise<void> {
  const shared = byCookie()
  const ended = ask(base + '/session', {}, undefined, { method: 'DELETE', keepalive: true })
  if (!shared) hold(undefined, 'You have signed out.')
  try {
    await ended
    if (shared) hold(undefined, 'You have signed out.')
    tabs?.postMessage('out')
  } catch (error) {
    if (error instanceof Refusal && error.problem.status === 401) return // it had ended before
    if (shared) throw error
    locked.value = 'This tab has signed out. The server could not be told; the session ends there by itself.'
  }
}

const json = { 'Content-Type': 'application/json' }

// The header by which a page says which session it takes the cookie to carry: the server refuses what is asked for in the name of another.
const named = 'Belfry-Session'

export type Query = Record<string, string | number | undefined>

export function pathOf(path: string, query: Query = {}): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') given.set(name, String(value))
  const text = given.toString()
  return path + (text ? '?' + text : '')
}

// What was answered last, by path: a server that says 304 sends it no second time.
const tagged = new Map<string, { tag: string; answer: Answer<unknown> }>()
const mostTagged = 40

async function ask(path: string, headers: Record<string, string>, stop: AbortSignal | undefined, init: RequestInit = {}): Promise<Response> {
  const held = session.peek()
  const signsIn = 'Authorization' in headers
  if (held?.token && !signsIn) headers.Authorization = 'Bearer ' + held.token
  else if (held && !signsIn) headers[named] ??= held.id
  const asked = Date.now()
  let answer: Response
  try {
    answer = await fetch(path, { ...init, headers, signal: stop, credentials: overTLS && !held?.token ? 'same-origin' : 'omit', cache: 'no-store', redirect: 'error' })
  } catch (error) {
    if (stop?.aborted) throw error
    throw new Unreachable('No answer from the server.')
  }
  noteClock(answer.headers.get('Date'), asked)
  if (unsure && !signsIn) void resume()
  if (answer.ok || answer.status === 304) return answer
  const refused = await refusal(answer, stop)
  // What was asked for under a session that is no longer the page's says nothing of the one that is.
  if (answer.status === 401 && !signsIn && session.peek() === held) {
    if (held && !held.token && headers[named]) void resume() // another tab may have signed in since
    else hold(undefined, held ? refused.problem.detail : (locked.peek() ?? ''))
  }
  throw refused
}

// The Date header has whole seconds. Only a difference that this cannot explain counts.
function noteClock(date: string | null, asked: number): void {
  const server = Date.parse(date ?? '')
  if (Number.isNaN(server)) return
  const least = server - Date.now()
  const most = server + 1000 - asked
  if (skew.peek() < least) skew.value = least
  else if (skew.peek() > most) skew.value = most
}

/** textOf reads an answer to its end. One that breaks off is no answer. */
async function textOf(answer: Response, stop?: AbortSignal): Promise<string> {
  try {
    return await answer.text()
  } catch (error) {
    if (stop?.aborted) throw error
    throw new Unreachable('No answer from the server.')
  }
}

async function refusal(answer: Response, stop?: AbortSignal): Promise<Refusal> {
  const text = await textOf(answer, stop)
  let problem: Problem = { title: answer.statusText, status: answer.status, code: '', detail: text.slice(0, 500) || answer.statusText }
  try {
    const read = JSON.parse(text) as Partial<Problem>
    if (typeof read.detail === 'string') problem = { ...problem, ...read }
  } catch {
    // Something in front of the server has answered: its text is all there is.
  }
  const after = Number(answer.headers.get('Retry-After') ?? '0')
  return new Refusal(problem, answer.headers.get('X-Request-Id') ?? '', Number.isFinite(after) ? after * 1000 : 0)
}

/** get asks for JSON below /v1. The same data object comes back where nothing has changed. */
export async function get<T>(path: string, query: Query = {}, stop?: AbortSignal): Promise<Answer<T>> {
  return getAt<T>(base + pathOf(path, query), stop)
}

export async function getAt<T>(full: string, stop?: AbortSignal): Promise<Answer<T>> {
  const before = tagged.get(full)
  const answer = await ask(full, before ? { 'If-None-Match': before.tag } : {}, stop)
  if (answer.status === 304 && before) return before.answer as Answer<T>
  const text = await textOf(answer, stop)
  const got: Answer<T> = { data: JSON.parse(text) as T, text, headers: answer.headers }
  const tag = answer.headers.get('ETag')
  tagged.delete(full)
  if (tag) {
    tagged.set(full, { tag, answer: got })
    if (tagged.size > mostTagged) tagged.delete(tagged.keys().next().value as string)
  }
  return got
}

/** post sends JSON below /v1, for requests that only look: which runs a list of jobs had last. */
export async function post<T>(path: string, body: unknown, stop?: AbortSignal): Promise<T> {
  const answer = await ask(base + path, { ...json }, stop, { method: 'POST', body: JSON.stringify(body) })
  return JSON.parse(await textOf(answer, stop)) as T
}

/** tried is what a PUT of JSON would do, and does not. beside are jobs that are put too, and may be called. The ETag of the answer is that of
 * what stands there, none where nothing does. */
export async function tried<T>(path: string, body: string, stop?: AbortSignal, beside: string[] = []): Promise<Answer<T>> {
  const answer = await ask(base + pathOf(path, { dry_run: 'true', beside: beside.join(',') }), { ...json }, stop, { method: 'PUT', body })
  const text = await textOf(answer, stop)
  return { data: JSON.parse(text) as T, text, headers: answer.headers }
}

/** patiently asks for what changes nothing. Who has too much to do is asked again, a few times. */
export async function patiently<T>(asks: () => Promise<T>, stop?: AbortSignal): Promise<T> {
  for (let left = 4; ; left--) {
    try {
      return await asks()
    } catch (error) {
      if (!left || !(error instanceof Refusal && error.problem.status === 429)) throw error
      await new Promise((resolve) => setTimeout(resolve, error.retryAfter || 1000))
      stop?.throwIfAborted()
    }
  }
}

/** convert asks the host of these pages what a text says, or how a job is written. It changes nothing. */
export async function convert<T>(what: 'read' | 'write', body: string, stop?: AbortSignal): Promise<T> {
  return patiently(async () => JSON.parse(await textOf(await ask(`${prefix}/convert/${what}`, { ...json }, stop, { method: 'POST', body }), stop)) as T, stop)
}

// The server ends each request after 50 seconds.
const longest = 75_000

/** send asks for a change, once, and answers with what came: undefined for an answer without a body. Without a whole answer it is
 * Unreachable, and the change may have been made. */
export async function send<T>({ method, path, body, headers }: Change): Promise<T> {
  try {
    const answer = await ask(base + path, { ...(body === undefined ? {} : json), ...headers }, AbortSignal.timeout(longest), { method, body })
    const text = await answer.text()
    return (text ? JSON.parse(text) : undefined) as T
  } catch (error) {
    throw error instanceof Refusal ? error : new Unreachable('No answer from the server.')
  }
}

/** Change is a request that changes something; path is below /v1, and body is JSON. */
export interface Change {
  method: 'POST' | 'PUT' | 'DELETE'
  path: string
  body?: string
  headers?: Record<string, string>
}

/** events reads a stream of server-sent events below /v1, each of them JSON, until it ends. */
export async function events<T>(path: string, heard: (event: T) => void, stop: AbortSignal): Promise<void> {
  const answer = await ask(base + path, { Accept: 'text/event-stream' }, stop)
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; reader; ) {
    const { done, value } = await reader.read()
    if (done) return
    const whole = (rest + value).split('\n\n')
    rest = whole.pop() ?? ''
    for (const event of whole) if (event.startsWith('data: ')) heard(JSON.parse(event.slice(6)) as T)
  }
}

/** bytes asks for what is no JSON, and may be no text: API Gateway passes that on where the request says so. */
export async function bytes(path: string, query: Query, stop?: AbortSignal): Promise<{ data: Uint8Array; headers: Headers }> {
  const answer = await ask(base + pathOf(path, query), { Accept: 'application/octet-stream' }, stop)
  return { data: new Uint8Array(await answer.arrayBuffer()), headers: answer.headers }
}

/** urlOf is the whole URL of a path below /v1. */
export const urlOf = (path: string): string => location.origin + base + path

/** outside is a path beside /v1, such as /readyz. */
export const outside = (path: string): string => (root.api ?? '') + path
