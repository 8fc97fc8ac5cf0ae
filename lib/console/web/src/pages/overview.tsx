// What runs, what failed, what comes next.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get } from '../api'
import { Outcomes } from '../chart'
import { now } from '../clock'
import { Grid, type Column } from '../grid'
import { lost, useHeld, useLive, useSettled } from '../live'
import type { Job, Page, Run } from '../model'
import { to, withQuery } from '../router'
import { began, keep, runOf } from '../store'
import { parse } from '../time'
import { Ago, Empty, Fresh, Instant, pending, Refused, State, Waiting } from '../ui'
import type { Groups } from './deadletters'
import { firstJob } from './jobs'
import { checks } from './queues'
import { nextFire } from '../words'
import { runCells } from './runs'

const open = 'running,retrying,queued,waiting'

const columns: Column[] = [
  { name: 'c-state', head: 'State' },
  { name: 'c-run', head: 'Run' },
  { name: 'c-due', head: 'Due' },
  { name: 'c-took num', head: 'Took' },
  { name: 'c-why', head: 'Why' },
]

export function Overview() {
  const jobs = useLive('overview jobs', async (stop) => (await get<Page<Job>>('/jobs', { limit: 1000 }, stop)).data, 10_000)
  const running = useLive('overview running', async (stop) => {
    const asked = began()
    const found: Run[] = []
    let cursor: string | undefined
    // Behind many runs that have ended there may be one that goes on for long.
    for (let pages = 0; pages < 5 && found.length < 20; pages++) {
      const { data } = await get<Page<Run>>('/runs', { state: open, limit: 20, to: soon(), cursor }, stop)
      found.push(...data.items)
      cursor = data.next
      if (!cursor) break
    }
    return keep(found, asked)
  })
  const dead = useLive('overview dead', async (stop) => (await get<Groups>('/dead-letters/groups', {}, stop)).data, 5000)
  // What is looked at second is asked for second.
  const later = useLater(600)
  const hour = useLive(later ? 'overview hour' : '', async (stop) => {
    const asked = began()
    const from = new Date(Math.floor(now.peek() / 60_000 - 59) * 60_000).toISOString()
    const { data } = await get<Page<Run>>('/runs', { from, to: soon(), limit: 1000 }, stop)
    return { ids: keep(data.items, asked), since: data.next ? parse(data.items.at(-1)?.nominal_time) : 0 }
  }, 5000)
  const ready = useLive(later ? 'ready' : '', checks, 10_000)
  const busy = useRef(false)
  const settled = useSettled(running.data, 'running', () => busy.current)

  const none = jobs.data?.items.length === 0
  const coming = (jobs.data?.items ?? [])
    .filter((j) => !j.paused)
    .map((job) => ({ at: nextFire(job, now.value), job }))
    .filter((f) => !Number.isNaN(f.at))
    .sort((a, b) => a.at - b.at || (a.job.name < b.job.name ? -1 : 1))
  const over = (jobs.data?.items ?? []).every((j) => j.paused || !j.status.next_runs?.length)
  const { shown: soonest, hold: holdNext } = useHeld(coming.slice(0, 8).map(({ at, job }) => ({ at: new Date(at).toISOString(), job })))
  const { shown: causes, hold: holdCauses } = useHeld(dead.data?.items.slice(0, 6))
  const hourRuns = (hour.data?.ids ?? []).map((id) => runOf(id)?.value).filter((r) => r !== undefined)
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
          {hour.data ? <Outcomes runs={hourRuns} since={hour.data.since} /> : <div class="chart" />}
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
            <section aria-labelledby="o-failed" {...holdCauses}>
              <header class="bar">
                <h2 id="o-failed">Given up</h2>
                <a class="more" href={to('dead-letters')}>
                  All dead letters
                </a>
              </header>
              <Refused error={dead.error} small />
              {!dead.data && pending(dead.error) && <Waiting />}
              {dead.data && dead.data.items.length === 0 && <p class="nothing">No run was given up.</p>}
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
                <a class="more" href={to('jobs')}>
                  All jobs
                </a>
              </header>
              {!jobs.data && pending(jobs.error) && <Waiting />}
              {jobs.data && soonest.length === 0 && <p class="nothing">{over ? 'No schedule fires any more.' : 'It is known when the server has answered.'}</p>}
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
        </>
      )}
    </section>
  )
}

// Runs are made a little before their time; those of later than now are what comes, not what runs.
const soon = () => new Date(Math.ceil(now.peek() / 1000) * 1000).toISOString()

function openCells(id: string) {
  const [state, run, due, , took, , why] = runCells(id)
  return [state, run, due, took, why]
}

function useLater(ms: number): boolean {
  const [is, set] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => set(true), ms)
    return () => clearTimeout(timer)
  }, [ms])
  return is
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
