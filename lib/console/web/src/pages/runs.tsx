// All runs, newest first: up to 10,000 of them, filtered by what the URL says.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, type Query } from '../api'
import { now } from '../clock'
import { Button, open } from '../dialog'
import { Grid, Picks, usePicking, type Column } from '../grid'
import { lazy } from '../lazy'
import { useLive, useSettled } from '../live'
import type { Chosen } from '../manyruns'
import { all, isOpen, type Page, type Run, type State as Of } from '../model'
import { filter, query, to } from '../router'
import { began, keep, runOf } from '../store'
import { quoted } from '../quoted'
import { parse, span } from '../time'
import { Empty, Fresh, Instant, pending, Refused, RunLink, State, Waiting } from '../ui'
import { because, lasted, late } from '../words'

const CancelMany = lazy(() => import('../manyruns').then((m) => m.CancelMany))
const RetryMany = lazy(() => import('../manyruns').then((m) => m.RetryMany))

export const columns: Column[] = [
  { name: 'c-state', head: 'State' },
  { name: 'c-run', head: 'Run' },
  { name: 'c-due', head: 'Due' },
  { name: 'c-late num', head: 'Late' },
  { name: 'c-took num', head: 'Took' },
  { name: 'c-tries num', head: 'Attempt' },
  { name: 'c-why', head: 'Why' },
]

export function runCells(id: string, zone?: string) {
  const run = runOf(id)?.value
  if (!run) return [id]
  const took = lasted(run, now.value)
  const behind = late(run)
  return [
    <State of={run.state} />,
    <RunLink id={id} />,
    <Instant at={run.nominal_time} where={zone} plain />,
    Number.isNaN(behind) ? '' : span(Math.max(0, behind)),
    Number.isNaN(took) ? '' : span(took),
    run.attempt > 0 ? String(run.attempt) : '',
    because(run),
  ]
}

const first = 100
const more = 1000
const most = 10_000
const patience = 30 // pages
const windows: [string, string, number][] = [
  ['1h', 'last hour', 3_600_000],
  ['24h', 'last 24 h', 86_400_000],
  ['7d', 'last 7 days', 604_800_000],
]

interface Older {
  key: string
  ids: string[]
  next: string | undefined
  bounds: Query // those that next goes with
}

export function Runs() {
  const q = query.value
  const states = (q.get('state') ?? '').split(',').filter((s) => (all as string[]).includes(s))
  const job = q.get('job') ?? ''
  const label = q.get('label') ?? ''
  const since = windows.find(([name]) => name === q.get('since'))
  const from = q.get('from') ?? ''
  const before = q.get('to') ?? ''
  const given = { state: states.join(','), job, label }
  const key = JSON.stringify([given, since?.[0], from, before])

  // A window moves with the clock, by whole minutes, so that a page asks the same for a while. What is not due is left out unless it is asked for, by a
  // state or a time, as belfry run list does. What has ended was due, unless it was cancelled ahead of its time: to say so spares the server all runs
  // that wait for theirs.
  const bounded = () => {
    const minute = Math.floor(now.peek() / 60_000) * 60_000
    const due = states.every((s) => !isOpen(s as Of) && s !== 'cancelled') && !((parse(from) || 0) > now.peek())
    return { ...given, from: since ? new Date(minute - since[2]).toISOString() : from, to: before, due: due ? 'true' : '' }
  }
  const inTerminal = () =>
    ['belfry run list', ...Object.entries({ ...given, since: since?.[0], from, to: before }).flatMap(([name, value]) => (value ? [`--${name}=${quoted(value)}`] : []))].join(' ')
  const live = useLive(key, async (stop) => {
    const asked = began()
    const bounds = bounded()
    const { data } = await get<Page<Run>>('/runs', { ...bounds, limit: first }, stop)
    return { ids: keep(data.items, asked), next: data.next, bounds }
  }, undefined, ['runs'])

  const [older, setOlder] = useState<Older>({ key: '', ids: [], next: undefined, bounds: {} })
  const [failed, setFailed] = useState<Error>()
  const loading = useRef(false)
  const head = live.data
  const begun = older.key === key
  // What is new pushes the last of the first page out of it, into what was loaded behind it.
  const behind = useRef<{ key: string; ids: string[] }>({ key, ids: [] })
  if (behind.current.key !== key) behind.current = { key, ids: [] }
  const ids = head ? merge(head.ids, begun ? [...behind.current.ids, ...older.ids] : []) : undefined
  useEffect(() => {
    if (begun && head) behind.current.ids = merge(head.ids, behind.current.ids)
  }, [head, begun])

  const end = () => {
    const cursor = begun ? older.next : head?.next
    const bounds = begun ? older.bounds : head?.bounds
    if (!cursor || !bounds || loading.current || (ids?.length ?? 0) >= most) return
    loading.current = true
    const asked = began()
    get<Page<Run>>('/runs', { ...bounds, limit: more, cursor })
      .then(({ data }) => {
        const got = keep(data.items, asked)
        setFailed(undefined)
        setOlder((o) => {
          if (o.key === key) return { key, ids: [...o.ids, ...got], next: data.next, bounds }
          behind.current = { key, ids: head?.ids ?? [] }
          return { key, ids: got, next: data.next, bounds }
        })
      })
      .catch((error: Error) => setFailed(error))
      .finally(() => {
        loading.current = false
      })
  }

  // A page looks at so many records and may find none of them fit: it is asked on, but not for ever.
  const unfinished = begun ? older.next : head?.next
  const [patient, setPatient] = useState(0)
  const looked = useRef({ key, pages: 0 })
  if (looked.current.key !== key) looked.current = { key, pages: 0 }
  const searching = Boolean(ids && ids.length < first && unfinished && looked.current.pages < patience * (patient + 1))
  useEffect(() => {
    if (!searching || loading.current) return
    looked.current.pages++
    end()
  }, [searching, older, head, patient])

  const busy = useRef(false)
  const picking = usePicking(key)
  const settled = useSettled(ids, key, () => busy.current || picking.on)
  const about = picking.on ? picking.ids.size.toLocaleString('en') : 'matching'
  // What the buttons are about; undefined where there is nothing of it. What the list leaves out since it is not due they leave out, too.
  const chosen = (fits: (state: Of) => boolean): Chosen | undefined => {
    if (picking.on) return picking.ids.size ? { runs: [...picking.ids] } : undefined
    const own = states.filter((s) => fits(s as Of)) as Of[]
    if (states.length && !own.length) return undefined
    const { due, from, to: end } = bounded()
    const until = due && !(parse(end) < now.peek()) ? new Date(now.peek()).toISOString() : end
    return { job, label, states: own, from, to: until }
  }
  const none = (what: string) => (picking.on ? 'Select runs first.' : `Runs of these states cannot be ${what}.`)
  const filtered = states.length > 0 || job || label || since || from || before
  return (
    <section class="page fills">
      <header class="bar">
        <h1>Runs</h1>
        <span class="count" aria-live="off">
          {ids && (unfinished ? `newest ${ids.length.toLocaleString('en')}` : ids.length.toLocaleString('en'))}
          {ids && ids.length >= most && ' – narrow the window to see others'}
        </span>
        <Fresh count={settled.fresh} apply={settled.apply} />
        <div class="acts">
          <Picks of={picking} ids={settled.ids} more={Boolean(unfinished)} />
          <Button scope="run" letter="r" why={chosen(retries) ? undefined : none('retried')} act={() => open(<RetryMany of={chosen(retries) ?? {}} forced={picking.on || states.includes('unknown') || states.includes('succeeded')} />)}>
            Retry {about}…
          </Button>
          <Button scope="run" why={chosen(isOpen) ? undefined : none('cancelled')} act={() => open(<CancelMany of={chosen(isOpen) ?? {}} />)}>
            Cancel {about}…
          </Button>
        </div>
      </header>
      <div class="filters" role="search" aria-label="Filter runs">
        <Field name="job" label="Job" value={job} placeholder="name of a job" find />
        <Field name="label" label="Label" value={label} placeholder="team=billing" />
        <label>
          <span>Window</span>
          <select value={since?.[0] ?? ''} onChange={(event) => filter({ since: event.currentTarget.value, from: undefined })}>
            <option value="">all</option>
            {windows.map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <fieldset class="chips">
          <legend class="hidden">State</legend>
          {all.map((state) => (
            <label key={state} class={'chip state s-' + state}>
              <input
                type="checkbox"
                checked={states.includes(state)}
                onChange={(event) => filter({ state: (event.currentTarget.checked ? [...states, state] : states.filter((s) => s !== state)).join(',') })}
              />
              {state}
            </label>
          ))}
        </fieldset>
        {filtered && (
          <button type="button" class="plain" onClick={() => filter({ state: '', job: '', label: '', since: '', from: '', to: '' })}>
            Clear
          </button>
        )}
      </div>
      <Refused error={live.error ?? failed} />
      {!ids && pending(live.error) && <Waiting lines={12} />}
      {ids?.length === 0 &&
        (filtered ? (
          searching ? (
            <p class="nothing">Looking through older runs …</p>
          ) : unfinished ? (
            <Empty>
              None of the newest runs matches these filters.{' '}
              <button type="button" class="plain" onClick={() => setPatient((n) => n + 1)}>
                Look further back
              </button>
            </Empty>
          ) : (
            <Empty command={inTerminal()}>No run matches these filters.</Empty>
          )
        ) : (
          <Empty command="belfry job trigger NAME --wait">No job has run yet. A run is made when a schedule fires, or when you trigger a job:</Empty>
        ))}
      {ids && ids.length > 0 && (
        <Grid label="Runs" kind="g-runs" columns={columns} ids={settled.ids} total={unfinished ? -1 : settled.ids.length} cells={(id) => runCells(id)} href={(id) => to('runs', id)} end={end} scroll busy={busy} picking={picking} />
      )}
    </section>
  )
}

const retries = (state: Of): boolean => !isOpen(state) && state !== 'skipped'

function merge(newest: string[], rest: string[]): string[] {
  const known = new Set(newest)
  return [...newest, ...rest.filter((id) => !known.has(id))]
}

/** Field is a filter by text. It is written into the URL when somebody pauses, so that no answer to half a word bounces in. */
export function Field({ name, label, value, placeholder, find = false }: { name: string; label: string; value: string; placeholder: string; find?: boolean }) {
  const [text, setText] = useState(value)
  const typed = useRef(0)
  useEffect(() => setText(value), [value])
  useEffect(() => () => clearTimeout(typed.current), [])
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        value={text}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        data-find={find ? '' : undefined}
        onInput={(event) => {
          const next = event.currentTarget.value
          setText(next)
          clearTimeout(typed.current)
          typed.current = window.setTimeout(() => filter({ [name]: next.trim() }, true), 250)
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' && event.key !== 'Escape') return
          clearTimeout(typed.current)
          filter({ [name]: text.trim() }, true)
          event.currentTarget.blur()
        }}
      />
    </label>
  )
}

