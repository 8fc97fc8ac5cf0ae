// Counts over time: runs by outcome, how late they began, and how deep the queues are, under one crosshair.
import '../app'
import { useState } from 'preact/hooks'
import { get, Refusal } from '../api'
import { Ground, line, moved, place, wide, type Under } from '../chart'
import { now } from '../clock'
import { sampled, type Sample } from '../depth'
import { useLive } from '../live'
import type { Page, Run } from '../model'
import { filter, query, to, withQuery } from '../router'
import { bins, height, kindOf, kinds, nice, quantile, type Bin, type Stats } from '../stats'
import { civil, instant, parse, short, span, zoneFor } from '../time'
import { Refused } from '../ui'

const windows: Record<string, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 7 * 86_400_000 }
const minute = 60_000

/** Window is what the address asks for: a length up to now, or two instants. */
function chosen(): { name: string; from: number; to: number; fixed: boolean } {
  const q = query.value
  const [from, end] = [parse(q.get('from') ?? undefined), parse(q.get('to') ?? undefined)]
  if (from < end) return { name: '', from, to: end, fixed: true }
  const name = q.get('window') ?? '1h'
  const long = windows[name] ?? 3_600_000
  const step = long > 86_400_000 ? 60 * minute : minute
  const last = (Math.floor(now.value / step) + 1) * step
  return { name: name in windows ? name : '1h', from: last - long, to: last, fixed: false }
}

export function Charts() {
  const zone = zoneFor()
  const window = chosen()
  const step = window.to - window.from > 86_400_000 ? '1h' : '1m'
  const live = useLive(`stats ${window.fixed ? window.from : ''} ${window.fixed ? window.to : window.name} ${step}`, async (stop) => {
    const asked = chosen()
    const { data } = await get<Stats>('/stats', { from: new Date(asked.from).toISOString(), to: new Date(asked.to).toISOString(), step }, stop)
    return data
  }, window.fixed ? 300_000 : 20_000)
  const since = live.data ? Math.max(parse(live.data.swept_until) || 0, parse(live.data.from)) : 0
  // The newest minutes are in no count yet: their runs are looked at themselves, as many as one answer holds.
  const fresh = useLive(since && since < now.value && !window.fixed && window.name === '1h' ? 'fresh runs ' + since : '', async (stop) => {
    const { data } = await get<Page<Run>>('/runs', { from: new Date(since).toISOString(), to: new Date(Math.ceil(now.peek() / 1000) * 1000).toISOString(), limit: 1000 }, stop)
    return data
  }, 5000, ['runs'])
  const [table, setTable] = useState(false)
  return (
    <section class="charts" aria-label="Runs over time">
      <header class="bar">
        <div class="windows" role="group" aria-label="Window">
          {Object.keys(windows).map((name) => (
            <button type="button" class="act" key={name} aria-pressed={!window.fixed && window.name === name} onClick={() => filter({ window: name === '1h' ? undefined : name, from: undefined, to: undefined })}>
              {name}
            </button>
          ))}
        </div>
        {window.fixed && (
          <span class="fine">
            {instant(window.from, now.value, zone, false)} to {instant(window.to, now.value, zone, false)} {short(zone)}
          </span>
        )}
        <a href={withQuery(to('runs'), { from: new Date(window.from).toISOString(), to: new Date(window.to).toISOString() })}>Runs of this window</a>
        {live.data && (
          <button type="button" class="plain more" aria-pressed={table} onClick={() => setTable(!table)}>
            {table ? 'As charts' : 'As a table'}
          </button>
        )}
      </header>
      {live.error instanceof Refusal && live.error.problem.status === 404 ? <p class="nothing">This server keeps no counts over time.</p> : <Refused error={live.error} small />}
      {live.data && <Drawn of={live.data} fresh={fresh.data?.items} zone={zone} table={table} />}
    </section>
  )
}

function Drawn({ of: stats, fresh, zone, table }: { of: Stats; fresh: Run[] | undefined; zone: string; table: boolean }) {
  const [at, setAt] = useState(-1)
  const [brush, setBrush] = useState<[number, number]>()
  const all = bins(stats)
  if (fresh) {
    for (const b of all) if (!b.swept) b.counts.fill(0)
    for (const run of fresh) {
      const bin = all.findLast((b) => b.at <= parse(run.nominal_time))
      const kind = kindOf(run.state)
      if (bin && !bin.swept && kind >= 0) bin.counts[kind] = (bin.counts[kind] ?? 0) + 1
    }
  }
  const [from, end] = [parse(stats.from), parse(stats.to)]
  const bounds = stats.lateness_bounds_ms
  const one = all[at]
  const long = (all[1]?.at ?? end) - from
  const totals = kinds.map((_, k) => all.reduce((n, b) => n + (b.counts[k] ?? 0), 0))
  const p50 = all.map((b) => (b.late ? quantile(b.late, bounds, 0.5) : undefined))
  const p99 = all.map((b) => (b.late ? quantile(b.late, bounds, 0.99) : undefined))
  const when = (ms: number) => (end - from > 86_400_000 ? instant(ms, now.value, zone, false) : civil(ms, zone).clock.slice(0, 5))
  const told = (b: Bin, i: number) =>
    `${instant(b.at, now.value, zone, false)} ${short(zone)}: ${kinds.map((k, n) => `${b.counts[n] ?? 0} ${k}`).join(', ')}` +
    (b.late ? `; late by ${span(p50[i] ?? 0)} (p50), ${span(p99[i] ?? 0)} (p99)` : '') + (b.swept ? '' : '; not swept yet')
  const [first, last] = brush ? [Math.min(...brush), Math.max(...brush)] : [-1, -1]
  const picked = all[first] && all[last] ? { from: new Date(all[first].at).toISOString(), to: new Date(Math.min(all[last].at + long, end)).toISOString() } : undefined
  const zoom = () => {
    if (picked) filter({ ...picked, window: undefined })
    setBrush(undefined)
    setAt(-1)
  }
  const keyed = (event: KeyboardEvent) => {
    const next = moved(event, at, all.length)
    if (next !== undefined) {
      if (event.shiftKey) setBrush([brush?.[0] ?? (at < 0 ? next : at), next])
      else setBrush(undefined)
      setAt(next)
    } else if (event.key === 'Enter' && picked) zoom()
    else if (event.key === 'Escape' && (brush || at >= 0)) {
      setBrush(undefined)
      setAt(-1)
    } else return
    event.preventDefault()
  }
  const under = { all, bins: all.length, at, first, last }
  return (
    <>
      <ul class="legend">
        {kinds.map((k, i) => (
          <li key={k} class={'k-' + i}>
            {k} <b>{(one ? one.counts[i] : totals[i])?.toLocaleString('en')}</b>
          </li>
        ))}
        <li class="k-hatch">not swept yet</li>
        <li class="fine">{one ? `${instant(one.at, now.value, zone, false)} ${short(zone)}` : `by ${long >= 3_600_000 ? 'the hour' : long > minute ? span(long) : 'the minute'}, ${short(zone)}`}</li>
      </ul>
      {table ? <Table all={all} p50={p50} p99={p99} zone={zone} /> : (
        <div class="stack" role="slider" tabIndex={0} aria-label="Runs by outcome, lateness and depth of queues, over time" aria-valuemin={0} aria-valuemax={Math.max(0, all.length - 1)} aria-valuenow={Math.max(0, at)}
          aria-valuetext={one ? told(one, at) : `All: ${kinds.map((k, n) => `${totals[n]} ${k}`).join(', ')}`} onKeyDown={keyed}
          onPointerMove={(event) => {
            const n = place(event, all.length)
            setAt(n)
            if (event.buttons === 1 && brush) setBrush([brush[0], n])
          }}
          onPointerDown={(event) => {
            if (event.button === 0) setBrush([place(event, all.length), place(event, all.length)])
          }}
          onPointerUp={() => brush && brush[0] === brush[1] && setBrush(undefined)}
          onPointerLeave={() => setAt(-1)}>
          <Outcomes {...under} />
          <Lateness {...under} p50={p50} p99={p99} />
          <Deep {...under} from={from} to={end} zone={zone} />
          <div class="axis" aria-hidden="true">
            <span>{when(from)}</span>
            <span>{when((from + end) / 2)}</span>
            <span>{when(end)}</span>
          </div>
        </div>
      )}
      <p class="picked fine">
        {picked ? (
          <>
            <button type="button" class="plain" onClick={zoom}>
              Look at {when(parse(picked.from))} to {when(parse(picked.to))}
            </button>{' '}
            <a href={withQuery(to('runs'), picked)}>Runs of that time</a>
          </>
        ) : (
          'Drag over a stretch to look at it alone, or hold Shift with the arrow keys.'
        )}
      </p>
    </>
  )
}

type Binned = Under & { all: Bin[] }

// What no sweep has passed yet, hatched. It is no part of the drawing, which is stretched.
function Unswept({ all }: { all: Bin[] }) {
  const begin = all.findIndex((b) => !b.swept)
  return begin < 0 ? null : <div class="unswept" style={{ left: (begin / all.length) * 100 + '%' }} />
}

function Outcomes(under: Binned) {
  const { all } = under
  const tall = 110
  const w = wide / all.length
  const most = nice(Math.max(...all.map((b) => b.counts.reduce((a, n) => a + n, 0)), 1))
  const bar = (b: Bin, kind: number, i: number) => {
    const n = b.counts[kind] ?? 0
    if (!n) return ''
    const below = b.counts.slice(0, kind).reduce((a, m) => a + m, 0)
    return `M${(i + 0.1) * w} ${tall - ((below + n) / most) * tall}h${w * 0.8}v${(n / most) * tall}h${-w * 0.8}z`
  }
  return (
    <figure class="chart">
      <figcaption>
        Runs <b>{most}</b>
      </figcaption>
      <div class="plot">
        <Unswept all={all} />
        <svg class="outcomes" viewBox={`0 0 ${wide} ${tall}`} preserveAspectRatio="none" aria-hidden="true">
          <Ground {...under} tall={tall} />
          {kinds.map((_, k) => (
            <path key={k} class={'k-' + k} d={all.map((b, i) => bar(b, k, i)).join('')} />
          ))}
        </svg>
      </div>
    </figure>
  )
}

const least = 1 // ms, the foot of the scale of lateness

function Lateness({ p50, p99, ...under }: Binned & { p50: (number | undefined)[]; p99: (number | undefined)[] }) {
  const { all, at } = under
  const tall = 56
  const highest = Math.max(...p99.map((v) => v ?? 0))
  let most = 100
  while (most < highest) most *= 10
  const way = (values: (number | undefined)[]) => line(values, tall, (v) => height(v, least, most))
  const said = (values: (number | undefined)[]) => (at >= 0 ? (values[at] === undefined ? '–' : span(values[at] ?? 0)) : '')
  return (
    <figure class="chart">
      <figcaption>
        Late by <span class="l-p50">p50 {said(p50)}</span> <span class="l-p99">p99 {said(p99)}</span> <b>{span(most)}</b>
      </figcaption>
      <div class="plot">
        <Unswept all={all} />
        <svg class="lines" viewBox={`0 0 ${wide} ${tall}`} preserveAspectRatio="none" aria-hidden="true">
          <Ground {...under} tall={tall} />
          <path class="p99" d={way(p99)} />
          <path class="p50" d={way(p50)} />
        </svg>
      </div>
    </figure>
  )
}

const apart = 20_000 // ms: samples further apart are not joined

const depths = ['ready', 'delayed', 'taken'] as const

function Deep({ from, to: end, zone, ...under }: Binned & { from: number; to: number; zone: string }) {
  const { all, at } = under
  const tall = 56
  const seen = sampled().filter((s) => s.at >= from && s.at <= end)
  const most = nice(Math.max(...seen.map((s) => Math.max(s.ready, s.delayed, s.taken)), 1))
  const x = (s: Sample) => ((s.at - from) / (end - from)) * wide
  const line = (field: (typeof depths)[number]) =>
    seen.map((s, i) => `${i && s.at - (seen[i - 1]?.at ?? 0) <= apart ? 'L' : 'M'}${x(s).toFixed(2)} ${(tall - 1 - (s[field] / most) * (tall - 2)).toFixed(2)}${i && s.at - (seen[i - 1]?.at ?? 0) <= apart ? '' : 'h.01'}`).join('')
  const bin = all[at]
  const near = bin ? seen.findLast((s) => s.at >= bin.at && s.at < (all[at + 1]?.at ?? end)) : seen.at(-1)
  return (
    <figure class="chart">
      <figcaption>
        In queues{' '}
        {depths.map((d) => (
          <span key={d} class={'l-' + d}>
            {d} {near ? near[d].toLocaleString('en') : ''}{' '}
          </span>
        ))}
        <span class="fine">{seen[0] ? `No server keeps this: seen in this tab, since ${instant(seen[0].at, now.value, zone, false)} ${short(zone)}.` : 'No server keeps this, and this tab was not open then.'}</span> <b>{most}</b>
      </figcaption>
      <div class="plot">
        <Unswept all={all} />
        <svg class="lines" viewBox={`0 0 ${wide} ${tall}`} preserveAspectRatio="none" aria-hidden="true">
          <Ground {...under} tall={tall} />
          {depths.map((d) => (
            <path key={d} class={d} d={line(d)} />
          ))}
        </svg>
      </div>
    </figure>
  )
}

function Table({ all, p50, p99, zone }: { all: Bin[]; p50: (number | undefined)[]; p99: (number | undefined)[]; zone: string }) {
  const rows = all.map((b, i) => ({ b, i })).filter(({ b }) => b.counts.some(Boolean) || b.late).reverse()
  return (
    <div class="scroller short" tabIndex={0} role="region" aria-label="Runs over time, as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {kinds.map((k) => (
              <th scope="col" class="num" key={k}>
                {k}
              </th>
            ))}
            <th scope="col" class="num">
              late, p50
            </th>
            <th scope="col" class="num">
              late, p99
            </th>
            <th scope="col">counted</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ b, i }) => (
            <tr key={b.at}>
              <td>
                {instant(b.at, now.value, zone, false)} {short(zone)}
              </td>
              {b.counts.map((n, k) => (
                <td class="num" key={k}>
                  {n.toLocaleString('en')}
                </td>
              ))}
              <td class="num">{p50[i] === undefined ? '–' : span(p50[i] ?? 0)}</td>
              <td class="num">{p99[i] === undefined ? '–' : span(p99[i] ?? 0)}</td>
              <td>{b.swept ? 'all' : 'not swept yet'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="nothing">No run was due in this window.</p>}
    </div>
  )
}
