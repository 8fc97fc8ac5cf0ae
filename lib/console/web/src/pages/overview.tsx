// What runs, what failed, what comes next.
import { useRef } from 'preact/hooks'
import { get } from '../api'
import { now } from '../clock'
import { count } from '../days'
import { sample } from '../depth'
import { Grid, type Column } from '../grid'
import { lazy } from '../lazy'
import { lost, useHeld, useLater, useLive, useSettled } from '../live'
import type { Load } from '../load'
import type { Job, Page, Queue, Run } from '../model'
import { to, withQuery } from '../router'
import { began, keep } from '../store'
import { civil, parse, short, zoneFor } from '../time'
import { Ago, Empty, Fresh, Instant, pending, Refused, State, Waiting } from '../ui'
import type { Groups } from './deadletters'
import { firstJob } from './jobs'
import { checks } from './queues'
import { nextFire } from '../words'
import { runCells } from './runs'

const Longest = lazy(() => import('./longest').then((m) => m.Longest))
const Charts = lazy(() => import('./charts').then((m) => m.Charts))

const open = 'running,retrying,queued,waiting'

const columns: Column[] = [
  { name: 'c-state', head: 'State' },
  { name: 'c-run', head: 'Run' },
  { name: 'c-due', head: 'Due' },
  { name: 'c-took num', head: 'Took' },
  { name: 'c-why', head: 'Why' },
]

export function Overview() {
  const jobs = useLive('overview jobs', async (stop) => (await get<Page<Job>>('/jobs', { limit: 1000 }, stop)).data, 10_000, ['jobs'])
  const running = useLive('overview running', async (stop) => {
    const asked = began()
    const { data } = await get<Page<Run>>('/runs', { state: open, limit: 20, to: soon() }, stop)
    return keep(data.items, asked)
  }, undefined, ['runs'])
  const dead = useLive('overview dead', async (stop) => (await get<Groups>('/dead-letters/groups', {}, stop)).data, 5000, ['dead-letters'])
  // What is looked at second is asked for second.
  const later = useLater(600)
  const queues = useLive(later ? 'overview queues' : '', async (stop) => {
    const { data } = await get<Page<Queue>>('/queues', {}, stop)
    sample(data.items, now.peek())
    return data.items
  }, 5000)
  const load = useLive(later ? 'overview load' : '', async (stop) => {
    const from = Math.floor(now.peek() / 60_000) * 60_000
    return (await get<Load>('/schedule/load', { from: new Date(from).toISOString(), to: new Date(from + 3_600_000).toISOString(), step: '1m' }, stop)).data
  }, 60_000)
  const ready = useLive(later ? 'ready' : '', checks, 10_000)
  const busy = useRef(false)
  const settled = useSettled(running.data, 'running', () => busy.current)

  const none = jobs.data?.items.length === 0
  const coming = (jobs.data?.items ?? [])
    .filter((j) => !j.paused)
    .map((job) => ({ at: nextFire(job, now.value), job }))
    .filter((f) => !Number.isNaN(f.at))
    .sort((a, b) => a.at - b.at || (a.job.name < b.job.name ? -1 : 1))
  const { shown: soonest, hold: holdNext } = useHeld(coming.slice(0, 8).map(({ at, job }) => ({ at: new Date(at).toISOString(), job })))
  const wants = needs(jobs.data?.items ?? [], queues.data ?? [], dead.data, now.value)
  const { shown: causes, hold: holdCauses } = useHeld(dead.data?.items.slice(0, 6))
  return (
    <section class="page">
      <header class="bar">
        <h1>Overview</h1>
        {ready.data && !lost.value && <Health of={ready.data} />}
      </header>
      <Refused error={jobs.error ?? running.error} />
      {none && running.data?.length === 0 && (
        <Empty command={firstJob}>Belfry is ready, and there is no job yet. <a href={to('import')}>Paste your crontab</a>, <a href={to('new')}>write a job</a>, or paste this into a terminal and watch it here:</Empty>
      )}
      {!(none && running.data?.length === 0) && (
        <>
          <div class="over-time">{later && <Charts />}</div>
          <div class="columns three">
            <section aria-labelledby="o-running">
              <header class="bar">
                <h2 id="o-running">Running</h2>
                <Fresh count={settled.fresh} apply={settled.apply} />
                <a class="more" href={withQuery(to('runs'), { state: open })}>
                  All that are open
                </a>
              </header>
              {!running.data && pending(running.error) && <Waiting />}
              {settled.ids.length === 0 && running.data && <p class="nothing">Nothing runs at this moment.</p>}
              {settled.ids.length > 0 && (
                <Grid label="Running" kind="g-open" columns={columns} ids={settled.ids.slice(0, 8)} cells={openCells} href={(id) => to('runs', id)} busy={busy} />
              )}
            </section>
            <section aria-labelledby="o-needs" {...holdCauses}>
              <header class="bar">
                <h2 id="o-needs">Needs you</h2>
                <a class="more" href={to('dead-letters')}>
                  All dead letters
                </a>
              </header>
              <Refused error={dead.error} small />
              {!dead.data && pending(dead.error) && <Waiting />}
              {dead.data && jobs.data && !dead.data.items.length && !wants.length && <p class="nothing">Nothing: no run was given up, no job is paused for long, and no work lacks a worker.</p>}
              <ul class="brief wants">
                {wants.map((w) => (
                  <li key={w.href + w.text}>
                    <a href={w.href}>
                      <State of={w.state} /> <span>{w.text}</span>
                    </a>
                  </li>
                ))}
              </ul>
              <ul class="brief">
                {causes?.map((g) => (
                  <li key={g.pattern}>
                    <a href={withQuery(to('dead-letters'), { pattern: g.pattern })}>
                      <b class="num">{g.count.toLocaleString('en')}</b> <span class="said">{g.sample || 'without an error'}</span>
                    </a>
                    <span class="fine">
                      {g.jobs[0]}
                      {g.job_count > 1 && ` and ${g.job_count - 1} more`} · <Instant at={g.last_at} /> <Ago at={g.last_at} />
                    </span>
                  </li>
                ))}
              </ul>
            </section>
            <section aria-labelledby="o-next" {...holdNext}>
              <header class="bar">
                <h2 id="o-next">Next</h2>
                <a class="more" href={to('schedule')}>
                  The week
                </a>
              </header>
              {load.data && load.data.total > 0 && <NextHour of={load.data} />}
              {!jobs.data && pending(jobs.error) && <Waiting />}
              {jobs.data && soonest.length === 0 && <p class="nothing">{silence(jobs.data.items)}</p>}
              <ul class="brief next">
                {soonest.map(({ at, job }) => (
                  <li key={job.name}>
                    <a href={to('jobs', job.name)}>{job.name}</a>
                    <span class="fine">
                      <Instant at={at} where={job.schedule?.timezone} brief /> <Ago at={at} />
                    </span>
                  </li>
                ))}
              </ul>
              {jobs.data?.next && <p class="fine">Of the first 1,000 jobs by name.</p>}
            </section>
          </div>
          {later && <Longest />}
        </>
      )}
    </section>
  )
}

// Runs are made a little before their time; those of later than now are what comes, not what runs.
export const soon = () => new Date(Math.ceil(now.peek() / 1000) * 1000).toISOString()

function openCells(id: string) {
  const [state, run, due, , took, , why] = runCells(id)
  return [state, run, due, took, why]
}

/** silence is why nothing comes of these jobs. */
function silence(jobs: Job[]): string {
  const timed = jobs.filter((j) => j.schedule)
  if (!timed.length) return 'No job has a schedule: each runs when somebody asks for it.'
  if (timed.every((j) => j.paused)) return 'All jobs that have a schedule are paused.'
  return timed.every((j) => j.paused || !j.status.next_runs?.length) ? 'No schedule fires any more.' : 'It is known when the server has answered.'
}

interface Want {
  state: string
  text: string
  href: string
}

const week = 7 * 86_400_000

// What is wrong until somebody does something.
function needs(jobs: Job[], queues: Queue[], dead: Groups | undefined, at: number): Want[] {
  const named = (all: Job[]) => (all.length === 1 ? (all[0]?.name ?? '') : all.length.toLocaleString('en') + ' jobs')
  const wants: Want[] = []
  const letters = (dead?.items ?? []).reduce((n, g) => n + g.count, 0)
  const causes = (dead?.items.length ?? 0) + (dead?.more_groups ?? 0)
  if (letters) wants.push({ state: 'dead', text: `${count(letters, 'dead letter')}${dead?.more ? ' or more' : ''}, ${count(causes, 'cause')}`, href: to('dead-letters') })
  const parked = jobs.filter((j) => j.status.fault)
  if (parked.length) wants.push({ state: 'failing', text: `${named(parked)}: the next fire cannot be computed`, href: parked.length === 1 ? to('jobs', parked[0]?.name ?? '') : to('jobs') })
  for (const q of queues) for (const what of q.lacking ?? []) wants.push({ state: 'attention', text: `${what}: no worker of ${q.name} has it`, href: to('queues') })
  // A job that is paused and was not changed for a week has been paused for a week at least.
  const old = jobs.filter((j) => j.paused && parse(j.status.updated_at) < at - week)
  if (old.length) wants.push({ state: 'paused', text: `${named(old)} paused for more than 7 days`, href: old.length === 1 ? to('jobs', old[0]?.name ?? '') : withQuery(to('jobs'), { paused: 'true' }) })
  return wants
}

/** NextHour is how much is due in each minute of the next hour. */
function NextHour({ of }: { of: Load }) {
  const zone = zoneFor()
  const most = of.peak?.fires ?? 1
  const clock = (n: number) => civil(parse(of.from) + n * 60_000, zone).clock.slice(0, 5)
  const peak = of.peak && `${civil(parse(of.peak.at), zone).clock.slice(0, 5)} ${short(zone)} (${of.peak.fires.toLocaleString('en')})`
  return (
    <figure class="next-hour">
      <svg viewBox="0 0 600 24" preserveAspectRatio="none" role="img" aria-label={`Runs due in the next hour, by the minute: ${of.total}, most at ${peak}`}>
        {of.fires.map((n, i) => (
          <g key={i}>
            <title>{`${clock(i)}: ${n}`}</title>
            <rect class="under" x={i * 10} width="10" height="24" />
            {n > 0 && <rect x={i * 10 + 1} width="8" y={24 - Math.max(2, (n / most) * 24)} height={Math.max(2, (n / most) * 24)} />}
          </g>
        ))}
      </svg>
      <figcaption class="fine">
        {of.total.toLocaleString('en')} due in the next hour; peak {peak}
      </figcaption>
    </figure>
  )
}

function Health({ of }: { of: { name: string; state: string; detail: string }[] }) {
  const worst = of.find((c) => c.state === 'failing') ?? of.find((c) => c.state === 'attention')
  return (
    <a class="health" href={to('queues')}>
      {worst ? (
        <>
          <State of={worst.state} /> {worst.name}: {worst.detail}
        </>
      ) : (
        <>
          <State of="ok" /> {of.length} checks
        </>
      )}
    </a>
  )
}
