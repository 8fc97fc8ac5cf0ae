// Instants and durations in words. Every instant is shown with the zone that its clock is of.
import { zone } from './settings'

export const mine = new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** zoneFor is the zone to show an instant in, that of its job where there is one and nothing else was chosen. */
export function zoneFor(job?: string): string {
  if (zone.value === 'utc') return 'UTC'
  if (zone.value === 'mine') return mine
  return job && known(job) ? job : 'UTC'
}

const formats = new Map<string, Intl.DateTimeFormat>()

function format(of: string): Intl.DateTimeFormat {
  let made = formats.get(of)
  if (!made) {
    made = new Intl.DateTimeFormat('en-GB', {
      timeZone: of, year: 'numeric', month: 'short', day: 'numeric', weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
    })
    formats.set(of, made)
  }
  return made
}

/** known reports whether this browser has a zone. The server may know names that are newer. */
export function known(name: string): boolean {
  try {
    format(name)
    return true
  } catch {
    return false
  }
}

export interface Civil {
  year: string
  month: string
  day: string
  weekday: string
  clock: string // hh:mm:ss
}

export function civil(ms: number, of: string): Civil {
  const part: Record<string, string> = {}
  for (const { type, value } of format(of).formatToParts(ms)) part[type] = value
  return { year: part.year ?? '', month: part.month ?? '', day: part.day ?? '', weekday: part.weekday ?? '', clock: `${part.hour}:${part.minute}:${part.second}` }
}

/** short is the name of a zone as it stands beside a clock. */
export const short = (of: string): string => (of === 'UTC' ? 'UTC' : (of.split('/').pop() ?? of).replaceAll('_', ' '))

/** instant writes a time: its date only where that is not today's. */
export function instant(ms: number, now: number, of: string, seconds = true): string {
  const at = civil(ms, of)
  const today = civil(now, of)
  const clock = seconds ? at.clock : at.clock.slice(0, 5)
  if (at.year !== today.year) return `${at.day} ${at.month} ${at.year} ${clock}`
  if (at.day !== today.day || at.month !== today.month) return `${at.day} ${at.month} ${clock}`
  return clock
}

/** date is the day of an instant on the clock of a zone, as 2026-03-29. */
export function date(ms: number, of: string): string {
  const part: Record<string, string> = {}
  for (const { type, value } of new Intl.DateTimeFormat('en-GB', { timeZone: of, year: 'numeric', month: '2-digit', day: '2-digit' }).formatToParts(ms)) part[type] = value
  return `${part.year?.padStart(4, '0')}-${part.month}-${part.day}`
}

/** field is an instant as a field for dates and times has it, by the clock of a zone. */
export const field = (ms: number, of: string): string => `${date(ms, of)}T${civil(ms, of).clock}`

/** offset is how far a zone's clock is ahead of UTC at an instant, as +01:00. */
export function offset(ms: number, of: string): string {
  const minutes = Math.round((Date.parse(field(ms, of) + 'Z') - Math.floor(ms / 1000) * 1000) / 60_000)
  const two = (n: number) => String(Math.floor(n)).padStart(2, '0')
  return (minutes < 0 ? '−' : '+') + two(Math.abs(minutes) / 60) + ':' + two(Math.abs(minutes) % 60)
}

/** typed is the instant that such a field means; NaN for none. Of two the first; a time that clocks skip is as much later as they go forward. */
export function typed(text: string, of: string): number {
  const clock = Date.parse(text + 'Z')
  if (Number.isNaN(clock)) return NaN
  const ahead = (ms: number) => Date.parse(field(ms, of) + 'Z') - ms
  const [before, after] = [clock - ahead(clock - 86_400_000), clock - ahead(clock + 86_400_000)]
  const fits = [before, after].filter((ms) => ms + ahead(ms) === clock)
  return fits.length ? Math.min(...fits) : before
}

/** inFull is what a pointer over an instant is told: it in UTC and here, to the millisecond. */
export function inFull(ms: number, of: string): string {
  const zones = [...new Set([of, 'UTC', mine])]
  return zones.map((z) => `${dayIn(ms, z)} ${civil(ms, z).clock}.${String(((ms % 1000) + 1000) % 1000).padStart(3, '0')} ${z}`).join('\n')
}

export function dayIn(ms: number, of: string): string {
  const at = civil(ms, of)
  return `${at.weekday} ${at.day} ${at.month} ${at.year}`
}

/** span writes a duration as two of its units at most: 41 s, 4 m 10 s, 3 d 2 h. */
export function span(ms: number): string {
  const sign = ms < 0 ? '−' : ''
  const all = Math.abs(ms)
  if (all < 1) return '0 ms'
  if (all < 1000) return sign + Math.round(all) + ' ms'
  if (all < 9950) return sign + (all / 1000).toFixed(1).replace(/\.0$/, '') + ' s'
  const seconds = Math.round(all / 1000)
  const units: [string, number][] = [['d', 86_400], ['h', 3600], ['m', 60], ['s', 1]]
  const from = units.findIndex(([, size]) => seconds >= size)
  const [name, size] = units[from] ?? ['s', 1]
  const whole = Math.floor(seconds / size)
  const next = units[from + 1]
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0
  return sign + whole + ' ' + name + (next && rest && whole < 10 * (name === 'd' ? 1 : 6) ? ' ' + rest + ' ' + next[0] : '')
}

/** ago writes how far away an instant is. */
export function ago(ms: number, now: number): string {
  const far = now - ms
  if (Math.abs(far) < 1000) return 'now'
  return far > 0 ? coarse(far) + ' ago' : 'in ' + coarse(-far)
}

// Ages change without being looked at, so they have one unit.
function coarse(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return seconds + ' s'
  if (seconds < 3600) return Math.floor(seconds / 60) + ' m'
  if (seconds < 86_400) return Math.floor(seconds / 3600) + ' h'
  return Math.floor(seconds / 86_400) + ' d'
}

/** parse gives an instant in ms, NaN for none. Zero times of Go are none. */
export function parse(text: string | undefined): number {
  if (!text || text.startsWith('0001-')) return NaN
  return Date.parse(text)
}

/** every is a duration of the API, such as 1h30m, in ms; NaN for what is none. */
export function length(text: string): number {
  const units: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, µs: 1e-3 }
  let sum = 0
  let rest = text
  while (rest) {
    const part = /^(\d+(?:\.\d+)?)(ms|µs|[dhms])/.exec(rest)
    if (!part) return NaN
    sum += Number(part[1]) * (units[part[2] ?? ''] ?? NaN)
    rest = rest.slice(part[0].length)
  }
  return sum
}
