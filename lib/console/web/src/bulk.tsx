// Dialogs about many runs or jobs at once: they count first, go on by parts, and say what was done and what was not.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { outcome } from './acts'
import { get, serverNow } from './api'
import { Ask, Failed, teller, type Look } from './dialog'
import { useLive } from './live'
import { sampled } from './limits'
import { carryAll, inOne, start, Stopped, useCount, type Count, type Counting, type Many, type Progress, type Refusals, type Seen } from './many'
import { isOpen, type Run } from './model'
import { to } from './router'
import { runOf } from './store'
import { belfry } from './terminal'
import { parse, span } from './time'
import { Instant, RunLink, State } from './ui'
import { lastError } from './model'

/** useStop is set when somebody asks to stop, and when the dialog is closed: nobody could stop it any more. */
export function useStop(): { current: boolean } {
  const stop = useRef(false)
  useEffect(
    () => () => {
      stop.current = true
    },
    [],
  )
  return stop
}

export const some = (n: number, one: string, many: string): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

/** Counted is the number that a dry run gave, as soon as it is known. */
export function Counted({ of: { found, error }, one, many }: { of: Counting; one: string; many: string }) {
  return <b aria-live="polite">{found ? (found.most ? 'up to ' : found.least ? 'at least ' : '') + some(found.count, one, many) : error ? `An unknown number of ${many}` : 'Counting …'}</b>
}

/** Refused says how many were refused and why. Jobs are named; of runs one is, in what was said of it. */
export function Refused({ of, among = '', jobs = false }: { of: Refusals; among?: string; jobs?: boolean }) {
  if (!of.size) return null
  return (
    <ul class="refusals">
      {[...of].map(([code, { count, names, detail }]) => (
        <li key={code}>
          {among + some(count, 'is', 'are')} refused, <code>{code}</code>
          {jobs && count > 1 ? <>: {namesOf(names, count)}</> : detail && ': ' + detail}
        </li>
      ))}
    </ul>
  )
}

/** namesOf is a list of the first names of so many. */
export const namesOf = (first: string[], count: number): string => first.join(', ') + (count > first.length ? ` and ${(count - first.length).toLocaleString('en')} more` : '')

/** Matching says what a request over a list's filters is about. */
function Matching({ of: { path, body } }: { of: Many }) {
  const m = body.matching
  if (!m || path.startsWith('/dead-letters/')) return null
  const labels = Object.entries(m.labels ?? {}).map(([name, value]) => name + '=' + value)
  if (path.startsWith('/jobs/')) {
    return (
      <ul class="matching" aria-label="Jobs that match">
        {m.contains && <li>{m.contains} in the name</li>}
        {labels.length > 0 && <li>label {labels.join(', ')}</li>}
        {m.paused !== undefined && <li>{m.paused ? 'paused' : 'not paused'}</li>}
      </ul>
    )
  }
  return (
    <ul class="matching" aria-label="Runs that match">
      <li>{m.job ? <>of the job {m.job}</> : 'of all jobs'}</li>
      {labels.length > 0 && <li>label {labels.join(', ')}</li>}
      <li>{m.states?.join(', ') ?? (path === '/runs/cancel' ? 'all that have not ended' : 'failed, dead')}</li>
      {m.from && (
        <li>
          due from <Instant at={m.from} />
        </li>
      )}
      {m.to && (
        <li>
          due before <Instant at={m.to} />
        </li>
      )}
    </ul>
  )
}

interface Asked {
  title: string
  many: Many
  none?: string // why nothing is asked for at all
  verb: string // of the button: Cancel
  done: string // cancelled
  says: ComponentChildren // behind the number
  wont: ComponentChildren
  command: string
  look: Look
  children?: ComponentChildren
  grave?: boolean
  stamp?: number
  asks?: boolean // for the number, before anything is done
  missing?: string // what is to be given first
  undo?: (changed: Seen[], lost: Lost[]) => (() => void) | undefined // takes back what was done, and what may have been
}

/** Lost is a request that nobody knows the outcome of, and when the jobs that it is about were counted. */
export interface Lost {
  body: Many['body']
  since: string
}

/** Bulk asks about many runs or jobs. The number that its dry run gives is the most that it changes, however often it is refused and asked again. */
export function Bulk({ title, many, none, verb, done, says, wont, command, look, children, grave, stamp = 0, asks, missing, undo }: Asked) {
  const [round, setRound] = useState(0)
  const counted = useCount(none === undefined && !missing ? many : undefined, stamp + ' ' + round)
  const standing = useRef<{ of: Count; so: Progress }>()
  const [progress, setProgress] = useState<{ done: number; of: number }>()
  const [phase, setPhase] = useState<'' | 'runs' | 'stops'>('')
  const [typed, setTyped] = useState('')
  const stop = useStop()
  // What was done before a part was refused can be taken back by whoever leaves it at that.
  const halfway = useRef<() => void>()
  const closed = useRef(false)
  const earlier = useRef<Seen[]>([]) // changed before the rest was counted anew
  const lost = useRef<Lost[]>([])
  useEffect(
    () => () => {
      closed.current = true
      halfway.current?.()
    },
    [],
  )
  const { found } = counted
  const so = standing.current?.of === found ? standing.current?.so : undefined
  const total = found?.count ?? 0
  const left = total - (so?.done ?? 0)
  const pace = many.body.per_second ?? Infinity
  const m = many.body.matching
  const jobs = many.path.startsWith('/jobs/')
  const noun = jobs ? (['job', 'jobs'] as const) : (['run', 'runs'] as const)
  const want = asks ? String(left) : word
  const everything = Boolean(m && many.path.startsWith('/runs/') && !m.job && !m.labels && !m.states && !m.from)
  return (
    <Ask
      title={title}
      says={
        <>
          {missing ? <b>The {noun[1]}</b> : <Counted of={counted} one={noun[0]} many={noun[1]} />} {says} {none}
        </>
      }
      wont={wont}
      button={found && !missing ? `${verb}${so?.done && !verb.endsWith('other') ? ' the other' : ''} ${found.most ? 'up to ' : ''}${left.toLocaleString('en')}` : verb}
      doing={phase === 'stops' ? 'Stopping …' : 'Working …'}
      grave={grave}
      ready={left > 0 && (!(everything || asks) || typed.trim().replaceAll(',', '') === want)}
      missing={missing}
      act={async () => {
        if (!found) return null
        const tell = teller()
        const now = so ?? start(many)
        standing.current = { of: found, so: now }
        stop.current = false
        setPhase('runs')
        halfway.current = undefined
        const back = () => undo?.([...earlier.current, ...now.changed], lost.current)
        const open = () => undo && lost.current.length > 0 && <> The answer to a part was lost: whether its {noun[1]} were {done} is not known. Undo looks for them.</>
        const did = () => `${some(now.done, noun[0] + ' was', noun[1] + ' were')} ${done}`
        setProgress({ done: now.done, of: total })
        try {
          await carryAll(many, total, now, (at) => setProgress({ done: at.done, of: total }), () => stop.current, found.at)
        } catch (error) {
          const { maybe } = outcome(error instanceof Stopped ? error.why : error)
          if (maybe && found.at) lost.current.push({ body: many.body, since: found.at })
          const undo = back()
          if (undo) halfway.current = () => tell(<>{did()}, then it was stopped.{open()}</>, { undo })
          if (closed.current) halfway.current?.()
          // How many are left is not known where nobody knows what became of a part.
          if (maybe) {
            earlier.current.push(...now.changed)
            setRound((n) => n + 1)
          }
          throw error
        } finally {
          setPhase('')
        }
        const refused = now.refusals.size > 0
        tell(
          <>
            {did()}
            {stop.current && now.done < total ? ', then it was stopped' : ''}. {refused && <Refused of={now.refusals} jobs={jobs} />}
            {open()}
          </>,
          { bad: refused, undo: back() },
        )
        return null
      }}
      look={look}
      terminal={{ command, loose: many.body.jobs?.some((j) => j.etag), change: inOne(many, total) ? { method: 'POST', path: many.path, body: JSON.stringify({ ...many.body, ...(m && { max: total || undefined, unchanged_since: found?.at }) }) } : undefined }}
    >
      <Matching of={many} />
      {jobs && found && found.first.length > 0 && <p class="fine">{namesOf(found.first, found.count)}</p>}
      {children}
      {(everything || (asks && left > 0)) && (
        <label class="field">
          <span>
            {everything && <>No filter is set. Type <code>{word}</code> if you mean runs of all of them</>}
            {asks && <>Type <code>{left.toLocaleString('en')}</code>, the number, to go on</>}
          </span>
          <input type="text" value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
      )}
      {left > pace && <p class="fine">At this pace that takes {span((left / pace) * 1000)}. Keep this dialog open: to close it is to stop.</p>}
      {counted.error !== undefined && (
        <>
          <Failed error={counted.error} />
          <p>
            <button type="button" class="act" onClick={() => setRound((n) => n + 1)}>
              Count again
            </button>
          </p>
        </>
      )}
      {/* A dry run over a filter shows the first 20. */}
      {found && <Refused of={found.refusals} among={found.most || (jobs && m) ? `Of the first ${sampled}, ` : ''} jobs={jobs} />}
      {progress && (
        <p class="progress">
          <progress max={progress.of} value={progress.done} aria-label="Done so far" /> {progress.done.toLocaleString('en')} of {progress.of.toLocaleString('en')} {done}.{' '}
          {phase && (
            <button
              type="button"
              class="plain"
              disabled={phase === 'stops'}
              onClick={() => {
                stop.current = true
                setPhase('stops')
              }}
            >
              {phase === 'stops' ? 'Stopping …' : 'Stop'}
            </button>
          )}
        </p>
      )}
    </Ask>
  )
}

const word = 'all jobs'

/** Field is a text that somebody may add. */
export function Field({ name, value, set, most }: { name: string; value: string; set: (text: string) => void; most: number }) {
  return (
    <label class="field">
      <span>{name}</span>
      <input type="text" value={value} maxLength={most} autocomplete="off" onInput={(event) => set(event.currentTarget.value)} />
    </label>
  )
}

/** Pace is how many runs start in a second. */
export function Pace({ value, set }: { value: number; set: (n: number) => void }) {
  return (
    <label class="field">
      <span>Runs that start in a second</span>
      <input type="number" min="0.1" max="10000" step="any" required value={value} onInput={(event) => event.currentTarget.valueAsNumber >= 0.1 && set(Math.min(10_000, event.currentTarget.valueAsNumber))} />
    </label>
  )
}

/** Letters are dead letters: those that are named, or a group by its pattern, with the newest of it and when the newest that was shown ended. */
export interface Letters {
  runs?: string[]
  pattern?: string
  newest?: string
  last?: string
  name: string
}

/** useUntil is the instant at which a dialog was opened, after all that is shown has ended. What ends later was not counted, and may be what a request
 * has started whose answer was lost: a request that is bounded by it does not start that a second time. */
export function useUntil(runs: string[], last?: string): string {
  const [until] = useState(() => new Date(Math.max(serverNow(), ...[last, ...runs.map((id) => runOf(id)?.peek().ended_at)].map((at) => (parse(at) || 0) + 1))).toISOString())
  return until
}

/** useMatching is what is sent, and the same for a command line. */
function useMatching({ runs, pattern, last }: Letters): [Many['body'], string[], { pattern?: string; to?: string }, string] {
  const until = useUntil(runs ?? [], last)
  return runs ? [{ runs }, runs, {}, until] : [{ matching: { pattern, to: until } }, [], { pattern, to: until }, until]
}

const letters = { href: to('dead-letters'), text: 'dead letters' }

export function Redrive({ of }: { of: Letters }) {
  const [perSecond, setPerSecond] = useState(10)
  const [tried, setTried] = useState('')
  const [ended, setEnded] = useState(0)
  const [body, runs, flags, until] = useMatching(of)
  const many: Many = { path: '/dead-letters/redrive', body: { ...body, ended_before: of.runs && until, per_second: perSecond } }
  return (
    <Bulk
      title={`Redrive ${of.name}`}
      many={many}
      verb={tried ? 'Redrive the other' : 'Redrive'}
      done="queued again"
      says="will be queued again, each with a new budget of attempts and the newest definition of its job."
      wont="Dead letters with other errors stay, and so do those that come from now on. Attempts, logs and errors of before stay. A target is not asked whether an earlier attempt had its effect."
      command={belfry(['dead-letter', 'redrive', ...runs], { ...flags, 'ended-before': of.runs && until, 'per-second': perSecond === 10 ? undefined : perSecond })}
      look={letters}
      stamp={ended + (tried ? 1 : 0)}
    >
      <Pace value={perSecond} set={setPerSecond} />
      {of.newest && <TryOne run={of.newest} until={until} tried={tried === of.newest} did={() => setTried(of.newest ?? '')} ended={() => setEnded((n) => n + 1)} />}
    </Bulk>
  )
}

/** TryOne redrives one of them, and shows what becomes of it. */
function TryOne({ run, until, tried, did, ended }: { run: string; until: string; tried: boolean; did: () => void; ended: () => void }) {
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<Refusals>(new Map())
  const asking = useRef(false)
  const over = useRef(false)
  const live = useLive(
    tried ? 'try ' + run : '',
    async (stop) => {
      const { data } = await get<Run>('/runs/' + encodeURIComponent(run), {}, stop)
      if (!isOpen(data.state) && !over.current) {
        over.current = true
        ended()
      }
      return data
    },
    1000,
  )
  const go = async () => {
    if (asking.current) return
    asking.current = true
    setBusy(true)
    setError(undefined)
    setRefused(new Map())
    try {
      const one: Many = { path: '/dead-letters/redrive', body: { runs: [run], ended_before: until, per_second: 10 } }
      const so = start(one)
      await carryAll(one, 1, so, () => {}, () => true)
      setRefused(so.refusals)
      if (so.done) did()
    } catch (failed) {
      setError(failed)
      if (outcome(failed).maybe) ended() // and so the others are counted anew
    }
    asking.current = false
    setBusy(false)
  }
  const now = live.data
  const again = over.current && (now?.state === 'dead' || now?.state === 'failed')
  const box = useRef<HTMLDivElement>(null)
  // Who presses Enter now does nothing.
  useEffect(() => {
    if (again && !document.activeElement?.matches('input, textarea')) box.current?.closest('dialog')?.querySelector<HTMLElement>('.no')?.focus()
  }, [again])
  return (
    <div ref={box} class={again ? 'try again' : 'try'} aria-live="polite">
      {tried ? (
        <>
          {now && <State of={now.state} />} <RunLink id={run} /> {over.current && !again && (now?.state === 'succeeded' ? 'It succeeded.' : 'It has ended.')}
          {again && now && (
            <>
              1 of 1 failed again. <span class="said">{lastError(now)}</span>
            </>
          )}
        </>
      ) : (
        <button type="button" class="act" aria-disabled={busy ? 'true' : undefined} onClick={() => void go()}>
          Try one first
        </button>
      )}
      <Refused of={refused} />
      {error !== undefined && <Failed error={error} look={{ href: to('runs', run), text: 'run ' + run }} />}
    </div>
  )
}

export function Discard({ of }: { of: Letters }) {
  const [text, setText] = useState('')
  const note = text.trim()
  const [body, runs, flags] = useMatching(of)
  return (
    <Bulk
      title={`Discard ${of.name}`}
      many={{ path: '/dead-letters/discard', body: { ...body, note: note || undefined } }}
      verb="Discard"
      done="discarded"
      says="will be settled without running again, and be dead letters no more. Only a retry by its ID runs one again."
      wont="No target is called. The runs keep their state, attempts, logs and errors until they expire."
      command={belfry(['dead-letter', 'discard', ...runs], { ...flags, note })}
      look={letters}
      grave
    >
      <Field name="Note, which is kept with each run" value={text} set={setText} most={200} />
    </Bulk>
  )
}
