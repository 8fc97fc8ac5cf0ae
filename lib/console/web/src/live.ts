// What a page shows is asked for again while somebody can see it: when the server tells that it has changed, else every two seconds. Where that
// fails, what was there stays, and the page tells how old it is.
import { signal, type ReadonlySignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal, Unreachable, session, unanswered } from './api'
import { all, listen, since, way } from './changes'

/** lost is since when no answer came, in ms of the browser's clock; 0 while they come. */
export const lost = signal(0)

const kicks = new Set<() => void>()

/** askAgain has the page ask anew for all that it shows: something was changed. */
export function askAgain(): void {
  for (const kick of kicks) kick()
}

const usual = 2000
const rest = 10_000 // between two questions about what the server tells of: what comes of the clock alone it does not tell
const gap = (every: number) => Math.max(1000, every / 4) // at least, between two questions after hints
const longest = 30_000

export interface Live<T> {
  data: T | undefined
  error: Error | undefined
}

/**
 * useLive asks for something at once and then again and again, while key stays the same. A key of '' asks for nothing. about are the names of what it
 * is about, as hints have them: 'runs', 'dead-letters', 'jobs', 'queues', 'job:NAME', 'run:ID'. It is asked for when one of them is told, and seldom otherwise.
 * With every at 0 nothing is asked for again once it was answered, or refused for what it is. Until then it is, at intervals of its own.
 */
export function useLive<T>(key: string, load: (stop: AbortSignal) => Promise<T>, every = usual, about: string[] = []): Live<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: Error }>({ key })
  const latest = useRef(load)
  latest.current = load
  const names = useRef(about)
  names.current = about
  const held = session.value
  useEffect(() => {
    if (!key) return
    let stop = new AbortController()
    let timer = 0
    let failed = 0
    let settled = false // there is an answer, and no other is wanted
    let ended = false
    let busy = false
    let hinted = false
    let began = 0
    const round = async () => {
      if (ended || busy || document.hidden) return
      busy = true
      hinted = false
      began = Date.now()
      let wait = every
      const mine = stop
      try {
        const data = await latest.current(mine.signal)
        mine.signal.throwIfAborted()
        failed = 0
        settled = every === 0
        lost.value = 0
        if (!ended) setState((now) => (now.key === key && now.data === data && !now.error ? now : { key, data }))
      } catch (error) {
        if (ended || mine.signal.aborted) {
          busy = false
          if (!ended) void round()
          return
        }
        failed++
        settled = every === 0 && !unanswered(error)
        wait = Math.min(longest, (every || usual) * 2 ** Math.min(failed - 1, 5))
        if (error instanceof Refusal) {
          wait = Math.max(wait, error.retryAfter)
          if (error.problem.code !== 'no_answer') lost.value = 0
        }
        // Or belfry console has answered, because its server did not.
        if (error instanceof Unreachable || (error instanceof Refusal && error.problem.code === 'no_answer')) {
          wait = Math.min(wait, 5000) // a server that starts again is there soon
          if (!lost.value) lost.value = Date.now()
        }
        setState((now) => ({ key, data: now.key === key ? now.data : undefined, error: error as Error }))
      }
      busy = false
      clearTimeout(timer)
      if (way.peek() === 'slow' || (way.peek() === 'stream' && names.current.length && began >= since)) wait = Math.max(wait, rest)
      if (hinted && !failed) wait = Math.max(1, began + gap(every) - Date.now())
      if (!ended && !settled) timer = window.setTimeout(round, wait)
    }
    const heard = (told: string[]) => {
      if (!told.includes(all) && (failed || !names.current.some((name) => told.includes(name)))) return
      hinted = true
      if (busy || ended || document.hidden) return
      clearTimeout(timer)
      timer = window.setTimeout(round, Math.max(0, began + gap(every) - Date.now()))
    }
    const deaf = every > 0 ? listen(heard) : undefined
    const shown = () => {
      if (document.hidden) {
        stop.abort()
        stop = new AbortController()
        clearTimeout(timer)
      } else if (!settled) void round()
    }
    // What is under way may have been answered before the change.
    const kick = () => {
      stop.abort()
      stop = new AbortController()
      clearTimeout(timer)
      void round()
    }
    kicks.add(kick)
    document.addEventListener('visibilitychange', shown)
    void round()
    return () => {
      ended = true
      kicks.delete(kick)
      deaf?.()
      stop.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', shown)
    }
  }, [key, every, held])
  const own = state.key === key
  return { data: own ? state.data : undefined, error: own ? state.error : undefined }
}

/** Asking is something that was asked for, and may not have been answered. */
export interface Asking {
  open: ReadonlySignal<Error | undefined> // why nobody has said anything of it yet: no answer came, or the session had ended
  again: () => Promise<void> // asks once more, unless that is under way
}

/** useAgain asks for something once more where nobody has answered, and then again and again until somebody has. */
export function useAgain(of: Asking): void {
  const before = of.open.value
  useLive(before ? 'again' : '', async () => {
    await of.again()
    const why = of.open.peek()
    if (why && why !== before) throw why
  })
}

/** useSettled keeps the order of a list while somebody is at it: what is new waits, and is told as a number. */
export function useSettled(ids: string[] | undefined, identity: string, busy: () => boolean): { ids: string[]; fresh: number; apply: () => void } {
  const held = useRef<{ identity: string; ids: string[] }>({ identity, ids: [] })
  const [, redraw] = useState(0)
  const next = ids ?? []
  if (held.current.identity !== identity) held.current = { identity, ids: next }
  const shown = held.current.ids
  const same = shown.length === next.length && shown.every((id, i) => id === next[i])
  if (!same && (shown.length === 0 || !busy())) held.current = { identity, ids: next }
  else if (!same) {
    // What is older than all that is shown moves nothing.
    const last = next.indexOf(shown[shown.length - 1] ?? '')
    const known = new Set(shown)
    const behind = last < 0 ? [] : next.slice(last + 1).filter((id) => !known.has(id))
    if (behind.length) held.current = { identity, ids: [...shown, ...behind] }
  }
  const now = held.current.ids
  const known = new Set(now)
  const fresh = next.reduce((n, id) => n + (known.has(id) ? 0 : 1), 0)
  return {
    ids: now,
    fresh,
    apply: () => {
      held.current = { identity, ids: next }
      redraw((n) => n + 1)
    },
  }
}

/** useTick draws again every so many ms while somebody can see it, for ages and bars that grow. */
export function useTick(every: number, on = true): void {
  const [, redraw] = useState(0)
  useEffect(() => {
    if (!on) return
    const timer = setInterval(() => {
      if (!document.hidden) redraw((n) => n + 1)
    }, every)
    return () => clearInterval(timer)
  }, [every, on])
}

/** useHeld keeps what is shown as it is while somebody points at it. */
export function useHeld<T>(next: T): { shown: T; hold: { onPointerEnter: () => void; onPointerLeave: () => void } } {
  const [over, setOver] = useState(false)
  const last = useRef(next)
  if (!over || last.current === undefined) last.current = next
  return { shown: last.current, hold: { onPointerEnter: () => setOver(true), onPointerLeave: () => setOver(false) } }
}

/** useLater is false for so many ms: what is looked at second is asked for second. */
export function useLater(ms: number): boolean {
  const [is, set] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => set(true), ms)
    return () => clearTimeout(timer)
  }, [ms])
  return is
}
