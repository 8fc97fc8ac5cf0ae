// What can be done with a job: trigger, pause, resume, delete.
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { carry, carryOnce, pause, remove, resume, trigger } from './acts'
import { serverNow, session, type Change } from './api'
import { Counted, Field } from './bulk'
import { Ask, atOnce, Button, open } from './dialog'
import type { Job, Run } from './model'
import { go, path, to, withQuery } from './router'
import { belfry } from './terminal'
import { civil, dayIn, mine, typed, zoneFor } from './time'
import { useCount } from './many'
import { RunLink } from './ui'

// The job of the page as it was read last: a dialog over it goes on with the page.
const newest = signal<Job | undefined>(undefined)

function useNewest(job: Job): Job {
  return newest.value?.name === job.name ? newest.value : job
}

const seen = (job: string) => ({ href: to('jobs', job), text: 'job ' + job })

/** JobActs are the buttons of a job's page. */
export function JobActs({ job }: { job: Job }) {
  useEffect(() => {
    newest.value = job
  }, [job])
  useEffect(
    () => () => {
      newest.value = undefined
    },
    [],
  )
  return (
    <div class="acts">
      <Button scope="run" letter="t" act={() => open(<Trigger job={job} />)}>
        Trigger…
      </Button>
      <Button scope="write" letter="p" face={job.paused ? 'Resume' : 'Pause'} act={() => (job.paused ? resumeNow(job) : pauseNow(job))}>
        {job.paused ? 'Resume' : 'Pause'}
      </Button>
      {/* It is always there: the buttons beside it stay where they are. */}
      <Button scope="write" why={job.paused ? undefined : 'The job is not paused, so there is nothing to give a reason for.'} act={() => open(<Reason job={job} />)}>
        Reason…
      </Button>
      <a class="act" href={to('jobs', job.name, 'edit')}>
        Edit
      </a>
      <Button scope="write" act={() => open(<Delete job={job} />)}>
        Delete…
      </Button>
    </div>
  )
}

function pauseNow({ name, status }: Job) {
  return atOnce(() => carry<Job>(pause(name, '', status.etag)), () => <>The job {name} is paused. It makes no runs until it is resumed.</>, seen(name), {
    make: (paused) => carry(resume(name, paused.status.etag)),
    done: <>The job {name} is as it was before the pause.</>,
  })
}

function resumeNow({ name, status }: Job) {
  return atOnce(() => carry<Job>(resume(name, status.etag)), () => <>The job {name} is resumed.</>, seen(name), {
    make: (resumed) => carry(pause(name, status.paused_reason, resumed.status.etag)),
    done: <>The job {name} is paused again.</>,
  })
}

/** Reason says why a job is paused. */
function Reason({ job }: { job: Job }) {
  const [reason, setReason] = useState(job.status.paused_reason ?? '')
  const change = pause(job.name, reason.trim(), job.status.etag)
  return (
    <Ask
      title={`Why is ${job.name} paused?`}
      says="The job stays paused. Everybody who looks at it sees the reason. If somebody changes the job meanwhile, as by resuming it, this is refused."
      wont="No run starts or stops."
      button="Keep the reason"
      act={async () => {
        await carry(change)
        return 'The reason is kept.'
      }}
      look={seen(job.name)}
      terminal={{ command: belfry(['job', 'pause', job.name], { reason: reason.trim() }), change, loose: true }}
    >
      <Field name="Reason" value={reason} set={setReason} most={500} />
    </Ask>
  )
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Clocks is an instant as clocks show it in a zone, and here. */
function Clocks({ ms, zone }: { ms: number; zone: string }) {
  const zones = [...new Set([zone, mine])]
  return (
    <>
      {zones.map((zone, i) => (
        <span key={zone}>
          {i > 0 && ', which is '}
          {dayIn(ms, zone)} {civil(ms, zone).clock.slice(0, 5)} {zone}
        </span>
      ))}
    </>
  )
}

/** Another asks for one more run than an earlier request has made. */
function Another({ change, name }: { change: Change; name: string }) {
  const [asked, setAsked] = useState(false)
  const asking = useRef(false)
  const ask = () => {
    if (asking.current) return
    asking.current = true
    setAsked(true)
    document.getElementById('main')?.focus({ preventScroll: true })
    void atOnce(() => carryOnce<Run>(change), ({ made }) => <>Accepted: <RunLink id={made.id} /></>, { href: withQuery(to('runs'), { job: name }), text: 'runs of ' + name })
  }
  if (asked) return null
  return (
    <button type="button" class="plain" onClick={ask}>
      Make another
    </button>
  )
}

/** Trigger asks for a run of a job. */
export function Trigger({ job: given }: { job: Job }) {
  const job = useNewest(given)
  const { name } = job
  const [later, setLater] = useState(false)
  const [when, setWhen] = useState('')
  const [payload, setPayload] = useState('')
  const [ignorePause, setIgnorePause] = useState(false)
  const [overlap, setOverlap] = useState('')
  const text = payload.trim()
  const wrong = text !== '' && !isJSON(text)
  const zone = zoneFor(job.schedule?.timezone)
  const ms = later ? typed(when, zone) : NaN
  const at = Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
  const past = ms < serverNow()
  const held = job.paused && !ignorePause
  const own = job.overlap === undefined ? '' : overlap // of a job without one, whose runs nobody counts, the server takes none but allow
  const change = trigger(name, { at, payload: wrong ? '' : text, ignorePause: job.paused && ignorePause, overlap: own })
  return (
    <Ask
      title={`Trigger ${name}`}
      says={
        <>
          One run of {name} is made{' '}
          {at === undefined ? (later ? 'for a time that you choose' : 'now') : <>for <Clocks ms={ms} zone={zone} /></>}.{past && ' That time is past, so it is due at once.'}{' '}
          {held ? 'The job is paused: the run is held, and starts when the job is resumed' : later && !past ? 'It starts at that time' : 'It starts now'}
          {held && later && !past && ', not before its time'}.
        </>
      }
      wont={job.paused ? 'The job is not resumed: its schedule makes no runs.' : job.schedule ? 'The schedule stays as it is: its next fires come all the same.' : 'The definition of the job stays as it is.'}
      button="Trigger"
      missing={wrong ? 'The payload is not JSON.' : later && at === undefined ? 'Choose a time.' : undefined}
      act={async () => {
        const { made, again } = await carryOnce<Run>(change)
        if (!again) return <>Accepted: <RunLink id={made.id} /></>
        return (
          <>
            <RunLink id={made.id} /> is the run of your earlier request, of which nobody knew what had become. There is one run for both. <Another change={change} name={name} />
          </>
        )
      }}
      look={{ href: withQuery(to('runs'), { job: name }), text: 'runs of ' + name }}
      terminal={{ command: belfry(['job', 'trigger', name], { at, payload: text, 'ignore-pause': job.paused && ignorePause, overlap: own }), change }}
    >
      <fieldset class="field row">
        <legend>When</legend>
        <label>
          <input type="radio" name="when" checked={!later} onChange={() => setLater(false)} /> now
        </label>
        <label>
          <input type="radio" name="when" checked={later} onChange={() => setLater(true)} /> at a time
        </label>
        {later && (
          <label>
            <input type="datetime-local" value={when} aria-label={`Time, as clocks show it in ${zone}`} onInput={(event) => setWhen(event.currentTarget.value)} /> <span class="fine">{zone}</span>
          </label>
        )}
      </fieldset>
      <label class="field">
        <span>Payload, as JSON; empty for that of the job</span>
        <textarea rows={4} value={payload} spellcheck={false} aria-invalid={wrong ? 'true' : undefined} onInput={(event) => setPayload(event.currentTarget.value)} />
      </label>
      {wrong && (
        <p class="wrong" role="alert">
          This is not JSON. A text stands in quotes: "text".
        </p>
      )}
      {job.overlap !== undefined && (
        <label class="field">
          <span>If another one goes on by then</span>
          <select value={overlap} onChange={(event) => setOverlap(event.currentTarget.value)}>
            <option value="">as the job says</option>
            {ownPolicies.map(([policy, says]) => (
              <option key={policy} value={policy}>
                {policy}: {says}
              </option>
            ))}
          </select>
        </label>
      )}
      {job.paused && (
        <label>
          <input type="checkbox" checked={ignorePause} onChange={(event) => setIgnorePause(event.currentTarget.checked)} /> Start it although the job is paused. The job stays paused.
        </label>
      )}
    </Ask>
  )
}

/** ownPolicies are the policies that a request may bring in place of its job's, and what becomes of its run by them. */
const ownPolicies = [
  ['allow', 'it starts all the same, and is not counted'],
  ['skip', 'it is skipped'],
  ['queue', 'it waits its turn'],
  ['queue_one', 'it waits, unless another one does'],
  ['queue_latest', 'it waits, and those that waited are skipped'],
  ['cancel', 'the other is asked to stop, it waits for that, and those that waited are skipped'],
  ['replace', 'the other is ended at once, it starts, and those that waited are skipped'],
] as const

function Delete({ job }: { job: Job }) {
  const { name } = job
  const [typed, setTyped] = useState('')
  const counted = useCount({ path: '/runs/cancel', body: { matching: { job: name } } })
  const change = remove(name, job.status.etag)
  const here = useRef({ path: path.peek(), session: session.peek() })
  return (
    <Ask
      title={`Delete ${name}`}
      says={
        <>
          The job is deleted and makes no more runs.{' '}
          {counted.found?.count === 0 ? (
            <b>No run of it is under way or waits.</b>
          ) : (
            <>
              <Counted of={counted} one="run of it has not ended" many="runs of it have not ended" />: an attempt under way goes on to its end and is not tried again, and all others are cancelled.
            </>
          )}{' '}
          A deletion cannot be undone: to have the job back, make it anew.
        </>
      }
      wont="Runs that have ended stay until they expire."
      button="Delete"
      grave
      ready={typed === name}
      act={async () => {
        await carry(change)
        // Who has gone elsewhere meanwhile stays there.
        if (path.peek() === here.current.path && session.peek() === here.current.session) go(to('jobs'))
        return `The job ${name} is deleted.`
      }}
      look={seen(name)}
      terminal={{ command: belfry(['job', 'delete', name]), change, loose: true }}
    >
      <label class="field">
        <span>
          Type <code>{name}</code> to delete it
        </span>
        <input type="text" value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
    </Ask>
  )
}
