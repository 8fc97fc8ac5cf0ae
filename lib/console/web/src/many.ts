// Many runs at once: how many match, and one request after the other until all are done, or one is refused.
import { useEffect, useState } from 'preact/hooks'
import { carry } from './acts'
import { send } from './api'

/** Many is a bulk request of the API: those that are named, or those that match. per_second is given wherever the API has a pace. */
export interface Many {
  path: '/runs/cancel' | '/runs/retry' | '/dead-letters/redrive' | '/dead-letters/discard'
  body: { runs?: string[]; matching?: object; reason?: string; note?: string; force?: boolean; per_second?: number }
}

interface Verdicts {
  items: { status: number; id?: string; problem?: { code: string; detail: string } }[]
  count: number
  next?: string
  remaining?: string[]
}

/** Count is what a dry run says: how many would be done, and why others would not. */
export interface Count {
  count: number
  least: boolean // there may be more
  refusals: Refusals
}

/** Refusals are the runs that were refused, by the code: how many, and what was said of one. */
export type Refusals = Map<string, { count: number; detail: string }>

function note(into: Refusals, answer: Verdicts): void {
  for (const { problem } of answer.items) {
    if (!problem) continue
    const known = into.get(problem.code)
    if (known) known.count++
    else into.set(problem.code, { count: 1, detail: problem.detail ?? '' })
  }
}

const asMany = 100 // of those that are named, in one request
const rounds = 20 // of counting
const seconds = 10 // that a paced request takes; the server bounds it at 15

async function count(many: Many, stop: AbortSignal): Promise<Count> {
  const found: Count = { count: 0, least: false, refusals: new Map() }
  const { runs, ...rest } = many.body
  const parts = runs ? chunks(runs) : [undefined]
  for (const part of parts) {
    let cursor: string | undefined
    for (let round = 0; ; round++) {
      const answer: Verdicts = await send({ method: 'POST', path: many.path, body: JSON.stringify({ ...rest, runs: part, dry_run: true, cursor }) })
      stop.throwIfAborted()
      found.count += answer.count
      note(found.refusals, answer)
      cursor = answer.next
      if (!cursor) break
      if (round === rounds) return { ...found, least: true }
    }
  }
  return found
}

function chunks(ids: string[]): string[][] {
  const parts: string[][] = []
  for (let i = 0; i < ids.length; i += asMany) parts.push(ids.slice(i, i + asMany))
  return parts
}

export interface Counting {
  found: Count | undefined
  error: unknown
}

/** useCount counts what a request would do. It asks anew where the request is another one, or stamp. */
export function useCount(many: Many, stamp = 0): Counting {
  // Neither pace nor words change the number.
  const asked: Many = { path: many.path, body: { ...many.body, per_second: undefined, reason: undefined, note: undefined } }
  const key = JSON.stringify([asked, stamp])
  const [state, setState] = useState<{ key: string; found?: Count; error?: unknown }>({ key })
  useEffect(() => {
    const stop = new AbortController()
    count(asked, stop.signal).then(
      (found) => !stop.signal.aborted && setState({ key, found }),
      (error: unknown) => !stop.signal.aborted && setState({ key, error }),
    )
    return () => stop.abort()
  }, [key])
  return state.key === key ? { found: state.found, error: state.error } : { found: undefined, error: undefined }
}

/** Progress is how far a request of many has come. */
export interface Progress {
  done: number
  refusals: Refusals
}

/** carryAll asks for all of a request, one part after the other, for no more than most of them; tell hears how far it has come. It ends
 * early where stop says so, and throws what refused a part as a whole; what was done before stays done. */
export async function carryAll(many: Many, most: number, tell: (progress: Progress) => void, stop: () => boolean): Promise<Progress> {
  const progress: Progress = { done: 0, refusals: new Map() }
  const { runs, ...rest } = many.body
  const perRequest = Math.max(1, Math.min(runs ? asMany : 1000, Math.floor((rest.per_second ?? Infinity) * seconds)))
  let left = runs
  let cursor: string | undefined
  do {
    const part = left?.slice(0, perRequest)
    const max = runs ? undefined : Math.min(perRequest, most - progress.done)
    const answer: Verdicts = await carry({ method: 'POST', path: many.path, body: JSON.stringify({ ...rest, runs: part, max, cursor }) })
    progress.done += answer.count
    note(progress.refusals, answer)
    tell({ ...progress })
    left = left && [...(answer.remaining ?? []), ...left.slice(perRequest)]
    cursor = answer.next
    if (left && answer.items.length === 0) break // what the server does not come to now it does not come to by being asked again
  } while (!stop() && (left ? left.length > 0 : cursor !== undefined && progress.done < most))
  return progress
}
