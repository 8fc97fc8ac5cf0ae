// Jobs that are taken over from a text: what the host of the pages reads in it, what the server would make of each, and what became of each that
// was asked for.
import { computed, signal } from '@preact/signals'
import { outcome, type Outcome } from './acts'
import { convert, ofItself, patiently, send, session, tried, unanswered } from './api'
import { mayTry, type Read, type ReadAnswer } from './draft'
import { askAgain } from './live'
import type { Job } from './model'
import { put } from './saving'

/** Row is a job of the text. */
export interface Row extends Read {
  is: 'unchecked' | 'new' | 'changed' | 'same' | 'refused' | 'going' | 'created' | 'replaced' | 'unknown'
  etag?: string // of the job that stands there
  said?: Outcome
}

/** Source says what the text is, and what is wanted of its jobs. */
export interface Source {
  as: string
  zone: string
  local: string // of this browser
  user: string
  home: string
  system: boolean
  way: string
  url: string
  prefix: string
  paused: boolean
}

export class Taking {
  readonly text = signal('')
  readonly answer = signal<ReadAnswer | undefined>(undefined)
  readonly rows = signal<Row[]>([])
  readonly chosen = signal(new Set<string>())
  readonly busy = signal('')
  readonly failed = signal<Error | undefined>(undefined) // jobs were to be created
  readonly unread = signal<Error | undefined>(undefined) // the text was to be read, or its jobs to be checked
  readonly done = signal<{ count: number; of: number } | undefined>(undefined)
  private stop = new AbortController()
  private timer = 0
  private halted = false
  private last = ''

  /** read reads the text, a moment after it was changed. */
  read(from: Source): void {
    const asked = JSON.stringify({ ...from, text: this.text.peek(), fires: 3 })
    if (asked === this.last) return
    this.last = asked
    clearTimeout(this.timer)
    this.stop.abort()
    this.stop = new AbortController()
    this.done.value = undefined
    this.failed.value = undefined
    this.unread.value = undefined
    if (!this.text.peek().trim()) {
      this.answer.value = undefined
      this.rows.value = []
      this.busy.value = ''
      return
    }
    this.busy.value = 'Reading …'
    this.timer = window.setTimeout(() => void this.round(JSON.parse(asked) as object), 150)
  }

  /** look has the server check what was read once more. */
  look(): void {
    const asked = this.last
    this.last = ''
    this.read(JSON.parse(asked) as Source)
  }

  /** open is why nobody has said yet what the text is. */
  readonly open = computed(() => (unanswered(this.unread.value) ? this.unread.value : undefined))

  /** again reads once more what nobody has answered. */
  async again(): Promise<void> {
    if (this.busy.peek()) return
    this.busy.value = 'Reading …'
    await this.round(JSON.parse(this.last) as object)
  }

  private async round(asked: object): Promise<void> {
    const { signal: stop } = this.stop
    try {
      let answer = await convert<ReadAnswer>('read', JSON.stringify(asked), stop)
      const called = new Set(answer.jobs.flatMap((j) => j.calls ?? []))
      const first = answer.jobs.filter((j) => called.has(j.name)).map(toRow)
      if (first.length && answer.as !== 'belfry' && mayTry()) {
        this.busy.value = 'Checking …'
        const without: Record<string, string> = {}
        for (const row of first) {
          const seen = await verdict(row, [], stop)
          if (seen.is === 'refused') without[row.name] = [seen.said?.detail, ...(seen.said?.fields ?? []).map((f) => f.message)].filter(Boolean).join(' ')
        }
        if (Object.keys(without).length) answer = await convert<ReadAnswer>('read', JSON.stringify({ ...asked, without }), stop)
      }
      stop.throwIfAborted()
      this.answer.value = answer
      this.rows.value = answer.jobs.map(toRow)
      this.chosen.value = new Set()
      if (mayTry()) await this.check(stop)
      this.unread.value = undefined
      this.busy.value = ''
    } catch (error) {
      if (stop.aborted) return
      this.unread.value = error as Error
      this.busy.value = ''
    }
  }

  private async check(stop: AbortSignal): Promise<void> {
    this.busy.value = 'Checking …'
    const names = new Set(this.rows.peek().map((r) => r.name))
    // A few at a time: each is a request.
    const left = this.rows.peek().map((_, i) => i)
    const one = async () => {
      for (let i = left.shift(); i !== undefined; i = left.shift()) {
        const row = this.rows.peek()[i]
        if (!row) continue
        const seen = await verdict(row, (row.calls ?? []).filter((n) => names.has(n)), stop)
        stop.throwIfAborted()
        this.put(i, seen)
      }
    }
    await Promise.all([one(), one(), one(), one()])
    this.chosen.value = new Set(this.rows.peek().filter((r) => r.is === 'new').map((r) => r.name))
  }

  private put(i: number, by: Partial<Row>): void {
    this.rows.value = this.rows.peek().map((r, k) => (k === i ? { ...r, ...by } : r))
  }

  choose(names: string[], on: boolean): void {
    const next = new Set(this.chosen.peek())
    for (const name of names) {
      if (on) next.add(name)
      else next.delete(name)
    }
    this.chosen.value = next
  }

  halt(): void {
    this.halted = true
  }

  /** make asks for each job that is chosen, once, those that others call first. What would refuse all others too ends it. */
  async make(): Promise<void> {
    this.halted = false
    this.failed.value = undefined
    const rows = this.rows.peek()
    const called = new Set(rows.flatMap((r) => r.calls ?? []))
    const chosen = rows.flatMap((r, i) => (this.chosen.peek().has(r.name) && able(r) ? [i] : []))
    const order = [...chosen.filter((i) => called.has(rows[i]?.name ?? '')), ...chosen.filter((i) => !called.has(rows[i]?.name ?? ''))]
    const held = session.peek()
    let count = 0
    this.done.value = { count, of: order.length }
    this.busy.value = 'Creating …'
    for (const i of order) {
      const row = rows[i]
      // Another session may be of another tenant.
      if (!row || this.halted || session.peek() !== held) break
      this.put(i, { is: 'going' })
      try {
        await send<Job>(put(row.name, row.job, row.etag))
        this.put(i, { is: row.etag === undefined ? 'created' : 'replaced' })
        count++
      } catch (error) {
        const said = outcome(error)
        this.put(i, { is: said.maybe ? 'unknown' : 'refused', said })
        if (!ofItself(error)) {
          this.failed.value = error as Error
          break
        }
      }
      this.choose([row.name], false)
      this.done.value = { count, of: order.length }
    }
    this.busy.value = ''
    askAgain()
  }
}

const toRow = (j: Read): Row => ({ ...j, is: 'unchecked' })

/** able tells whether a job can be asked for. */
export const able = (r: Row): boolean => r.is === 'new' || r.is === 'changed'

async function verdict(row: Row, beside: string[], stop: AbortSignal): Promise<Partial<Row>> {
  if (!row.name) return { is: 'refused', said: refused('The job needs a name.') }
  try {
    const answer = await patiently(() => tried<Job>('/jobs/' + encodeURIComponent(row.name), row.job, stop, beside), stop)
    const etag = answer.headers.get('ETag') ?? undefined
    return { is: etag === undefined ? 'new' : answer.data.status.generation ? 'same' : 'changed', etag }
  } catch (error) {
    if (stop.aborted || !ofItself(error)) throw error
    return { is: 'refused', said: outcome(error) }
  }
}

const refused = (detail: string): Outcome => ({ title: 'Not possible.', detail, maybe: false, fields: [], code: '' })
