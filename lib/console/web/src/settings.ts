// What a viewer chose. It stays in this browser, but for the zone, which a link carries too.
import { effect, signal } from '@preact/signals'

export type Zone = 'job' | 'utc' | 'mine'
export type Scheme = 'auto' | 'light' | 'dark'

const kept = 'belfry-console'

interface Settings {
  zone: Zone
  scheme: Scheme
  keys: boolean
}

const usual: Settings = { zone: 'job', scheme: 'auto', keys: true }

function read(): Settings {
  try {
    const found = JSON.parse(localStorage.getItem(kept) ?? '{}') as Partial<Settings>
    return {
      zone: found.zone === 'utc' || found.zone === 'mine' ? found.zone : 'job',
      scheme: found.scheme === 'light' || found.scheme === 'dark' ? found.scheme : 'auto',
      keys: found.keys !== false,
    }
  } catch {
    return usual
  }
}

const begin = read()
export const zone = signal<Zone>(begin.zone)
export const scheme = signal<Scheme>(begin.scheme)
export const singleKeys = signal(begin.keys)

effect(() => {
  const text = JSON.stringify({ zone: zone.value, scheme: scheme.value, keys: singleKeys.value } satisfies Settings)
  try {
    localStorage.setItem(kept, text)
  } catch {
    // Storage is switched off: the choice lasts until the page is left.
  }
})

effect(() => {
  document.documentElement.dataset.scheme = scheme.value
})
