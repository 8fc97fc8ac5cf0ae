// Many runs or jobs at once: how many match, and one request after the other until all are done, or one is refused.
import { useEffect, useState } from 'preact/hooks'
import { carry } from './acts'
import { send } from './api'
import { explained, inRequest, sampled, seconds as bound } from './limits'

/** Many is a bulk request of the API: those that are named, or those that match. per_second is given wherever the API has a pace. */
export interface Many {
  path: '/runs/cancel' | '/runs/retry' | '/dead-letters/redrive' | '/dead-letters/discard' | `/jobs/batch/${'pause' | 'resume' | 'label' | 'delete'}`
  body: {
    runs?: string[]
    jobs?: Seen[]
    matching?: Matching
    reason?: string
    note?: string
    force?: boolean
    ended_before?: string
    per_second?: number
    set?: Record<string, string>
    remove?: string[]
  }
}

/** Seen is a job as it was when it was read, where it has its etag. */
export interface Seen {
  name: string
  etag?: string
}

/** namedOf is the member of a request that names what it is about; undefined where a filter chooses it. */
const namedOf = ({ runs, jobs }: Many['body']): 'runs' | 'jobs' | undefined => (runs ? 'runs' : jobs ? 'jobs' : undefined)
const ofJobs = ({ path }: Many) => path.startsWith('/jobs/')

/** Matching is a filter of the API: over runs, over dead letters by pattern, or over jobs. from and to are of when runs are due, and of when dead letters
 * ended. */
export interface Matching {
  contains?: string
  paused?: boolean
  job?: string
  states?: string[]
  labels?: Record<string, string>
  pattern?: string
  from?: string
  to?: string
}

interface Verdicts {
  items: { status: number; id?: string; name?: string; change?: string; etag?: string; problem?: { code: string; detail: string } }[]
  count: number
  looked_at?: string // of jobs: those that are changed after it were not counted
  next?: string
  remaining?: Named[]
}

type Named = string | Seen

/** Count is what a dry run says: how many would be done, and why others would not. */
export interface Count {
  count: number
  least: boolean // there may be more
  most: boolean // some of them are refused: a dry run over a filter tries only the first
  refusals: Refusals
  first: string[] // of jobs, the names of the first that would be done
  at?: string // of jobs: since when none may have been changed
}

/** Refusals are those that were refused, by the code: how many, the first of them, and what was said of one. */
export type Refusals = Map<string, { count: number; names: string[]; detail: string }>

function note(into: Refusals, answer: Verdicts): void {
  for (const { id, name, problem } of answer.items) {
    if (!problem) continue
    const known = into.get(problem.code) ?? { count: 0, names: [], detail: problem.detail ?? '' }
    into.set(problem.code, known)
    if (++known.count <= sampled) known.names.push(name ?? id ?? '')
  }
}

const rounds = 20 // of counting
const unpaced = 200 // in one request that has no pace
const seconds = 3 // that a paced request takes: to stop waits for its end

/** inOne tells whether one request is enough for so many. */
export function inOne({ body }: Many, count: number): boolean {
  return count <= Math.min(namedOf(body) ? explained : inRequest, Math.floor((body.per_second ?? Infinity) * bound))
}

async function count(many: Many, stop: AbortSignal): Promise<Count> {
  const found: Count = { count: 0, least: false, most: false, refusals: new Map(), first: [] }
  const named = namedOf(many.body)
  const parts = named ? chunks<Named>(many.body[named] ?? []) : [undefined]
  for (const part of parts) {
    let cursor: string | undefined
    for (let round = 0; ; round++) {
      const answer: Verdicts = await send({ method: 'POST', path: many.path, body: JSON.stringify({ ...many.body, ...(named && { [named]: part }), dry_run: true, cursor }) })
      stop.throwIfAborted()
      found.count += answer.count
      found.at ??= answer.looked_at
      for (const { name, change } of answer.items) if (name && change && change !== 'unchanged' && found.first.length < sampled) found.first.push(name)
      note(found.refusals, answer)
      const refused = answer.items.filter((item) => item.problem).length
      if (!part && refused && !ofJobs(many)) {
        if (answer.count > answer.items.length) found.most = true
        else found.count -= refused
      }
      cursor = answer.next
      if (!cursor) break
      if (round === rounds) return { ...found, least: true }
    }
  }
  return found
}

function chunks<T>(all: T[]): T[][] {
  const parts: T[][] = []
  for (let i = 0; i < all.length; i += explained) parts.push(all.slice(i, i + explained))
  return parts
}

export interface Counting {
  found: Count | undefined
  error: unknown
}

const nothing: Count = { count: 0, least: false, most: false, refusals: new Map(), first: [] }

/** useCount counts what a request would do; where there is none, nothing. It asks anew where the request is another one, or stamp. */
export function useCount(many: Many | undefined, stamp = ''): Counting {
  // Neither pace nor words change the number.
  const asked: Many | undefined = many && { path: many.path, body: { ...many.body, per_second: undefined, reason: undefined, note: undefined } }
  const key = JSON.stringify([asked, stamp])
  const [state, setState] = useState<{ key: string; found?: Count; error?: unknown }>({ key })
  useEffect(() => {
    if (!asked) return
    const stop = new AbortController()
    count(asked, stop.signal).then(
      (found) => !stop.signal.aborted && setState({ key, found }),
      (error: unknown) => !stop.signal.aborted && setState({ key, error }),
    )
    return () => stop.abort()
  }, [key])
  if (!asked) return { found: nothing, error: undefined }
  return state.key === key ? { found: state.found, error: state.error } : { found: undefined, error: undefined }
}

/** Progress is how far a request of many has come, and where it goes on. */
export interface Progress {
  done: number
  refusals: Refusals
  changed: Seen[] // of jobs, those that were changed, as that has left them
  left?: Named[] // of those that are named
  cursor?: string
}

/** Stopped is a part that was refused as a whole when others were done. */
export class Stopped extends Error {
  constructor(
    readonly after: string, // how many of how many
    readonly why: unknown,
  ) {
    super(after)
  }
}

/** start is where a request of many begins. */
export const start = ({ body }: Many): Progress => ({ done: 0, refusals: new Map(), changed: [], left: body.runs ?? body.jobs })

/** carryAll asks for the rest of a request, one part after the other, until most of it are done; so is kept as far as it has come, and tell hears
 * it. It ends early where stop says so, and throws what refused a part as a whole: what was done before stays done, and who asks again with so goes on
 * behind it. Jobs of a filter that somebody has changed after since are refused. */
export async function carryAll(many: Many, most: number, so: Progress, tell: (progress: Progress) => void, stop: () => boolean, since?: string): Promise<void> {
  const named = namedOf(many.body)
  const pace = many.body.per_second ?? Infinity
  const perRequest = Math.max(1, Math.min(named ? explained : unpaced, Math.floor(pace * seconds)))
  for (let parts = 0; ; parts++) {
    // The server keeps the pace within a request.
    if (parts) await pause(1000 / pace, stop)
    if (parts && stop()) return
    const part = so.left?.slice(0, perRequest)
    const max = named ? undefined : Math.min(perRequest, most - so.done)
    let answer: Verdicts
    try {
      answer = await carry({ method: 'POST', path: many.path, body: JSON.stringify({ ...many.body, ...(named ? { [named]: part } : { max, unchanged_since: since }), cursor: so.cursor }) })
    } catch (error) {
      throw so.done ? new Stopped(`Stopped after ${so.done.toLocaleString('en')} of ${most.toLocaleString('en')}`, error) : error
    }
    so.done += answer.count
    note(so.refusals, answer)
    for (const { name, change, etag } of answer.items) if (name && change === 'updated') so.changed.push({ name, etag })
    so.left = so.left && [...(answer.remaining ?? []), ...so.left.slice(perRequest)]
    so.cursor = answer.next
    tell({ ...so })
    if (so.left && answer.items.length === 0) return // what the server does not come to now it does not come to by being asked again
    if (stop() || (so.left ? so.left.length === 0 : so.cursor === undefined || so.done >= most)) return
  }
}

async function pause(ms: number, stop: () => boolean): Promise<void> {
  for (const end = performance.now() + ms; !stop() && performance.now() < end; ) await new Promise((resolve) => setTimeout(resolve, Math.min(200, end - performance.now())))
}
