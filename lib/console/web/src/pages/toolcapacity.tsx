// What a load needs of a stack on AWS: how much of each, what that costs a month by part, and which limit is reached first.
import '../app'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { get, Refusal } from '../api'
import { now } from '../clock'
import { useLive } from '../live'
import type { Load } from '../load'
import { query, to, withQuery } from '../router'
import { meanOf } from '../stats'
import { span } from '../time'
import { Absent, Field, InTerminal, useAsked, useWeek } from '../tool'
import { pending, Waiting } from '../ui'

interface Limit {
  name: string
  of: 'setting' | 'quota' | 'gate' | 'design'
  reached_at_runs_per_second: number
  times_this_load: number
  exceeded: boolean
  do: string
  assumed: boolean
  page?: string
}

interface Answer {
  load: { runs_per_second: number; runs_per_day: number; peak_runs_per_second: number; late: string; retention: string }
  region: string
  prices_as_of: string
  quotas_as_of: string
  ticks: { shards: number; ticks_at_once: number; minute_takes_seconds: number }
  workers: { starts_per_second: number; functions_mean: number; functions_burst: number; last_start_seconds: number; late: boolean; messages_in_flight: number }
  queues: { requests_per_second: number; messages_waiting: number }
  table: { write_units_per_second: number; read_units_per_second: number; records_per_day: number; runs_kept: number; stored_gb: number; jobs_gb: number; objects_gb: number }
  parameters: { name: string; value: number; needs: number; short: boolean }[]
  quotas_to_raise: { name: string; value: number; page: string; needs: number }[]
  bill: { parts: { what: string; dollars_per_month: number; dollars_per_month_unshared: number }[]; dollars_per_month: number; dollars_of_a_million_runs: number; dollars_per_month_unshared: number; dollars_once_to_warm: number }
  limits: Limit[]
  first_exceeded?: Limit
  next?: Limit
  verdict: { one_stack: boolean; stacks: number; beyond_design: boolean; reasons: { what: string; reached_at_runs_per_second: number; stacks: number }[] }
  prices: { what: string; dollars: number; per: number; page: string; tiers?: { above: number; dollars: number }[] }[]
}

// The address names what the API does, and what stands here is what the API takes where it says nothing; but for the first two, which it must be told.
const first = [
  { name: 'schedules', label: 'Jobs with a schedule', usual: '100' },
  { name: 'runs_per_day', label: 'Runs a day', usual: '28800' },
  { name: 'peak', label: 'Runs/s in the busiest minute', usual: '' },
  { name: 'duration', label: 'A run takes, on average', usual: '100ms' },
  { name: 'retry_rate', label: 'Retries a run (0.05: 1 in 20)', usual: '0' },
  { name: 'retention', label: 'Ended runs are kept for', usual: '30d' },
]
const others = [
  { name: 'at_once', label: 'Share of a minute due at :00', usual: '1' },
  { name: 'late', label: 'These are to start within', usual: '30s' },
  { name: 'on_demand', label: 'Share triggered by the API', usual: '0' },
  { name: 'ahead', label: 'Share triggered ahead of time', usual: '0' },
  { name: 'runs_in_request', label: 'Runs in a request to the API', usual: '1' },
  { name: 'payload', label: 'Payload of a request, bytes', usual: '40' },
  { name: 'result', label: 'Result of a run, bytes', usual: '0' },
  { name: 'tenants', label: 'Tenants', usual: '1' },
  { name: 'priority', label: 'Share of the usual priority', usual: '1' },
  { name: 'hot_job', label: 'Requests/s for the busiest job', usual: '0' },
  { name: 'shards', label: 'Shards of the table', usual: '' },
  { name: 'helpers', label: 'Ticks at once beside the first', usual: '' },
]

const labels = Object.fromEntries([...first, ...others].map((f) => [f.name, f.label]))

/** count has three digits that count, and the unit of a thousand where there are more. */
function count(n: number): string {
  for (const [unit, times] of [['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) if (n >= 99_950 && n >= times * 0.9995) return (n / times).toLocaleString('en', { maximumSignificantDigits: 3 }) + unit
  return n.toLocaleString('en', n < 999.5 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 })
}

const dollars = (n: number) => '$' + n.toLocaleString('en', n < 99.995 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: 0 })
const time = (seconds: number) => span(seconds * 1000)

function size(gb: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']
  let n = gb * 2 ** 30
  let at = 0
  for (; n >= 1023.5 && at < units.length - 1; at++) n /= 1024
  return n.toLocaleString('en', { maximumSignificantDigits: 3 }) + ' ' + units[at]
}

export function Capacity() {
  const question = Object.fromEntries([...first, ...others].map((f) => [f.name, query.value.get(f.name) ?? (f.name === 'schedules' || f.name === 'runs_per_day' ? f.usual : undefined)]))
  const got = useAsked('capacity ' + JSON.stringify(question), async (stop) => (await get<Answer>('/plan/capacity', question, stop)).data)
  const shown = got.data
  const usual = (name: string) => (name === 'peak' && shown ? count(shown.load.runs_per_second) : name === 'shards' || name === 'helpers' ? 'as needed' : undefined)
  const refused = (got.error instanceof Refusal && got.error.problem.errors?.map((e) => e.field)) || []
  const hidden = others.some((f) => refused.includes(f.name))
  const besides = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (hidden && besides.current) besides.current.open = true
  }, [hidden])
  return (
    <>
      <div class="filters">
        {first.map((f) => (
          <Field key={f.name} {...f} wrong={refused.includes(f.name)} placeholder={f.usual || usual(f.name)} />
        ))}
      </div>
      <details class="besides" ref={besides}>
        <summary>When runs are due, what they carry, and the stack itself</summary>
        <div class="filters">
          {others.map((f) => (
            <Field key={f.name} {...f} wrong={refused.includes(f.name)} placeholder={f.usual || usual(f.name)} />
          ))}
        </div>
      </details>
      <Own />
      <Absent error={got.error} labels={labels} />
      {!got.data && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class={got.error ? 'page old' : 'page'} aria-busy={got.old}>
          <Verdict of={shown} />
          <div class="columns">
            <Needs of={shown} />
            <Bill of={shown} />
          </div>
          <Settings of={shown} />
          <Limits of={shown} />
          <Prices of={shown} />
          <InTerminal command="belfry plan" flags={question} />
        </div>
      )}
    </>
  )
}

function Verdict({ of }: { of: Answer }) {
  const { bill, verdict, first_exceeded: beyond, next } = of
  return (
    <>
      <p>
        <strong>
          {verdict.one_stack ? `One stack carries it, for ${dollars(bill.dollars_per_month)} a month.` : verdict.beyond_design ? `Belfry as it is now does not carry it: it would take ${count(verdict.stacks)} stacks.` : `One stack does not carry it. It would take ${count(verdict.stacks)} that share the load evenly.`}
        </strong>{' '}
        <span class="fine">
          {!verdict.one_stack && `${dollars(bill.dollars_per_month)} a month for all of them. `}
          If no run shared a request with another, it would be {dollars(bill.dollars_per_month_unshared)}. List prices of {of.region}, {of.prices_as_of}; quotas as of {of.quotas_as_of}.
        </span>
      </p>
      {!verdict.one_stack && (
        <div>
          <p>No parameter and no quota helps against:</p>
          <ul class="meaning">
            {verdict.reasons.map((r) => (
              <li key={r.what}>
                {r.what}: reached at {count(r.reached_at_runs_per_second)} runs/s in the busiest minute; this load has {count(of.load.peak_runs_per_second)}
              </li>
            ))}
          </ul>
        </div>
      )}
      <dl class="facts nearest">
        <div>
          <dt>First limit that this load is beyond</dt>
          <dd>{beyond ? <Nearest of={beyond} /> : 'none'}</dd>
        </div>
        <div>
          <dt>Next limit that it would reach</dt>
          <dd>{next ? <Nearest of={next} /> : 'none: it is beyond all that are known'}</dd>
        </div>
      </dl>
    </>
  )
}

function Nearest({ of }: { of: Limit }) {
  return (
    <>
      <b>{of.name}</b>, reached at {count(of.reached_at_runs_per_second)} runs/s in the busiest minute. {of.exceeded ? `This load is ${count(1 / of.times_this_load)} times that.` : `That is ${count(of.times_this_load)} times this load.`} <span class="fine">What helps: {of.do}.</span>
    </>
  )
}

function Needs({ of }: { of: Answer }) {
  const { load, workers: w, queues: q, table: t, ticks } = of
  const last = w.last_start_seconds
  const rows: [string, ComponentChildren][] = [
    ['Workers at the peak', `${count(w.functions_burst)} ${w.functions_burst === 1 ? 'function' : 'functions'} at once, ${count(w.functions_mean)} on average over the month`],
    ['Runs a second', `${count(load.runs_per_second)} on average, ${count(load.peak_runs_per_second)} in the busiest minute, ${count(w.starts_per_second)} while most start`],
    [
      'The last run of a minute',
      w.late ? (
        <>
          <span class="wrong">too late</span>: it starts {time(last)} after it is due, and {load.late} are allowed
        </>
      ) : last > 0 ? `starts ${time(last)} after it is due: in time, ${load.late} are allowed` : 'starts when it is due',
    ],
    ['Messages in queues', `${count(q.messages_waiting)} sent ahead of their second, ${count(w.messages_in_flight)} with workers`],
    ['Requests to SQS', `${count(q.requests_per_second)} a second`],
    ['Store', `${size(t.stored_gb)}, ${size(t.jobs_gb)} of it definitions of jobs` + (t.objects_gb > 0 ? `; ${size(t.objects_gb)} of objects beside it` : '')],
    ['Records a day', `${count(t.records_per_day)}, of runs and their timers`],
    ['Ended runs that are kept', `${count(t.runs_kept)}, for ${load.retention}`],
    ['Units of the table', `${count(t.write_units_per_second)} writes/s, ${count(t.read_units_per_second)} reads/s`],
    ['Ticks at once', `${count(ticks.ticks_at_once)}, on ${count(ticks.shards)} shards; a minute takes them ${time(ticks.minute_takes_seconds)}`],
  ]
  return (
    <section aria-labelledby="needs">
      <h2 id="needs">What it needs</h2>
      <table>
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Bill({ of: { bill } }: { of: Answer }) {
  const most = Math.max(...bill.parts.map((p) => p.dollars_per_month_unshared))
  const bar = (n: number) => (n / most) * 100
  return (
    <section aria-labelledby="bill">
      <h2 id="bill">A month</h2>
      <table class="bill">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col" class="num">
              Dollars
            </th>
            <th scope="col" class="num">
              If nothing is shared
            </th>
            <th class="share" aria-hidden="true" />
          </tr>
        </thead>
        <tbody>
          {bill.parts
            .filter((p) => p.dollars_per_month_unshared >= 0.005)
            .map((p) => (
              <tr key={p.what}>
                <th scope="row">{p.what}</th>
                <td class="num">{dollars(p.dollars_per_month)}</td>
                <td class="num">{dollars(p.dollars_per_month_unshared)}</td>
                <td class="share" aria-hidden="true">
                  <svg viewBox="0 0 100 10" preserveAspectRatio="none">
                    <rect class="apart" width={bar(p.dollars_per_month_unshared)} height="10" />
                    <rect width={bar(p.dollars_per_month)} height="10" />
                  </svg>
                </td>
              </tr>
            ))}
          <tr class="sum">
            <th scope="row">all</th>
            <td class="num">{dollars(bill.dollars_per_month)}</td>
            <td class="num">{dollars(bill.dollars_per_month_unshared)}</td>
            <td class="share" aria-hidden="true" />
          </tr>
        </tbody>
      </table>
      <p class="fine">
        {dollars(bill.dollars_of_a_million_runs)} a million runs, without the stack itself. Runs share requests, functions and writes when ten come together, as in a full minute.
        {bill.dollars_once_to_warm > 0 && ` Beside it, once, ${dollars(bill.dollars_once_to_warm)} to make the table ready.`}
      </p>
    </section>
  )
}

/** Source is the page of AWS that says something. */
function Source({ page, of }: { page: string; of: string }) {
  return (
    <a href={page} target="_blank" rel="noopener noreferrer" aria-label={'AWS, of ' + of}>
      AWS
    </a>
  )
}

function Settings({ of }: { of: Answer }) {
  if (!of.parameters.length && !of.quotas_to_raise.length) return <p class="fine">The parameters of the template are enough as they are, and so are the quotas of an account; a new one has fewer functions at once.</p>
  return (
    <div class="columns">
      {of.parameters.length > 0 && (
        <section aria-labelledby="parameters">
          <h2 id="parameters">Parameters of the template</h2>
          <table>
            <tbody>
              {of.parameters.map((p) => (
                <tr key={p.name}>
                  <th scope="row">
                    <code>{p.name}</code>
                  </th>
                  <td class="num">{p.value}</td>
                  <td>{p.short && <span class="wrong">the most that there is; {count(p.needs)} are needed</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {of.quotas_to_raise.length > 0 && (
        <section aria-labelledby="quotas">
          <h2 id="quotas">Quotas to raise</h2>
          <table>
            <thead>
              <tr>
                <th scope="col">Quota</th>
                <th scope="col" class="num">
                  There are
                </th>
                <th scope="col" class="num">
                  It needs
                </th>
                <th scope="col">Read {of.quotas_as_of}</th>
              </tr>
            </thead>
            <tbody>
              {of.quotas_to_raise.map((q) => (
                <tr key={q.name}>
                  <th scope="row">{q.name}</th>
                  <td class="num">{count(q.value)}</td>
                  <td class="num">{count(q.needs)}</td>
                  <td>
                    <Source page={q.page} of={q.name} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  )
}

const whose = { setting: 'a parameter', quota: 'a quota', gate: 'a gate', design: 'fixed' }

function Limits({ of }: { of: Answer }) {
  return (
    <details class="besides">
      <summary>All {of.limits.length} limits, in the order in which a growing load reaches them</summary>
      <div class="scroller" tabIndex={0} role="region" aria-label="Limits">
        <table class="limits">
          <thead>
            <tr>
              <th scope="col">Limit</th>
              <th scope="col" class="num">
                Reached at, runs/s
              </th>
              <th scope="col" class="num">
                Times this load
              </th>
              <th scope="col">It is</th>
              <th scope="col">What helps</th>
              <th scope="col">Source, read {of.quotas_as_of}</th>
            </tr>
          </thead>
          <tbody>
            {of.limits.map((l) => (
              <tr key={l.name}>
                <th scope="row">
                  {l.name}
                  {l.assumed && ' *'}
                </th>
                <td class="num">{count(l.reached_at_runs_per_second)}</td>
                <td class="num">
                  {l.exceeded && <span class="wrong">beyond </span>}
                  {count(l.times_this_load)}
                </td>
                <td class="whole">{whose[l.of]}</td>
                <td>{l.do}</td>
                <td class="whole">{l.page ? <Source page={l.page} of={l.name} /> : l.of === 'setting' ? 'the template' : l.of === 'gate' ? 'the gate' : 'this version'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="fine">In the busiest minute, all else being in proportion. A star: rests on an assumed time, not measured on AWS.</p>
    </details>
  )
}

function Prices({ of }: { of: Answer }) {
  return (
    <details class="besides">
      <summary>
        Prices of {of.region}, {of.prices_as_of}
      </summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Of</th>
            <th scope="col" class="num">
              Dollars
            </th>
            <th scope="col">Read {of.prices_as_of}</th>
          </tr>
        </thead>
        <tbody>
          {of.prices.map((p) => (
            <tr key={p.what}>
              <th scope="row">
                {p.what}
                {p.tiers && <span class="fine">; {p.tiers.map((t) => `${t.dollars} beyond ${count(t.above)} a month`).join(', ')}</span>}
              </th>
              <td class="num">{p.dollars}</td>
              <td>
                <Source page={p.page} of={p.what} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}

const day = 86_400_000
const longest = 14 * 60_000 // that a worker function has

/** Own offers what the server has as what is asked: its jobs and their fires of the next day, and of the last week's counts what was asked for beside
 * them in the hour that had most, how long it took and how often it was tried again. */
function Own() {
  const week = useWeek()
  const due = useLive('load of a day', async (stop) => {
    const from = Math.ceil(now.peek() / 60_000) * 60_000
    return (await get<Load>('/schedule/load', { from: new Date(from).toISOString(), to: new Date(from + day).toISOString(), step: '1m' }, stop)).data
  }, 0).data
  if (!due) return null
  const counted = Date.parse(due.counted_to) - Date.parse(due.from)
  const fires = counted > 0 ? (due.total * day) / counted : 0
  const points = week?.points ?? []
  const began = points.find((p) => p.lateness.count > 0)
  const over = began ? Math.max(3_600_000, now.value - Date.parse(began.at)) : 0
  const sum = (of: (p: (typeof points)[number]) => number) => points.reduce((all, p) => all + of(p), 0)
  const started = sum((p) => p.lateness.count)
  const ran = over ? (started * day) / over : 0
  const runs = Math.ceil(Math.max(fires, ran))
  if (!runs) return null
  const asks = Math.max(0, Math.floor((1 - fires / runs) * 100) / 100)
  const ended = sum((p) => p.duration.count)
  const duration = ended && week ? Math.max(1, Math.round(meanOf(week.duration_bounds_ms, points.map((p) => p.duration)))) : 0
  const retries = started ? Number((sum((p) => p.retries) / started).toPrecision(2)) : 0
  // The counts have hours, and no minutes: the busiest of those is even here. Rounded up: the busiest minute has no fewer than the average.
  const busiest = points.reduce((most, p) => Math.max(most, p.lateness.count), 0) / 3600
  const peak = Math.ceil(Math.max(busiest, (due.peak?.fires ?? 0) / 60 + Math.max((runs * asks * 1000) / day, busiest * asks)) * 1000) / 1000
  const jobs = Math.max(due.jobs, Math.ceil((runs * (1 - asks) * 1000) / day))
  const taken = {
    schedules: String(jobs), runs_per_day: String(runs), peak: peak > (runs * 1000) / day ? String(peak) : undefined, on_demand: asks ? String(asks) : undefined,
    duration: duration ? Math.min(longest, duration) + 'ms' : undefined, retry_rate: retries ? String(retries) : undefined,
  }
  return (
    <p class="fine own">
      Your {due.jobs === 1 ? 'job fires' : `${due.more_jobs ? 'first ' : ''}${count(due.jobs)} jobs fire`} {count(Math.round(fires))} times in the next day, at most {count(due.peak?.fires ?? 0)} in a minute
      {started > 0 && `; of the last week's ${count(started)} runs there were ${count(Math.round(ran))} a day`}
      {duration > 0 && `, ${span(duration)} each on average`}
      {busiest > 0 && `, and ${count(Math.round(busiest * 3600))} in the busiest hour`}. <a href={withQuery(to('tools', 'capacity') + '?' + query.value.toString(), taken)}>Take these numbers</a>
      {Object.entries(taken).every(([name, value]) => value === undefined || query.value.get(name) === value) && ' Taken: jobs, runs a day, the busiest minute, what is asked for, durations and retries. Minutes within the busiest hour, sizes, tenants and priorities are not known: they stand as they were.'}
      {duration > longest && ' Runs of more than 14 minutes need a pool with “belfry worker”: 14 minutes are taken for them.'}
    </p>
  )
}
