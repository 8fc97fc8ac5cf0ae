// Dialogs about many runs at once: they count first, go on by parts, and say what was done and what was not.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get } from './api'
import { Ask, Failed, type Look } from './dialog'
import { useLive } from './live'
import { carryAll, useCount, type Counting, type Many, type Progress, type Refusals } from './many'
import { isOpen, type Run } from './model'
import { to } from './router'
import { belfry } from './terminal'
import { span } from './time'
import { RunLink, State } from './ui'

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
  return <b aria-live="polite">{found ? (found.least ? 'at least ' : '') + some(found.count, one, many) : error ? `An unknown number of ${many}` : 'Counting …'}</b>
}

function Refused({ of, among = '' }: { of: Refusals; among?: string }) {
  if (!of.size) return null
  return (
    <ul class="refusals">
      {[...of].map(([code, { count, detail }]) => (
        <li key={code}>
          {among + some(count, 'is', 'are')} refused, <code>{code}</code>
          {detail && ': ' + detail}
        </li>
      ))}
    </ul>
  )
}

interface Asked {
  title: string
  many: Many
  verb: string // of the button: Cancel
  done: string // cancelled
  says: ComponentChildren // behind the number
  wont: ComponentChildren
  command: string
  look: Look
  children?: ComponentChildren
  grave?: boolean
  stamp?: number
}

/** Bulk asks about many runs. The number that its dry run gives is the most that it changes. */
export function Bulk({ title, many, verb, done, says, wont, command, look, children, grave, stamp = 0 }: Asked) {
  const counted = useCount(many, stamp)
  const [progress, setProgress] = useState<Progress>()
  const stop = useStop()
  const total = counted.found?.count ?? 0
  const pace = many.body.per_second ?? Infinity
  return (
    <Ask
      title={title}
      says={
        <>
          <Counted of={counted} one="run" many="runs" /> {says}
        </>
      }
      wont={wont}
      button={counted.found ? `${verb} ${total.toLocaleString('en')}` : verb}
      grave={grave}
      ready={total > 0}
      act={async () => {
        stop.current = false
        setProgress({ done: 0, refusals: new Map() })
        const end = await carryAll(many, total, setProgress, () => stop.current)
        const refused = [...end.refusals].reduce((n, [, r]) => n + r.count, 0)
        const text = `${some(end.done, 'run was', 'runs were')} ${done}${stop.current && end.done < total ? ', then it was stopped' : ''}.`
        return refused ? (
          <>
            {text} <Refused of={end.refusals} />
          </>
        ) : (
          text
        )
      }}
      look={look}
      terminal={{ command, change: { method: 'POST', path: many.path, body: JSON.stringify(many.body) } }}
    >
      {children}
      {total > pace && <p class="fine">At this pace that takes {span((total / pace) * 1000)}.</p>}
      {counted.error !== undefined && <Failed error={counted.error} />}
      {/* A dry run over a filter shows the first 20. */}
      {counted.found && <Refused of={counted.found.refusals} among={many.body.matching && 'Of the first 20 '} />}
      {progress && (
        <p class="progress">
          <progress max={total} value={progress.done} aria-label="Done so far" /> {progress.done.toLocaleString('en')} of {total.toLocaleString('en')} {done}.{' '}
          <button type="button" class="plain" onClick={() => (stop.current = true)}>
            Stop
          </button>
        </p>
      )}
    </Ask>
  )
}

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
      <input type="number" min="0.1" max="10000" step="any" value={value} onInput={(event) => event.currentTarget.valueAsNumber >= 0.1 && set(Math.min(10_000, event.currentTarget.valueAsNumber))} />
    </label>
  )
}

/** Letters are dead letters: those that are named, or a group by its pattern with the newest of it. */
export interface Letters {
  runs?: string[]
  pattern?: string
  newest?: string
  name: string
}

const matching = ({ runs, pattern }: Letters) => (runs ? { runs } : { matching: { pattern } })
const words = ({ runs, pattern }: Letters): [string[], { pattern?: string }] => [runs ?? [], runs ? {} : { pattern }]
const letters = { href: to('dead-letters'), text: 'dead letters' }

export function Redrive({ of }: { of: Letters }) {
  const [perSecond, setPerSecond] = useState(10)
  const [tried, setTried] = useState('')
  const [ended, setEnded] = useState(0)
  const [runs, flags] = words(of)
  const many: Many = { path: '/dead-letters/redrive', body: { ...matching(of), per_second: perSecond } }
  return (
    <Bulk
      title={`Redrive ${of.name}`}
      many={many}
      verb={tried ? 'Redrive the other' : 'Redrive'}
      done="queued again"
      says="will be queued again, each with a new budget of attempts and the newest definition of its job."
      wont="Dead letters with other errors stay, and so do those that come from now on. Attempts, logs and errors of before stay. A target is not asked whether an earlier attempt had its effect."
      command={belfry(['dead-letter', 'redrive', ...runs], { ...flags, 'per-second': perSecond === 10 ? undefined : perSecond })}
      look={letters}
      stamp={ended + (tried ? 1 : 0)}
    >
      <Pace value={perSecond} set={setPerSecond} />
      {of.newest && <TryOne run={of.newest} tried={tried === of.newest} did={() => setTried(of.newest ?? '')} ended={() => setEnded((n) => n + 1)} />}
    </Bulk>
  )
}

/** TryOne redrives one of them, and shows what becomes of it. */
function TryOne({ run, tried, did, ended }: { run: string; tried: boolean; did: () => void; ended: () => void }) {
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
    try {
      const one = await carryAll({ path: '/dead-letters/redrive', body: { runs: [run], per_second: 10 } }, 1, () => {}, () => true)
      setRefused(one.refusals)
      if (one.done) did()
    } catch (failed) {
      setError(failed)
    }
    asking.current = false
    setBusy(false)
  }
  return (
    <div class="try" aria-live="polite">
      {tried ? (
        <>
          {live.data && <State of={live.data.state} />} <RunLink id={run} /> {over.current && (live.data?.state === 'succeeded' ? 'It succeeded.' : 'It has ended.')}
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
  const [runs, flags] = words(of)
  return (
    <Bulk
      title={`Discard ${of.name}`}
      many={{ path: '/dead-letters/discard', body: { ...matching(of), note: note || undefined } }}
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
