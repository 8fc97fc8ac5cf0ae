// What a calendar makes of the days that the API counts. Nothing here knows of pages.
import { outcomes } from './outcomes'

export interface Day {
  date: string
  from: string
  to: string
  runs?: Record<string, number>
  fires?: number
  partial?: boolean
}

export interface Calendar {
  timezone: string
  kept_from: string
  counted_from?: string
  fires_to?: string
  days: Day[]
}

const long = 86_400_000

/** shift is the date so many days later. */
export const shift = (date: string, days: number): string => new Date(Date.parse(date + 'T00:00:00Z') + days * long).toISOString().slice(0, 10)

/** weekday is 0 for Monday to 6 for Sunday. */
export const weekday = (date: string): number => (new Date(date + 'T00:00:00Z').getUTCDay() + 6) % 7

export const weeks = 53

/** span gives the first and the last day of the 53 weeks that end three weeks after this one: whole weeks, from a Monday on. */
export function spanOf(today: string): { from: string; to: string } {
  const monday = shift(today, -weekday(today))
  return { from: shift(monday, -(weeks - 4) * 7), to: shift(monday, 4 * 7 - 1) }
}

// The worst first.
const kinds: [string, string[]][] = [
  ['bad', outcomes.failed],
  ['open', outcomes.open],
  ['ok', outcomes.succeeded],
  ['off', outcomes.skipped],
]

export const total = (day: Day): number => Object.values(day.runs ?? {}).reduce((a, b) => a + b, 0)

/** outcome is the worst of what became of a day's runs, '' where it has none. */
export const outcome = (day: Day): string => kinds.find(([, states]) => states.some((s) => day.runs?.[s]))?.[0] ?? ''

/** told says a day in words, but for its date. */
export function told(day: Day, calendar: Calendar): string {
  const n = total(day)
  const parts: string[] = []
  const states = Object.entries(day.runs ?? {}).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  if (n) parts.push(`${day.partial ? 'more than ' : ''}${count(n, 'run')}: ${states.map(([state, m]) => `${m.toLocaleString('en')} ${state}`).join(', ')}`)
  else if (calendar.counted_from && Date.parse(day.to) <= Date.parse(calendar.counted_from)) parts.push('not counted')
  else if (!day.fires) parts.push('no runs')
  if (day.fires) parts.push(`${count(day.fires, 'fire')} to come`)
  else if (calendar.fires_to && Date.parse(day.from) >= Date.parse(calendar.fires_to)) parts.push('fires to come are not counted')
  const hours = (Date.parse(day.to) - Date.parse(day.from)) / 3_600_000
  if (hours !== 24) parts.push(`${hours} hours, since the clock changes`)
  return parts.join('; ')
}

export const count = (n: number, what: string): string => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`

/** joined puts days that were counted later in the place of those that were not. */
export function joined(newer: Calendar, older: Calendar): Calendar {
  const found = new Map(older.days.map((d) => [d.date, d]))
  const days = newer.days.map((d) => {
    const was = found.get(d.date)
    return was ? { ...d, runs: was.runs, partial: was.partial } : d
  })
  return { ...newer, days, counted_from: older.counted_from }
}
