// A queue with its workers, simulated by the server: how deep it gets, how busy they are, how many runs start and how long those have waited, over time.
import '../app'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get } from '../api'
import { Ground, line, moved, place, wide, type Under } from '../chart'
import { now } from '../clock'
import { useMarker } from '../player'
import { filter, query, to, withQuery } from '../router'
import { meanOf, nice, type Week } from '../stats'
import { instant, length, parse, short, span, zoneFor } from '../time'
import { Absent, asked, Distribution, Field, Figure, InTerminal, say, useAsked, useWeek } from '../tool'
import { pending, Waiting } from '../ui'

interface Point {
  at: number
  mean_depth: number
  deepest: number
  busy: number
  workers: number
  throughput: number
  wait_p50?: number
  wait_p99?: number
}

interface Wait {
  runs: number
  mean: number
  share_that_waits_not: number
  p50: number
  p90: number
  p99: number
  max: number
}

interface Answer {
  mean_batch: number
  config: { workers: number; from: number; for: string; warm: string; rate: number; at_once: number; batch: number }
  arrived: number
  started: number
  waiting_at_the_end: number
  load: number
  utilization: number
  mean_depth: number
  deepest: number
  wait: Wait
  by_priority: Wait[]
  theory?: { name: string; exact: boolean; utilization: number; share_that_waits: number; mean_wait_seconds: number; mean_depth: number; wait_p50?: number; wait_p90?: number; wait_p99?: number }
  series: Point[]
}

// Where sliders stop. Wide ones are logarithmic.
const decades = (from: number, to: number) => {
  const all: number[] = []
  for (let ten = from; ten < to; ten *= 10) for (const n of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) all.push(Number((n * ten).toPrecision(2)))
  return [...all, to]
}
const times = (unit: string, ...numbers: number[]) => numbers.map((n) => n + unit)
const durations = [...times('ms', 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 250, 300, 400, 500, 700), ...times('s', 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45), ...times('m', 1, 2, 3, 5, 10, 15, 30), '1h']
const texts = (numbers: number[]) => numbers.map(String)
const whole = [...new Set(decades(1, 10_000).map(Math.round))]

// The address names what the API does, and what stands here is what the API takes where it says nothing; but for the first two, which it must be told.
const dials = [
  { name: 'workers', label: 'Workers', usual: '50', stops: texts(whole) },
  { name: 'arrivals', label: 'Arrivals, runs/s', usual: '200', stops: texts(decades(0.1, 10_000)) },
  { name: 'duration', label: 'Mean duration', usual: '200ms', stops: durations },
  { name: 'at_once', label: 'Share that comes in bursts', usual: '0', stops: texts(Array.from({ length: 21 }, (_, i) => Number((i * 0.05).toFixed(2)))) },
  { name: 'burst_every', label: 'A burst comes every', usual: '1m', stops: ['1m', '5m', '15m', '1h', '6h', '1d'] },
  { name: 'batch', label: 'Runs a worker takes at once', usual: '1', stops: texts(Array.from({ length: 10 }, (_, i) => i + 1)) },
  { name: 'from', label: 'Workers at first, 0 for all', usual: '0', stops: texts([0, ...whole]) },
  { name: 'grow', label: 'Workers that come, a minute', usual: '0', stops: texts([0, ...whole]) },
  { name: 'for', label: 'Time', usual: '10m', stops: [...times('s', 10, 30), ...times('m', 1, 2, 3, 5, 10, 20, 30), ...times('h', 1, 2, 3, 6, 12), '1d'] },
]
// Dials that say nothing while another one is 0.
const needs: Record<string, string> = { grow: 'from', burst_every: 'at_once' }
const others = [
  { name: 'high', label: 'Share of high priority', usual: '0' },
  { name: 'low', label: 'Share of low priority', usual: '0' },
  { name: 'warm', label: 'Warm-up, not counted', usual: '' },
  { name: 'seed', label: 'Seed', usual: '1' },
]

/** time writes seconds; what is less than a millisecond has three digits. Less than a tenth of a microsecond is no wait. */
const time = (seconds: number | undefined) => (seconds === undefined ? '–' : seconds >= 1e-7 && seconds < 1e-3 ? Number((seconds * 1e6).toPrecision(3)) + ' µs' : span(seconds * 1000))
const count = (n: number) => (n < 1e-6 ? 0 : n).toLocaleString('en', n < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 })
const percent = (share: number) => (share * 100).toFixed(1).replace(/\.0$/, '') + ' %'

export function Scaling() {
  const given = Object.fromEntries([...dials, ...others].map((f) => [f.name, query.value.get(f.name) ?? (f.name === 'workers' || f.name === 'arrivals' ? f.usual : undefined)]))
  const question = { ...given, distribution: query.value.get('distribution') ?? undefined, p99: query.value.get('p99') ?? undefined }
  const got = useAsked('queue ' + JSON.stringify(question), async (stop) => (await get<Answer>('/plan/queue', question, stop)).data)
  const shown = got.data
  useInstant()
  return (
    <>
      <div class="dials">
        {dials.map((d) => (!(d.name in needs) || asked(needs[d.name] ?? '', '0') !== '0' || query.value.has(d.name)) && <Dial key={d.name} {...d} />)}
        <Distribution usual="200ms">
          <Dial name="p99" label="One run in a hundred takes longer than" usual="" stops={durations} />
        </Distribution>
      </div>
      <details class="besides">
        <summary>Priorities, what is counted, and the seed</summary>
        <div class="filters">
          {others.map((f) => (
            <Field key={f.name} name={f.name} label={f.label} usual={f.usual} placeholder={f.usual || shown?.config.warm} />
          ))}
        </div>
      </details>
      <Own />
      <Absent error={got.error} />
      {!got.data && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class={got.error ? 'page old' : 'page'} aria-busy={got.old}>
          <Verdict of={shown} />
          <Over of={shown} />
          <Numbers of={shown} />
          <InTerminal command="belfry plan queue" flags={question} />
        </div>
      )}
    </>
  )
}

/** useInstant forgets the instant when another time is simulated: it is one of the time that it was chosen in. */
function useInstant() {
  const long = asked('for', '10m')
  const before = useRef(long)
  useEffect(() => {
    if (long !== before.current) filter({ at: undefined }, true)
    before.current = long
  }, [long])
}

/** choose puts a value into the address. Workers that are not there at first come as functions of a queue do, unless it is said how. */
function choose(name: string, value: string, usual: string) {
  if (name !== 'from') return say(name, value, usual)
  const all = value === '' || value === usual
  filter({ from: all ? undefined : value, grow: all ? undefined : query.value.get('grow') ?? '300' }, true)
}

/** amount is a number or a duration, to compare it with others of its kind. */
const amount = (text: string) => (/[a-z]/.test(text) ? length(text) : Number(text))

/** Dial is a number to type, and a slider for it. While it is dragged the address follows ten times a second: browsers refuse more. */
function Dial({ name, label, usual, stops }: { name: string; label: string; usual: string; stops: string[] }) {
  const value = asked(name, usual)
  const [dragged, setDragged] = useState<number>()
  const last = useRef(0)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  const far = (stop: string) => Math.abs(Math.log((amount(stop) || 1e-3) / (amount(value) || 1e-3)))
  const near = stops.reduce((best, stop, i) => (far(stop) < far(stops[best] ?? '') ? i : best), 0)
  const drag = (to: number) => {
    setDragged(to)
    last.current = to
    timer.current ||= setTimeout(() => {
      timer.current = 0
      setDragged(undefined)
      choose(name, stops[last.current] ?? usual, usual)
    }, 100)
  }
  return (
    <div class="dial">
      <Field name={name} label={label} usual={usual} follow={(event) => name === 'from' && event.type === 'input' && choose(name, event.currentTarget.value, usual)} />
      <input type="range" aria-label={label} min="0" max={stops.length - 1} value={dragged ?? near} aria-valuetext={dragged === undefined ? value : stops[dragged]} onInput={(event) => drag(Number(event.currentTarget.value))} />
    </div>
  )
}

function Verdict({ of }: { of: Answer }) {
  const { load, wait } = of
  return (
    <p>
      <strong>
        {load > 1 + 1e-9 ? `Too few workers: ${percent(load)} of what they can do comes in, so the queue grows for as long as it lasts.` :
          load > 1 - 1e-9 ? 'No worker to spare: as much comes in as they can do, so a queue that has grown does not become shorter.' :
            wait.runs === 0 ? 'No run started in the counted time.' :
            `Workers are ${percent(of.utilization)} busy. ${wait.p50 > 0 ? `Half of the runs wait no longer than ${time(wait.p50)}` : `${percent(wait.share_that_waits_not)} of the runs do not wait`}, and 99 of 100 wait no longer than ${time(wait.p99)}.`}
      </strong>{' '}
      <span class="fine">
        {of.arrived.toLocaleString('en')} runs came in {of.config.for}, {of.waiting_at_the_end.toLocaleString('en')} still wait at the end.
      </span>
    </p>
  )
}

const tall = 56

/** Over is what happens over the time, under a marker that plays. It stands in the address when it rests. */
function Over({ of }: { of: Answer }) {
  const all = of.series
  const bins = all.length
  const end = length(of.config.for) / 1000
  const rest = all.findLastIndex((p) => p.at <= Number(query.value.get('at') ?? NaN))
  const mark = (n: number) => filter({ at: all[n] ? String(all[n].at) : undefined }, true)
  const { at, playing, play, stop, drag } = useMarker(bins - 1, rest, mark, (n) => n + 1)
  const one = all[at]
  const told = one ? `at ${time(one.at)}: ${count(one.mean_depth)} wait, ${count(one.busy)} of ${count(one.workers)} workers busy, ${count(one.throughput)} runs a second start; waited ${time(one.wait_p50)} (p50), ${time(one.wait_p99)} (p99)` : ''
  const under = { bins, at }
  const table = useMemo(() => <Series all={all} />, [all])
  const workers = Math.max(...all.map((p) => p.workers))
  return (
    <section class="charts over" aria-labelledby="over-time">
      <header class="bar">
        <h2 id="over-time">Over time</h2>
        <button type="button" class="act" onClick={play}>
          {playing ? 'Pause' : 'Play'}
        </button>
        <span class="fine instant">{told || 'Play, or choose an instant in the charts.'}</span>
      </header>
      <div class="stack"
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          drag(place(event, bins))
        }}
        onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && drag(place(event, bins))}
        onPointerUp={(event) => event.button === 0 && event.currentTarget.hasPointerCapture(event.pointerId) && stop(place(event, bins))}
        onPointerCancel={() => drag(undefined)}>
        <Lines {...under} name="Depth" lines={[['p50', 'on average', all.map((p) => p.mean_depth)], ['p99', 'at most', all.map((p) => p.deepest)]]} said={count} />
        <Lines {...under} name="Workers" lines={[['p50', 'busy', all.map((p) => p.busy)], ['taken', 'there', all.map((p) => p.workers)]]} said={count} most={workers}>
          {one ? percent(one.busy / one.workers) : percent(of.utilization)} busy
        </Lines>
        <Lines {...under} name="Throughput, runs/s" lines={[['p50', '', all.map((p) => p.throughput)]]} said={count} />
        <Lines {...under} name="Wait of those that start" lines={[['p50', 'p50', all.map((p) => p.wait_p50)], ['p99', 'p99', all.map((p) => p.wait_p99)]]} said={time} />
        <div class="track" role="slider" tabIndex={0} aria-label="Instant" aria-valuemin={0} aria-valuemax={bins - 1} aria-valuenow={Math.max(0, at)} aria-valuetext={told || 'none chosen'}
          onKeyDown={(event) => {
            const up = { ArrowUp: 1, ArrowDown: -1 }[event.key]
            const next = event.key === 'Escape' ? -1 : up ? Math.max(0, Math.min(bins - 1, at + up)) : moved(event, at, bins)
            if (next === undefined) return
            stop(next)
            event.preventDefault()
          }}
        />
        <div class="axis" aria-hidden="true">
          <span>0</span>
          <span>{time(end / 2)}</span>
          <span>{time(end)}</span>
        </div>
      </div>
      <Figure title="All of it" about={`in stretches of ${time(end / bins)}`} table={table}>
        {null}
      </Figure>
    </section>
  )
}

/** topOf is a round number that no value exceeds; 1 where all are 0. Those below 1 have one too, down to a millionth. */
const topOf = (most: number) => (most <= 0 ? 1 : most < 1 ? nice(most * 1e6) / 1e6 : nice(most))

function Lines({ name, lines, said, most, children, ...under }: Under & { name: string; lines: [string, string, (number | undefined)[]][]; said: (n: number) => string; most?: number; children?: ComponentChildren }) {
  const top = most ?? topOf(Math.max(...lines.flatMap(([, , values]) => values.map((v) => v ?? 0))))
  return (
    <figure class="chart">
      <figcaption>
        {name}{' '}
        {lines.map(([look, text, values]) => {
          const v = values[under.at]
          return (
            <span key={look} class={'l-' + look}>
              {text} {under.at < 0 ? '' : v === undefined ? '–' : said(v)}
            </span>
          )
        })}{' '}
        {children} <b>{said(top)}</b>
      </figcaption>
      <div class="plot">
        <svg class="lines" viewBox={`0 0 ${wide} ${tall}`} preserveAspectRatio="none" aria-hidden="true">
          <Ground {...under} tall={tall} />
          {lines.toReversed().map(([look, , values]) => (
            <path key={look} class={look} d={line(values, tall, (v) => v / top)} />
          ))}
        </svg>
      </div>
    </figure>
  )
}

function Series({ all }: { all: Point[] }) {
  return (
    <table>
      <thead>
        <tr>
          {['From', 'Depth', 'at most', 'Busy', 'Workers', 'Throughput', 'Wait, p50', 'p99'].map((h) => (
            <th scope="col" class="num" key={h}>
              {h}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.map((p) => (
          <tr key={p.at}>
            {[time(p.at), count(p.mean_depth), count(p.deepest), count(p.busy), count(p.workers), count(p.throughput), time(p.wait_p50), time(p.wait_p99)].map((text, i) => (
              <td class="num" key={i}>
                {text}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Numbers({ of }: { of: Answer }) {
  const { wait, theory } = of
  const known = (n: number | undefined) => (n === undefined ? undefined : time(n))
  const waited = (n: number) => (wait.runs ? time(n) : '–')
  const ranks = of.by_priority.filter((w) => w.runs > 0).length
  const rows: [string, string, string?][] = [
    ['Workers that are busy', percent(of.utilization), theory && percent(theory.utilization)],
    ['Runs that wait at all', wait.runs ? percent(1 - wait.share_that_waits_not) : '–', theory && percent(theory.share_that_waits)],
    ['Mean wait', waited(wait.mean), theory && time(theory.mean_wait_seconds)],
    ['Depth, on average', count(of.mean_depth), theory && count(theory.mean_depth)],
    ['Deepest', count(of.deepest)],
    ['Wait, p50', waited(wait.p50), known(theory?.wait_p50)],
    ['p90', waited(wait.p90), known(theory?.wait_p90)],
    ['p99', waited(wait.p99), known(theory?.wait_p99)],
    ['longest', waited(wait.max)],
    ...(ranks > 1 ? of.by_priority.flatMap((w, i): [string, string][] => (w.runs ? [[`Mean wait, ${['high', 'normal', 'low'][i]} priority`, time(w.mean)], ['p99', time(w.p99)]] : [])) : []),
    ...(of.config.batch > 1 ? [['Mean batch', count(of.mean_batch)] as [string, string]] : []),
  ]
  return (
    <section aria-labelledby="in-all">
      <h2 id="in-all">In all</h2>
      <table class="sums">
        <thead>
          <tr>
            <th scope="col">{of.config.warm === '0s' ? 'Of the whole time' : `Without a warm-up of ${of.config.warm}`}</th>
            <th scope="col" class="num">
              Simulated
            </th>
            <th scope="col" class="num">
              {theory ? `Theory, in the long run: ${theory.name}, ${theory.exact ? 'exact' : 'an approximation'}` : 'Theory'}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, simulated, said], i) => (
            <tr key={i}>
              <th scope="row">{name}</th>
              <td class="num">{simulated}</td>
              <td class="num">{said ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!theory && <p class="fine">Theory has a formula for runs that come one by one, for workers that take one at once and are there from the beginning, and for as many as can keep up.</p>}
    </section>
  )
}

/** Own offers what the server has done in the last week as what is asked: the attempts of its busiest hour, and how long they took. */
function Own() {
  const stats = useWeek()
  const attempts = (p: Week['points'][number]) => p.lateness.count + p.retries
  const busiest = stats?.points.filter((p) => p.duration.count > 0).reduce<Week['points'][number] | undefined>((best, p) => (best && attempts(best) >= attempts(p) ? best : p), undefined)
  if (!stats || !busiest) return null
  const { duration } = busiest
  const rate = attempts(busiest) / 3600
  const mean = Math.max(1, Math.round(meanOf(stats.duration_bounds_ms, [duration])))
  const p99 = Math.min(Math.round(duration.p99_ms ?? 0), Math.floor(mean * 14.9)) // no lognormal distribution is wider
  const lognormal = p99 > mean
  const window = [['1m', 60], ['10m', 600], ['1h', 3600], ['1d', 86_400]] as const
  const [long] = window.find(([, seconds]) => rate * seconds >= 5000) ?? ['1d']
  const zone = zoneFor()
  const taken = { arrivals: String(Number(rate.toPrecision(3))), duration: mean + 'ms', distribution: lognormal ? 'lognormal' : undefined, p99: lognormal ? p99 + 'ms' : undefined, for: long, at: undefined }
  return (
    <p class="fine own">
      Your busiest hour of the last week began at {instant(parse(busiest.at), now.value, zone, false)} {short(zone)}: {attempts(busiest).toLocaleString('en')} attempts; the last attempts took {span(mean)} on average
      {lognormal && ` (p99 ${span(p99)})`}. <a href={withQuery(to('tools', 'scaling') + '?' + query.value.toString(), taken)}>Take these numbers</a>
    </p>
  )
}
