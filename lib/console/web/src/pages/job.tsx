// One job: when it fires, what became of its last runs, and its definition.
import { useRef } from 'preact/hooks'
import { get } from '../api'
import { now } from '../clock'
import { Grid } from '../grid'
import { lazy } from '../lazy'
import { JobActs } from '../jobacts'
import { useLater, useLive, useSettled } from '../live'
import type { Job as Data, Page, Run } from '../model'
import { Raw } from '../raw'
import { to, withQuery } from '../router'
import { began, keep, runOf } from '../store'
import { Ticks } from '../ticks'
import { civil, dayIn, inFull, offset, parse, short, zoneFor } from '../time'
import { Ago, Command, Empty, Fresh, Instant, Labels, pending, Refused, State, Waiting } from '../ui'
import { calls, lasted, on, overlaps, when } from '../words'
import { columns, runCells } from './runs'

const JobCalendar = lazy(() => import('./jobcalendar').then((m) => m.JobCalendar))
const JobHistory = lazy(() => import('./jobhistory').then((m) => m.JobHistory))

export interface Fire {
  at: string
  local: string
  mark?: string
  asked?: string[]
}

export interface Fires {
  description: string
  timezone?: string
  fires: Fire[]
  idle?: string
}

export function Job({ name }: { name: string }) {
  const at = '/jobs/' + encodeURIComponent(name)
  const live = useLive('job ' + name, async (stop) => get<Data>(at, {}, stop), 5000, ['job:' + name])
  const runs = useLive('runs of ' + name, async (stop) => {
    const asked = began()
    return keep((await get<Page<Run>>(at + '/runs', { limit: 10, due: 'true' }, stop)).data.items, asked)
  }, undefined, ['job:' + name])
  const job = live.data?.data
  const cron = job?.schedule?.cron
  const zone = job?.schedule?.timezone
  // It moves on only when one is past.
  const fires = useLive('fires of ' + name, async (stop) => (await get<Fires>(at + '/fires', { count: 10 }, stop)).data, 5000)
  // What is looked at second is asked for second.
  const later = useLater(600)
  const busy = useRef(false)
  const settled = useSettled(runs.data, name, () => busy.current)

  if (!job) {
    return (
      <section class="page">
        <header class="bar">
          <h1>
            <span class="kind">Job</span> {name}
          </h1>
        </header>
        <Refused error={live.error} />
        {pending(live.error) && <Waiting />}
      </section>
    )
  }
  const call = calls(job)
  const coming = fires.data?.fires ?? []
  return (
    <section class="page">
      <header class="bar">
        <h1>
          <span class="kind">Job</span> {name}
        </h1>
        {job.paused && <State of="paused" />}
        {job.status.fault && <span class="state s-failing">parked</span>}
        <JobActs job={job} />
      </header>
      <Refused error={live.error} />
      {job.description && <p class="lead">{job.description}</p>}
      <p class="verdict">
        {(job.schedule && on(fires.data?.description ?? '')) || upper(when(job.schedule))}
        {cron && <code class="expr">{cron}</code>}
      </p>
      {job.paused && (
        <p class="note">
          It is paused and makes no runs{job.status.paused_reason && <>: <b class="said">{job.status.paused_reason}</b></>}.
        </p>
      )}
      {job.status.fault && (
        <p class="note bad">
          Its next fire could not be computed: <b class="said">{job.status.fault}</b>
        </p>
      )}
      <div class="columns">
        <section aria-labelledby="fires">
          <h2 id="fires">Next fires</h2>
          <Refused error={fires.error} small />
          {coming.length === 0 ? (
            <p class="nothing">{!job.schedule ? 'It runs only when somebody asks for it.' : fires.data ? (idle[fires.data.idle ?? ''] ?? 'None.') : ''}</p>
          ) : (
            <ol class={'fires' + (job.paused ? ' off' : '')}>
              {coming.map((f) => (
                <li key={f.at}>
                  <span class="day">{dayIn(parse(f.at), zoneFor(zone)).replace(` ${civil(now.value, zoneFor(zone)).year}`, '')}</span> <Clock at={f.at} where={zone} /> <Ago at={f.at} />
                  {f.mark && <span class="mark">{marked(f)}</span>}
                </li>
              ))}
            </ol>
          )}
        </section>
        <section aria-labelledby="facts">
          <h2 id="facts">Definition</h2>
          <dl class="facts">
            <div class="wide">
              <dt>Calls</dt>
              <dd>
                {call.kind} <code>{call.what}</code>
              </dd>
            </div>
            <div>
              <dt>Queue</dt>
              <dd>
                {job.queue}, {job.priority}
              </dd>
            </div>
            {job.retry && job.guarantee && (
              <>
                <div>
                  <dt>Timeout</dt>
                  <dd>{job.timeout}</dd>
                </div>
                <div>
                  <dt>Guarantee</dt>
                  <dd>{job.guarantee.replaceAll('_', ' ')}</dd>
                </div>
                <div>
                  <dt>On failure</dt>
                  <dd>
                    {job.status.tries}
                    {job.retry.max_attempts > 1 && <>, waits {job.retry.initial} to {job.retry.max}</>}
                  </dd>
                </div>
              </>
            )}
            <div>
              <dt>Missed fires</dt>
              <dd>{{ one: 'the latest runs', all: 'all run', none: 'none runs' }[job.catch_up.mode] ?? job.catch_up.mode}</dd>
            </div>
            {job.max_runs !== undefined && (
              <div>
                <dt>Schedule ends</dt>
                <dd>
                  after {job.max_runs === 1 ? '1 fire' : `${job.max_runs} fires`}
                  {job.status.final_run && <>, the last at <Instant at={job.status.final_run} where={zone} /></>}
                </dd>
              </div>
            )}
            {job.pause_after !== undefined && (
              <div>
                <dt>Pauses itself</dt>
                <dd>after {job.pause_after === 1 ? 'a run that ended badly' : `${job.pause_after} runs in a row that ended badly`}</dd>
              </div>
            )}
            <div>
              <dt>Overlap</dt>
              <dd>{overlaps(job)}</dd>
            </div>
            <div>
              <dt>Runs are kept</dt>
              <dd>{job.retention}</dd>
            </div>
            <div>
              <dt>Changed</dt>
              <dd>
                <Instant at={job.status.updated_at} where={zone} /> <Ago at={job.status.updated_at} />
              </dd>
            </div>
          </dl>
          <Labels of={job.labels} />
        </section>
      </div>
      <section aria-labelledby="last">
        <header class="bar">
          <h2 id="last">Last runs</h2>
          <Ticks marks={(runs.data ?? []).map((id) => runOf(id)?.value).filter((r) => r !== undefined).map((r) => ({ state: r.state, ms: lasted(r, now.value) }))} />
          <Fresh count={settled.fresh} apply={settled.apply} />
          <a class="more" href={withQuery(to('runs'), { job: name })}>
            All runs of {name}
          </a>
        </header>
        <Refused error={runs.error} small />
        {!runs.data && pending(runs.error) && <Waiting />}
        {runs.data?.length === 0 && <Empty command={`belfry job trigger ${name} --wait`}>It has not run yet.</Empty>}
        {settled.ids.length > 0 && <Grid label="Last runs" kind="g-runs" columns={columns} ids={settled.ids} cells={(id) => runCells(id, zone)} href={(id) => to('runs', id)} busy={busy} />}
      </section>
      {later && <JobCalendar name={name} where={zone} />}
      {later && <JobHistory name={name} where={zone} />}
      <details class="cli">
        <summary>The whole definition</summary>
        <Raw text={JSON.stringify(definition(live.data?.text ?? '{}'))} label={name} />
      </details>
      <details class="cli">
        <summary>In a terminal</summary>
        <Command text={`belfry job get ${name}`} />
        <Command text={`belfry job trigger ${name} --wait`} />
      </details>
    </section>
  )
}

// The day stands beside it.
export function Clock({ at, where, ahead = false }: { at: string; where: string | undefined; ahead?: boolean }) {
  const of = zoneFor(where)
  return (
    <time dateTime={at} title={inFull(parse(at), of)}>
      {civil(parse(at), of).clock} <i>{short(of) + (ahead ? ' ' + offset(parse(at), of) : '')}</i>
    </time>
  )
}

export const idle: Record<string, string> = { over: 'Its schedule is over.', faulty: 'They cannot be computed.', on_demand: 'It runs only when somebody asks for it.' }

export function marked(f: Fire): string {
  const asked = (f.asked ?? []).map((t) => t.slice(11, 16)).join(', ')
  switch (f.mark) {
    case 'shifted':
      return `Clocks go forward: there is no ${asked || 'such time'} that day.`
    case 'merged':
      return `Clocks go forward: this one stands for ${asked}.`
    case 'first_of_two':
      return 'Clocks go back: the first of two.'
    case 'second_of_two':
      return 'Clocks go back: the second of two.'
  }
  return f.mark?.replaceAll('_', ' ') ?? ''
}

// What only Belfry writes is no part of what somebody applies.
function definition(text: string): unknown {
  const whole = JSON.parse(text) as Record<string, unknown>
  delete whole.status
  return whole
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
