// What the page of the schedule makes of the load that the API counts. Nothing here knows of pages.

export interface Load {
  from: string
  to: string
  counted_to: string
  step_seconds: number
  fires: number[]
  total: number
  jobs: number
  paused: number
  more_jobs?: boolean
  peak?: { at: string; fires: number; jobs: { job: string; fires: number }[]; more_jobs: number }
  minutes: number[]
}

export const hour = 3_600_000

export interface Slot {
  at: number // when it begins, in ms
  fires: number
  known: boolean // it was counted
}

/** slots gives the steps of a load, oldest first, those that were not counted too. */
export function slots(load: Load): Slot[] {
  const from = Date.parse(load.from)
  const step = load.step_seconds * 1000
  return Array.from({ length: Math.round((Date.parse(load.to) - from) / step) }, (_, i) => ({ at: from + i * step, fires: load.fires[i] ?? 0, known: i < load.fires.length }))
}

/** byClock puts slots of an hour in a row for each date and a column for each hour of the clock. An hour that the clock shows twice has both together. */
export function byClock(all: Slot[], clock: (ms: number) => { date: string; hour: number }): { date: string; hours: (Slot[] | undefined)[] }[] {
  const rows: { date: string; hours: (Slot[] | undefined)[] }[] = []
  for (const slot of all) {
    const at = clock(slot.at)
    let row = rows.find((r) => r.date === at.date)
    if (!row) rows.push((row = { date: at.date, hours: new Array<Slot[] | undefined>(24) }))
    const there = row.hours[at.hour]
    if (there) there.push(slot)
    else row.hours[at.hour] = [slot]
  }
  return rows
}

/** quiet gives the hours of the clock in which nothing is due on any day, as stretches such as 03:00–05:00. */
export function quiet(rows: ReturnType<typeof byClock>): string[] {
  const free = Array.from({ length: 24 }, (_, h) => {
    const those = rows.map((r) => r.hours[h]).filter((s) => s !== undefined)
    return those.length > 0 && those.every((s) => s.every((slot) => slot.known && slot.fires === 0))
  })
  const stretches: string[] = []
  const clock = (h: number) => String(h).padStart(2, '0') + ':00'
  for (let h = 0; h < 24; h++) {
    if (!free[h]) continue
    const begin = h
    while (h < 24 && free[h]) h++
    stretches.push(`${clock(begin)}–${clock(h)}`)
  }
  return stretches
}
