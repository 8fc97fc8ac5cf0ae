// What changes, as the server tells it while it does. All tabs of a browser share one stream: the one that holds a lock follows it, and passes on
// to the others what it hears. A tab that is hidden takes no part. Without a stream, pages ask by the clock.
import { effect, signal } from '@preact/signals'
import { events, locked, prefix, Refusal, session } from './api'

/**
 * way is how this tab learns of changes: 'stream' at once, 'poll' by asking every two seconds, 'slow' by asking every ten, where each question
 * costs a call of a function; undefined until that is known.
 */
export const way = signal<'stream' | 'poll' | 'slow' | undefined>(undefined)

/** since is when what way says began, in ms of the browser's clock: what was asked for before may have missed a change. */
export let since = 0

/** All is what a hint says that names nothing. */
export const all = 'all'

const listeners = new Set<(names: string[]) => void>()

/** listen calls with the names of what has changed, until what it gives is called. */
export function listen(heard: (names: string[]) => void): () => void {
  listeners.add(heard)
  return () => listeners.delete(heard)
}

interface Told {
  complete?: boolean // only in the first event of a stream
  changed: string[]
}

interface Message {
  ask?: true // a tab wants to know how things stand
  way?: typeof way.value
  changed?: string[]
}

function take({ way: next, changed }: Message): void {
  if (next && next !== way.peek()) {
    since = Date.now()
    way.value = next
  }
  if (changed?.length) for (const heard of listeners) heard(changed)
}

const early = 5000 // a stream that ends sooner was ended by a server that stops
const longest = 30_000

/** follow follows streams one after the other, and gives what it learns to tell, until it is stopped, or the server has none. */
async function follow(tell: (message: Message) => void, stop: AbortSignal): Promise<void> {
  let failed = 0
  let first = !way.peek() // else another tab has followed one before, and something may have changed since
  const again = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      stop.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
    })
  while (!stop.aborted) {
    const began = Date.now()
    try {
      await events<Told>('/changes', (event) => {
        failed = 0
        const begins = event.complete !== undefined
        tell({ way: begins ? (event.complete ? 'stream' : 'poll') : undefined, changed: begins && !first ? [all] : event.changed }) // between two streams something may have changed
        first = false
      }, stop)
      if (Date.now() - began < early) await again(1000)
    } catch (error) {
      if (stop.aborted) return
      const refused = error instanceof Refusal ? error.problem.status : 0
      if (refused === 404) return tell({ way: 'slow' })
      tell({ way: 'poll', changed: [all] })
      if (refused === 401) return // another session begins anew
      await again(Math.max(Math.min(longest, 1000 * 2 ** failed++), error instanceof Refusal ? error.retryAfter : 0))
    }
  }
}

let end: (() => void) | undefined

/** begin takes part, as one of the tabs that may see what the session of this one may. */
function begin(): () => void {
  const stop = new AbortController()
  const group = ['belfry-changes', prefix, session.peek()?.parent ?? ''].join(' ')
  const channel = new BroadcastChannel(group)
  let leads = false
  const tell = (message: Message) => {
    take(message)
    channel.postMessage({ ...message, way: message.way ?? way.peek() })
  }
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.ask) {
      if (leads && way.peek()) channel.postMessage({ way: way.peek() } satisfies Message)
    } else if (!leads) take(data)
  }
  channel.postMessage({ ask: true } satisfies Message)
  navigator.locks
    .request(group, { signal: stop.signal }, async () => {
      leads = true
      await follow(tell, stop.signal)
      // Where the server has no stream, the lock is kept: else the next tab would ask for one, too.
      await new Promise<void>((resolve) => (stop.signal.aborted ? resolve() : stop.signal.addEventListener('abort', () => resolve(), { once: true })))
    })
    .catch(() => undefined) // stopped while another tab leads
  return () => {
    stop.abort()
    channel.close()
  }
}

// Before a tab has signed in, as with a key in its address, a question would be refused.
let arrived = false

/** hear has this tab learn of changes, from when it knows its session. */
export function hear(): void {
  arrived = true
  takePart()
}

function takePart(): void {
  const may = arrived && !document.hidden && locked.peek() === undefined
  if (!('locks' in navigator)) way.value = 'poll' // nothing says that the page is the server's own: no TLS, and not this machine
  else if (may && !end) end = begin()
  else if (!may && end) {
    end()
    end = undefined
  }
}

document.addEventListener('visibilitychange', takePart)
effect(() => {
  void session.value
  void locked.value
  end?.() // which was for another session
  end = undefined
  takePart()
})
