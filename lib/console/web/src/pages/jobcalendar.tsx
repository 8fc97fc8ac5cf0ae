// What a job did by day, and what it will do: 53 weeks as squares.
import '../app'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get } from '../api'
import { now } from '../clock'
import { joined, outcome, shift, spanOf, told, total, weekday, weeks, type Calendar, type Day } from '../days'
import { Heat, strength, type Cell } from '../heat'
import { useLive } from '../live'
import { outcomes } from '../outcomes'
import { to, withQuery } from '../router'
import { date, parse, short, zoneFor } from '../time'
import { Instant, pending, Refused, Waiting } from '../ui'

const names = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

const said = (d: Day) => `${names[weekday(d.date)]} ${Number(d.date.slice(8))} ${months[Number(d.date.slice(5, 7)) - 1]} ${d.date.slice(0, 4)}`

export function JobCalendar({ name, where }: { name: string; where: string | undefined }) {
  const zone = zoneFor(where)
  const today = date(now.value, zone)
  const asked = spanOf(today)
  const at = '/jobs/' + encodeURIComponent(name) + '/calendar'
  // Each time all days are counted anew, so it is seldom.
  const live = useLive(`calendar ${name} ${zone} ${asked.from}`, async (stop) => (await get<Calendar>(at, { ...asked, timezone: zone }, stop)).data, 300_000)
  const [older, setOlder] = useState<Calendar>()
  const [counting, setCounting] = useState(false)
  const [failed, setFailed] = useState<Error>()
  const [over, setOver] = useState('')
  const [table, setTable] = useState(false)
  useEffect(() => setOlder(undefined), [name, zone])
  const scroller = useRef<HTMLDivElement>(null)
  const shown = live.data && older ? joined(live.data, older) : live.data
  const here = shown !== undefined
  useEffect(() => {
    if (scroller.current) scroller.current.scrollLeft = scroller.current.scrollWidth // the newest is at the right
  }, [here, table])
  const further = async (calendar: Calendar) => {
    setCounting(true)
    setFailed(undefined)
    try {
      const last = shift(date(parse(calendar.counted_from), zone), -1)
      const more = (await get<Calendar>(at, { from: asked.from, to: last, timezone: zone })).data
      setOlder((was) => (was ? { ...more, days: [...more.days, ...was.days.filter((d) => d.date > last)] } : more))
    } catch (error) {
      setFailed(error as Error)
    }
    setCounting(false)
  }
  return (
    <section aria-labelledby="calendar" class="calendar">
      <header class="bar">
        <h2 id="calendar">Calendar</h2>
        <span class="fine">days of {short(zone)}</span>
        {shown && (
          <button type="button" class="plain more" aria-pressed={table} onClick={() => setTable(!table)}>
            {table ? 'As a calendar' : 'As a table'}
          </button>
        )}
      </header>
      <Refused error={live.error ?? failed} small />
      {!shown && pending(live.error) && <Waiting lines={3} />}
      {shown && (
        <>
          {table ? <Table of={shown} job={name} /> : (
            <div class="scroller" ref={scroller}>
              <Squares of={shown} job={name} today={today} told={setOver} />
            </div>
          )}
          <p class="fine said-of">
            {over || (
              <>
                {shown.counted_from ? (
                  <>
                    Counted since <Instant at={shown.counted_from} where={where} brief />: what is before that was too much at once.{' '}
                    <button type="button" class="plain" aria-disabled={counting} onClick={() => !counting && void further(shown)}>
                      {counting ? 'Counting…' : 'Count further back'}
                    </button>
                  </>
                ) : (
                  <>Runs are kept since <Instant at={shown.kept_from} where={where} brief />.</>
                )}
              </>
            )}
          </p>
          {!table && (
            <ul class="legend squares">
              <li class="c-ok">succeeded</li>
              <li class="c-bad">some failed</li>
              <li class="c-open">not ended</li>
              <li class="c-off">skipped or cancelled</li>
              <li class="c-will">to come</li>
              {shown.counted_from && <li class="c-not">not counted</li>}
            </ul>
          )}
        </>
      )}
    </section>
  )
}

const marks: Record<string, string> = { bad: '✕', open: '▸', off: '–' }

function Squares({ of, job, today, told: tell }: { of: Calendar; job: string; today: string; told: (text: string) => void }) {
  const most = Math.max(...of.days.map((d) => Math.max(total(d), d.fires ?? 0)), 1)
  const cells: (Cell | undefined)[][] = names.map(() => new Array<Cell | undefined>(weeks))
  const columns = new Array<string>(weeks).fill('')
  of.days.forEach((day, i) => {
    const kind = outcome(day)
    const n = total(day)
    const uncounted = of.counted_from !== undefined && parse(day.to) <= parse(of.counted_from)
    const look = kind ? `c-${kind} n-${strength(n, most)}` : day.fires ? `c-will n-${strength(day.fires, most)}` : uncounted ? 'c-not n-4' : 'c-none'
    const row = cells[i % 7]
    if (row) {
      row[Math.floor(i / 7)] = {
        look: look + (day.date === today ? ' today' : ''), text: marks[kind],
        told: `${said(day)}${day.date === today ? ', today' : ''}: ${told(day, of)}`, href: n ? runsOf(job, day) : undefined,
      }
    }
    if (day.date.endsWith('-01')) columns[Math.floor(i / 7)] = months[Number(day.date.slice(5, 7)) - 1] ?? ''
  })
  return <Heat rows={names} columns={columns} cells={cells} label={'Runs of ' + job + ' by day'} look="days" told={tell} />
}

const runsOf = (job: string, day: Day) => withQuery(to('runs'), { job, from: day.from, to: day.to })

const headings: [string, string[]][] = [
  ['succeeded', outcomes.succeeded],
  ['failed', outcomes.failed],
  ['not ended', outcomes.open],
  ['skipped or cancelled', outcomes.skipped],
]

function Table({ of, job }: { of: Calendar; job: string }) {
  const days = of.days.filter((d) => total(d) || d.fires).reverse()
  return (
    <div class="scroller short" tabIndex={0} role="region" aria-label={'Runs of ' + job + ' by day'}>
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            {headings.map(([name]) => (
              <th scope="col" class="num" key={name}>
                {name}
              </th>
            ))}
            <th scope="col" class="num">
              to come
            </th>
          </tr>
        </thead>
        <tbody>
          {days.map((d) => (
            <tr key={d.date}>
              <td>{total(d) ? <a href={runsOf(job, d)}>{said(d)}</a> : said(d)}</td>
              {headings.map(([name, states]) => (
                <td class="num" key={name}>
                  {states.reduce((n, s) => n + (d.runs?.[s] ?? 0), 0).toLocaleString('en')}
                </td>
              ))}
              <td class="num">{(d.fires ?? 0).toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {days.length === 0 && <p class="nothing">It has no runs, and none to come.</p>}
    </div>
  )
}
