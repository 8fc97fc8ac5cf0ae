// What all jobs have before them: a week by the hour, an hour by the minute, and what makes the peak.
import '../app'
import { useState } from 'preact/hooks'
import { get } from '../api'
import { now } from '../clock'
import { count } from '../days'
import { Heat, strength, type Cell } from '../heat'
import { useLive } from '../live'
import { byClock, hour, quiet, slots, type Load } from '../load'
import { filter, query, to, withQuery } from '../router'
import { civil, date, dayIn, instant, parse, short, zoneFor } from '../time'
import { Command, Instant, pending, Refused, Waiting } from '../ui'

// What has room in a cell. Its name has all digits, and this too.
const brief = (n: number) => (n < 10_000 ? n.toLocaleString('en') : Math.round(n / 1000).toLocaleString('en') + 'k')

export function Schedule() {
  const zone = zoneFor()
  // Hours of the zone's clock, which may begin at half past those of UTC.
  const past = Number(civil(now.value, zone).clock.slice(3, 5)) * 60_000 + (now.value % 60_000)
  const begin = Math.round((now.value - past) / 60_000) * 60_000
  const from = new Date(begin).toISOString()
  const live = useLive('schedule ' + from, async (stop) => (await get<Load>('/schedule/load', { from, to: new Date(begin + 168 * hour).toISOString(), step: '1h' }, stop)).data, 60_000)
  const [over, setOver] = useState('')
  const [table, setTable] = useState(false)
  const load = live.data
  const at = parse(query.value.get('at') ?? undefined)
  return (
    <section class="page">
      <header class="bar">
        <h1>Schedule</h1>
        <span class="fine">the next seven days, by the hour, {short(zone)}</span>
        {load && (
          <button type="button" class="plain more" aria-pressed={table} onClick={() => setTable(!table)}>
            {table ? 'As a chart' : 'As a table'}
          </button>
        )}
      </header>
      <Refused error={live.error} />
      {!load && pending(live.error) && <Waiting lines={8} />}
      {load && (
        <>
          <Sum of={load} zone={zone} />
          {table ? <Hours of={load} zone={zone} /> : (
            <div class="scroller">
              <Week of={load} zone={zone} chosen={at} told={setOver} />
            </div>
          )}
          <p class="fine said-of">{over || 'Each hour leads to its minutes.'}</p>
          <Minutes of={load} />
        </>
      )}
      {!Number.isNaN(at) && <Hour key={at} at={at} zone={zone} />}
      <details class="cli">
        <summary>In a terminal</summary>
        <Command text="belfry schedule load" />
      </details>
    </section>
  )
}

function Sum({ of, zone }: { of: Load; zone: string }) {
  const rows = byClock(slots(of), clockOf(zone))
  const still = quiet(rows)
  const first = of.minutes[0] ?? 0
  return (
    <dl class="facts sums">
      <div>
        <dt>Due</dt>
        <dd>
          {count(of.total, 'run')} of {count(of.jobs, 'job')}
          {of.paused > 0 && (
            <>
              , without <a href={withQuery(to('jobs'), { paused: 'true' })}>{of.paused.toLocaleString('en')} paused</a>
            </>
          )}
          {of.more_jobs && <p class="fine">Of the first 10,000 jobs by name.</p>}
          {parse(of.counted_to) < parse(of.to) && (
            <p class="fine">
              Counted up to <Instant at={of.counted_to} brief />: what is after that is too much at once.
            </p>
          )}
        </dd>
      </div>
      <div>
        <dt>Peak</dt>
        <dd>
          {of.peak ? (
            <a href={withQuery(to('schedule'), { at: of.peak.at })}>
              {dayIn(parse(of.peak.at), zone).slice(0, 3)} {civil(parse(of.peak.at), zone).clock.slice(0, 5)}: {count(of.peak.fires, 'run')}
            </a>
          ) : (
            'none: nothing is due'
          )}
        </dd>
      </div>
      <div>
        <dt>Quiet hours</dt>
        <dd>{still.length ? still.join(', ') : 'none: each hour has something on some day'}</dd>
      </div>
      <div>
        <dt>In the first minute of an hour</dt>
        <dd>{of.total ? `${Math.round((first / of.total) * 100)} % (${count(first, 'run')})` : '–'}</dd>
      </div>
    </dl>
  )
}

const clockOf = (zone: string) => (ms: number) => ({ date: date(ms, zone), hour: Number(civil(ms, zone).clock.slice(0, 2)) })

function Week({ of, zone, chosen, told }: { of: Load; zone: string; chosen: number; told: (text: string) => void }) {
  const rows = byClock(slots(of), clockOf(zone))
  const most = of.peak?.fires ?? 1
  const cells = rows.map((r) =>
    r.hours.map((all): Cell | undefined => {
      const slot = all?.[0]
      if (!all || !slot) return undefined
      const fires = all.reduce((n, s) => n + s.fires, 0)
      const known = all.every((s) => s.known)
      const begin = `${dayIn(slot.at, zone).slice(0, -5)}, ${civil(slot.at, zone).clock.slice(0, 5)} ${short(zone)}`
      return {
        look: (known ? 'l-' + strength(fires, most) : 'c-not') + (slot.at === chosen ? ' chosen' : ''),
        text: known && fires ? brief(fires) : '',
        told: `${begin}: ${known ? (fires ? count(fires, 'run') + ' due' + (fires < 10_000 ? '' : ` (${brief(fires)})`) : 'nothing is due') : 'not counted'}${all.length > 1 ? '; the clock shows this hour twice' : ''}`,
        href: withQuery(to('schedule'), { at: new Date(slot.at).toISOString() }),
      }
    }),
  )
  // A row may end before its 24 hours.
  const wide = cells.map((row) => Array.from({ length: 24 }, (_, h) => row[h]))
  return <Heat rows={rows.map((r) => dayIn(Date.parse(r.date + 'T12:00:00Z'), 'UTC').slice(0, -5))} columns={Array.from({ length: 24 }, (_, h) => String(h).padStart(2, '0'))} cells={wide} label="Runs due by hour" look="week" told={told} />
}

function Hours({ of, zone }: { of: Load; zone: string }) {
  const due = slots(of).filter((s) => s.fires)
  return (
    <div class="scroller short" tabIndex={0} role="region" aria-label="Runs due by hour">
      <table>
        <thead>
          <tr>
            <th scope="col">Hour</th>
            <th scope="col" class="num">
              Runs due
            </th>
          </tr>
        </thead>
        <tbody>
          {due.map((s) => (
            <tr key={s.at}>
              <td>
                <a href={withQuery(to('schedule'), { at: new Date(s.at).toISOString() })}>
                  {dayIn(s.at, zone)} {civil(s.at, zone).clock.slice(0, 5)} {short(zone)}
                </a>
              </td>
              <td class="num">{s.fires.toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Strip is 60 bars, each with its minute in words. */
export function Strip({ of, label, told }: { of: number[]; label: string; told: (n: number) => string }) {
  const most = Math.max(...of, 1)
  return (
    <svg class="strip" viewBox={`0 0 ${of.length * 10} 60`} preserveAspectRatio="none" role="img" aria-label={label}>
      {of.map((n, i) => (
        <g key={i}>
          <title>{told(i)}</title>
          <rect class="under" x={i * 10} y="0" width="10" height="60" />
          {n > 0 && <rect x={i * 10 + 1} y={60 - Math.max(2, (n / most) * 60)} width="8" height={Math.max(2, (n / most) * 60)} />}
        </g>
      ))}
    </svg>
  )
}

function Minutes({ of }: { of: Load }) {
  const busy = of.minutes.map((n, m) => ({ n, m })).filter((x) => x.n).sort((a, b) => b.n - a.n || a.m - b.m)
  if (!busy.length) return null
  const said = busy.slice(0, 3).map(({ n, m }) => `:${String(m).padStart(2, '0')} has ${n.toLocaleString('en')}`)
  return (
    <figure class="minutes">
      <figcaption>
        <b>By the minute of the hour</b> <span class="fine">UTC; {said.join(', ')}</span>
      </figcaption>
      <Strip of={of.minutes} label={`Runs due by the minute of the hour: ${said.join(', ')}`} told={(m) => `:${String(m).padStart(2, '0')}, ${count(of.minutes[m] ?? 0, 'run')}`} />
      <div class="axis" aria-hidden="true">
        <span>:00</span>
        <span>:15</span>
        <span>:30</span>
        <span>:45</span>
        <span>:59</span>
      </div>
    </figure>
  )
}

/** Hour is the minutes of one hour, and the jobs that are due in its busiest one. */
function Hour({ at, zone }: { at: number; zone: string }) {
  const live = useLive('hour ' + at, async (stop) => {
    const bounds = { from: new Date(at).toISOString(), to: new Date(at + hour).toISOString() }
    const [minutes, whole] = await Promise.all([get<Load>('/schedule/load', { ...bounds, step: '1m' }, stop), get<Load>('/schedule/load', { ...bounds, step: '1h' }, stop)])
    return { minutes: minutes.data, whole: whole.data }
  }, 60_000)
  const name = `${instant(at, now.value, zone, false)} to ${civil(at + hour, zone).clock.slice(0, 5)} ${short(zone)}`
  const peak = live.data?.minutes.peak
  const fires = live.data?.minutes.fires ?? []
  return (
    <section aria-labelledby="hour" class="minutes">
      <header class="bar">
        <h2 id="hour">{name}</h2>
        <button type="button" class="plain more" onClick={() => filter({ at: undefined })}>
          Close
        </button>
      </header>
      <Refused error={live.error} small />
      {!live.data && pending(live.error) && <Waiting lines={2} />}
      {live.data && !peak && <p class="nothing">Nothing is due in this hour.</p>}
      {live.data && peak && (
        <>
          <Strip of={fires} label={`Runs due by minute: the most is ${peak.fires} at ${civil(parse(peak.at), zone).clock.slice(0, 5)}`}
            told={(m) => `${civil(at + m * 60_000, zone).clock.slice(0, 5)}, ${count(fires[m] ?? 0, 'run')}`} />
          <p class="fine">
            {count(live.data.whole.total, 'run')} of {count(live.data.whole.jobs, 'job')}; the busiest minute is {civil(parse(peak.at), zone).clock.slice(0, 5)}, with {peak.fires.toLocaleString('en')}. Most of the hour are of:
          </p>
          <ul class="brief next">
            {live.data.whole.peak?.jobs.map((j) => (
              <li key={j.job}>
                <a href={to('jobs', j.job)}>{j.job}</a>
                <span class="fine">{count(j.fires, 'run')}</span>
              </li>
            ))}
          </ul>
          {(live.data.whole.peak?.more_jobs ?? 0) > 0 && <p class="fine">and {count(live.data.whole.peak?.more_jobs ?? 0, 'other job')}</p>}
        </>
      )}
    </section>
  )
}
