// All jobs, by name: up to 2,000 of them at once, filtered by what the URL says.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, post } from '../api'
import { Button, open } from '../dialog'
import { Grid, Picks, usePicking, type Column } from '../grid'
import { useLive, useSettled } from '../live'
import { lazy } from '../lazy'
import type { ChosenJobs } from '../manyjobs'
import type { Job, Page, State as Of } from '../model'
import { now } from '../clock'
import { Ticks } from '../ticks'
import { ago, parse } from '../time'
import { filter, query, to } from '../router'
import { quoted } from '../quoted'
import { Empty, Fresh, Instant, pending, Refused, State, Waiting } from '../ui'
import { calls, when } from '../words'
import { Field } from './runs'

const DeleteMany = lazy(() => import('../manyjobs').then((m) => m.DeleteMany))
const ExportMany = lazy(() => import('../manyjobs').then((m) => m.ExportMany))
const LabelMany = lazy(() => import('../manyjobs').then((m) => m.LabelMany))
const PauseMany = lazy(() => import('../manyjobs').then((m) => m.PauseMany))
const ResumeMany = lazy(() => import('../manyjobs').then((m) => m.ResumeMany))

const columns: Column[] = [
  { name: 'c-name', head: 'Job' },
  { name: 'c-when', head: 'When' },
  { name: 'c-next', head: 'Next' },
  { name: 'c-last', head: 'Last runs' },
  { name: 'c-calls', head: 'Calls' },
  { name: 'c-labels', head: 'Labels' },
]

const first = 100
const most = 5000
const patience = 30 // pages

export function Jobs() {
  const contains = query.value.get('q') ?? ''
  const label = query.value.get('label') ?? ''
  const paused = query.value.get('paused') ?? ''
  const key = JSON.stringify([contains, label, paused])
  const live = useLive('jobs ' + key, async (stop) => (await get<Page<Job>>('/jobs', { contains, label, paused, limit: first }, stop)).data, undefined, ['jobs'])
  const [rest, setRest] = useState<{ key: string; jobs: Job[]; next: string | undefined }>({ key: '', jobs: [], next: undefined })
  const [failed, setFailed] = useState<Error>()
  const loading = useRef(false)
  const begun = rest.key === key
  const last = live.data?.items.at(-1)?.name ?? ''
  const jobs = [...(live.data?.items ?? []), ...(begun ? rest.jobs.filter((j) => j.name > last) : [])]
  const byName = new Map(jobs.map((j) => [j.name, j]))
  const next = begun ? rest.next : live.data?.next
  useEffect(() => setFailed(undefined), [key])

  const end = () => {
    if (!next || loading.current || jobs.length >= most) return
    loading.current = true
    get<Page<Job>>('/jobs', { contains, label, paused, limit: 500, cursor: next })
      .then(({ data }) => setRest((r) => ({ key, jobs: [...(r.key === key ? r.jobs : []), ...data.items], next: data.next })))
      .catch((error: Error) => setFailed(error))
      .finally(() => {
        loading.current = false
      })
  }
  // A page looks at so many jobs and may find few of them fit: it is asked on, but not for ever.
  const [patient, setPatient] = useState(1)
  const looked = useRef({ key, pages: 0 })
  if (looked.current.key !== key) looked.current = { key, pages: 0 }
  const searching = Boolean(live.data && jobs.length < first && next && looked.current.pages < patience * patient)
  useEffect(() => {
    if (!searching || loading.current) return
    looked.current.pages++
    end()
  }, [searching, rest, live.data, patient])
  // Of the rows in sight alone, which is what a list of any length costs.
  const [sight, setSight] = useState<string[]>([])
  const lasts = useLive(sight.length ? 'last ' + sight.join(' ') : '', async (stop) => {
    const { items } = await post<{ items: Last[] }>('/runs/last', { jobs: sight.slice(0, 100), limit: 10 }, stop)
    return new Map(items.map((i) => [i.job, i.runs]))
  }, 4000, ['runs'])
  const busy = useRef(false)
  const picking = usePicking(key)
  const settled = useSettled(live.data && [...byName.keys()], key, () => busy.current || picking.on)
  const about = picking.on ? picking.ids.size.toLocaleString('en') : 'matching'
  const why = picking.on && !picking.ids.size ? 'Select jobs first.' : undefined
  const chosen = (): ChosenJobs =>
    picking.on ? { jobs: [...picking.ids].map((name) => ({ name, etag: byName.get(name)?.status.etag })) } : { contains, label, paused: paused === '' ? undefined : paused === 'true' }
  const filtered = Boolean(contains || label || paused)
  const inTerminal = ['belfry job list', contains && '--contains=' + quoted(contains), label && '--label=' + quoted(label), { true: '--paused', false: '--active' }[paused]].filter(Boolean).join(' ')

  const cells = (name: string) => {
    const job = byName.get(name)
    if (!job) return [name]
    const zone = job.schedule?.timezone
    const call = calls(job)
    return [
      <a href={to('jobs', name)}>{name}</a>,
      when(job.schedule),
      job.paused ? (
        <>
          <State of="paused" /> <span class="none reason">{job.status.paused_reason}</span>
        </>
      ) : job.status.fault ? (
        <span class="state s-failing">parked</span>
      ) : job.status.next_runs?.[0] ? (
        <>
          <Instant at={job.status.next_runs[0]} where={zone} plain brief /> {ago(parse(job.status.next_runs[0]), now.value)}
        </>
      ) : job.schedule ? (
        <span class="none">never again</span>
      ) : (
        <span class="none">on demand</span>
      ),
      <Ticks marks={marks(lasts.data?.get(name))} />,
      call.kind + ' ' + call.what,
      Object.entries(job.labels ?? {})
        .map(([k, v]) => k + '=' + v)
        .join(' '),
    ]
  }

  return (
    <section class="page fills">
      <header class="bar">
        <h1>Jobs</h1>
        <span class="count">{live.data && (next ? `first ${jobs.length.toLocaleString('en')}` : jobs.length.toLocaleString('en'))}</span>
        <Fresh count={settled.fresh} apply={settled.apply} />
        <div class="acts">
          <a class="act" href={to('new')}>
            New job
          </a>
          <a class="act" href={to('import')}>
            Import
          </a>
          <Picks of={picking} ids={settled.ids} more={Boolean(next)} />
          {/* Without a filter and a selection they would be about all jobs there are. */}
          {(picking.on || filtered) && (
            <>
              <Button scope="write" why={why} act={() => open(<PauseMany of={chosen()} />)}>
                Pause {about}…
              </Button>
              <Button scope="write" why={why} act={() => open(<ResumeMany of={chosen()} />)}>
                Resume {about}…
              </Button>
              <Button scope="write" why={why} act={() => open(<LabelMany of={chosen()} />)}>
                Label {about}…
              </Button>
              <Button why={why} act={() => open(<ExportMany of={chosen()} />)}>
                Export {about}…
              </Button>
              <Button scope="write" why={why} act={() => open(<DeleteMany of={chosen()} />)}>
                Delete {about}…
              </Button>
            </>
          )}
        </div>
      </header>
      <div class="filters" role="search" aria-label="Filter jobs">
        <Field name="q" label="Name" value={contains} placeholder="part of a name" find />
        <Field name="label" label="Label" value={label} placeholder="team=billing" />
        <label>
          <span>State</span>
          <select value={paused} onChange={(event) => filter({ paused: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="false">active</option>
            <option value="true">paused</option>
          </select>
        </label>
        {filtered && (
          <button type="button" class="plain" onClick={() => filter({ q: '', label: '', paused: '' })}>
            Clear
          </button>
        )}
      </div>
      <Refused error={live.error ?? failed} />
      {!live.data && pending(live.error) && <Waiting lines={12} />}
      {live.data &&
        jobs.length === 0 &&
        (searching ? <p class="nothing">Looking through more jobs …</p> : next ? (
          <Empty command={inTerminal}>
            No job of those that were looked at matches these filters.{' '}
            <button type="button" class="plain" onClick={() => setPatient((n) => n + 1)}>
              Look further
            </button>
          </Empty>
        ) : filtered ? <Empty command={inTerminal}>No job matches these filters.</Empty> : (
          <>
            <div class="start">
              <p>There is no job yet.</p>
              <a class="act" href={to('import')}>
                Paste your crontab
              </a>
              <a class="act" href={to('new')}>
                Write a job
              </a>
            </div>
            <Empty command={firstJob}>Or begin in a terminal, with one that says hello every two seconds:</Empty>
          </>
        ))}
      {jobs.length > 0 && (
        <Grid label="Jobs" kind="g-jobs" columns={columns} ids={settled.ids} total={next ? -1 : jobs.length} cells={cells} href={(name) => to('jobs', name)} end={end} sight={setSight} busy={busy} scroll picking={picking} />
      )}
    </section>
  )
}

interface Last {
  job: string
  runs: { state: Of; started_at?: string; ended_at?: string }[]
}

function marks(runs: Last['runs'] | undefined) {
  return (runs ?? []).map((r) => {
    const end = parse(r.ended_at)
    return { state: r.state, ms: (Number.isNaN(end) ? now.peek() : end) - parse(r.started_at) }
  })
}

export const firstJob = `echo '{"schedule": {"every": "2s"}, "target": {"exec": {"argv": ["echo", "hello"]}}}' | belfry job apply hello -f -`

