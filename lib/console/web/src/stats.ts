// What charts make of the counts that the API gives by the minute or the hour. Nothing here knows of pages.
import type { State } from './model'
import { followed, outcomes } from './outcomes'

export interface Histogram {
  count: number
  buckets: number[]
}

export interface Counts {
  due: number
  succeeded: number
  failed: number
  cancelled: number
  skipped: number
  dead: number
  unknown: number
  open: number
  unended: number
  retries: number
  lateness: Histogram
}

export interface Stats {
  from: string
  to: string
  step_seconds: number
  swept_until?: string
  lateness_bounds_ms: number[]
  points: ({ at: string } & Counts)[]
}

/** Week are the counts that tools take their numbers of. */
export interface Week extends Omit<Stats, 'points'> {
  duration_bounds_ms: number[]
  points: { at: string; retries: number; lateness: Histogram; duration: Histogram & { p99_ms?: number } }[]
}

/** meanOf is that of some histograms together, by the buckets that the server counts in: evenly within each, and of the last one its lower bound. */
export function meanOf(bounds: number[], all: Histogram[]): number {
  const middle = (i: number) => ((bounds[i - 1] ?? 0) + (bounds[i] ?? bounds.at(-1) ?? 0)) / 2
  const sum = all.reduce((sum, h) => sum + h.buckets.reduce((part, n, i) => part + n * middle(i), 0), 0)
  return sum / all.reduce((n, h) => n + h.count, 0)
}

/** kinds are the parts of a bar, from the bottom up. */
export const kinds = ['succeeded', 'under way', 'cancelled or skipped', 'failed', `not ended within ${followed} hours`] as const

/** kindOf is which of them runs of a state are. */
export const kindOf = (state: State): number => [outcomes.succeeded, outcomes.open, outcomes.skipped, outcomes.failed].findIndex((states) => states.includes(state))

/** Bin is a stretch of a chart. */
export interface Bin {
  at: number // when it begins, in ms
  counts: number[] // by kinds
  swept: boolean // all of it was counted by the sweeps
  late: Histogram | undefined // undefined where nothing has started
}

const ends = ['succeeded', 'failed', 'cancelled', 'skipped', 'dead', 'unknown'] as const

function parts(c: Counts): number[] {
  const counts = [0, c.open, 0, 0, c.unended]
  for (const end of ends) counts[kindOf(end)] = (counts[kindOf(end)] ?? 0) + c[end]
  return counts
}

/** width is how many steps make a bin, so that there are at most so many bins. */
export function width(steps: number, most = 300): number {
  for (const n of [1, 2, 5, 10, 15, 30, 60]) if (steps / n <= most) return n
  return Math.ceil(steps / most)
}

/** bins puts the points of an answer where they belong, with the steps between them that have none. */
export function bins(of: Stats): Bin[] {
  const from = Date.parse(of.from)
  const step = of.step_seconds * 1000
  const steps = Math.max(0, Math.round((Date.parse(of.to) - from) / step))
  const wide = width(steps)
  const swept = of.swept_until ? Date.parse(of.swept_until) : from
  const all = Array.from({ length: Math.ceil(steps / wide) }, (_, i): Bin => {
    const at = from + i * wide * step
    return { at, counts: kinds.map(() => 0), swept: Math.min(at + wide * step, Date.parse(of.to)) <= swept, late: undefined }
  })
  for (const p of of.points) {
    const bin = all[Math.floor((Date.parse(p.at) - from) / step / wide)]
    if (!bin) continue
    parts(p).forEach((n, k) => (bin.counts[k] = (bin.counts[k] ?? 0) + n))
    if (p.lateness.count > 0) bin.late = together(bin.late, p.lateness)
  }
  return all
}

function together(a: Histogram | undefined, b: Histogram): Histogram {
  if (!a) return b
  return { count: a.count + b.count, buckets: b.buckets.map((n, i) => n + (a.buckets[i] ?? 0)) }
}

/** quantile estimates below what so large a share of a histogram lies, as the API does: evenly within a bucket, and of the last one its lower bound. */
export function quantile(of: Histogram, bounds: number[], share: number): number {
  const rank = share * of.count
  let below = 0
  for (let i = 0; i < of.buckets.length; i++) {
    const n = of.buckets[i] ?? 0
    if (n > 0 && below + n >= rank) {
      const low = i === 0 ? 0 : (bounds[i - 1] ?? 0)
      const high = bounds[i]
      return high === undefined ? low : low + ((rank - below) / n) * (high - low)
    }
    below += n
  }
  return bounds.at(-1) ?? 0
}

/** nice is the next of 1, 2, 5, 10, 20…, so that a scale does not change with each run. */
export function nice(n: number): number {
  for (let size = 1; ; size *= 10) for (const step of [1, 2, 5]) if (step * size >= n) return step * size
}

/** stretches are the parts of a line between its gaps: what has no value is not joined over. Each is the index of its first value, and its values. */
export function stretches(values: (number | undefined)[]): { from: number; values: number[] }[] {
  const found: { from: number; values: number[] }[] = []
  values.forEach((v, i) => {
    if (v === undefined) return
    const last = found.at(-1)
    if (last && last.from + last.values.length === i) last.values.push(v)
    else found.push({ from: i, values: [v] })
  })
  return found
}

/** height is where a value stands on a scale by its logarithm, from 0 for least and below to 1 for most. */
export function height(value: number, least: number, most: number): number {
  if (value <= least) return 0
  return Math.min(1, Math.log(value / least) / Math.log(most / least))
}
