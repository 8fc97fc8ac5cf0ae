// Where the viewer is. All of it stands in the URL, so that any view is a link.
import { computed, signal } from '@preact/signals'
import { prefix } from './api'

const place = signal(location.pathname + location.search)

type Guard = (on: () => void) => void
let guard: Guard | undefined

/** hold has somebody asked before another page is shown: ask is given what goes on there. It holds until it is let go. */
export function hold(ask: Guard): () => void {
  guard = ask
  return () => {
    if (guard === ask) guard = undefined
  }
}

const pathIn = (address: string) => address.split('?')[0]

/** held tells whether somebody is asked first. */
function held(address: string, replace: boolean): boolean {
  if (!guard || pathIn(address) === pathIn(place.peek())) return false
  guard(() => {
    guard = undefined
    go(address, replace)
  })
  return true
}

addEventListener('popstate', () => {
  const next = location.pathname + location.search
  // The browser has gone there already.
  if (held(next, false)) history.pushState(null, '', place.peek())
  else place.value = next
})

/** path is that of the page, below the prefix: '/jobs/report'. */
export const path = computed(() => {
  const whole = place.value.split('?')[0] ?? ''
  const below = whole.startsWith(prefix) ? whole.slice(prefix.length) : whole
  return below.replace(/\/+$/, '') || '/'
})

export const query = computed(() => new URLSearchParams(place.value.split('?')[1] ?? ''))

/** parts are the segments of the path, read. */
export const parts = computed(() =>
  path.value
    .split('/')
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    }),
)

/** to is the address of a page: to('jobs', 'report'), with a query if need be. */
export function to(...segments: string[]): string {
  return prefix + (segments.length ? '/' + segments.map(encodeURIComponent).join('/') : '/')
}

export function withQuery(address: string, changes: Record<string, string | undefined>): string {
  const [at, before] = address.split('?')
  const given = new URLSearchParams(before ?? '')
  for (const [name, value] of Object.entries(changes)) {
    if (value) given.set(name, value)
    else given.delete(name)
  }
  const text = given.toString()
  return at + (text ? '?' + text : '')
}

/** go shows another page, or the same one with another query. */
export function go(address: string, replace = false): void {
  if (address === place.peek() || held(address, replace)) return
  const samePage = pathIn(address) === pathIn(place.peek())
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  place.value = address
  if (!samePage) scrollTo(0, 0)
}

/** filter changes the query of the page that is shown. */
export function filter(changes: Record<string, string | undefined>, replace = false): void {
  go(withQuery(place.peek(), changes), replace)
}

/** followed is for clicks on links: those within the console are followed here, unless a new tab or window was asked for. */
export function followed(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return
  if (link.pathname !== prefix && !link.pathname.startsWith(prefix + '/')) return
  if (link.pathname.startsWith(prefix + '/a/')) return
  event.preventDefault()
  go(link.pathname + link.search)
}
