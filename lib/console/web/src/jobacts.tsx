// What can be done with a job: trigger, pause, resume, delete.
import { useState } from 'preact/hooks'
import { carry, carryOnce, pause, remove, resume, trigger, unpause } from './acts'
import { send } from './api'
import { Counted, Field, some, useStop } from './bulk'
import { Ask, atOnce, Button, open } from './dialog'
import { askAgain } from './live'
import type { Job, Run } from './model'
import { go, to, withQuery } from './router'
import { belfry, curl } from './terminal'
import { mine } from './time'
import { useCount } from './many'
import { RunLink } from './ui'

const seen = (job: string) => ({ href: to('jobs', job), text: 'job ' + job })

/** JobActs are the buttons of a job's page. */
export function JobActs({ job }: { job: Job }) {
  return (
    <div class="acts">
      <Button scope="run" letter="t" act={() => open(<Trigger job={job} />)}>
        Trigger…
      </Button>
      <Button scope="write" letter="p" act={() => (job.paused ? resumeNow(job) : pauseNow(job))}>
        {job.paused ? 'Resume' : 'Pause'}
      </Button>
      {job.paused && (
        <Button scope="write" act={() => open(<Reason job={job} />)}>
          Reason…
        </Button>
      )}
      <Button scope="write" act={() => open(<Delete job={job} />)}>
        Delete…
      </Button>
    </div>
  )
}

function pauseNow({ name }: Job) {
  return atOnce(() => carry<Job>(pause(name)), <>The job {name} is paused. It makes no runs until it is resumed.</>, seen(name), {
    make: (paused) => carry(unpause(name, paused.status.etag ?? '')),
    done: <>The job {name} is as it was before the pause.</>,
  })
}

function resumeNow({ name, status }: Job) {
  return atOnce(() => carry<Job>(resume(name)), <>The job {name} is resumed.</>, seen(name), {
    make: () => carry(pause(name, status.paused_reason)),
    done: <>The job {name} is paused again.</>,
  })
}

/** Reason says why a job is paused. */
function Reason({ job }: { job: Job }) {
  const [reason, setReason] = useState(job.status.paused_reason ?? '')
  const change = pause(job.name, reason.trim())
  return (
    <Ask
      title={`Why is ${job.name} paused?`}
      says="The job stays paused. Everybody who looks at it sees the reason."
      wont="No run starts or stops."
      button="Keep the reason"
      act={async () => {
        await carry(change)
        return 'The reason is kept.'
      }}
      look={seen(job.name)}
      terminal={{ command: belfry(['job', 'pause', job.name], { reason: reason.trim() }), change }}
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

function Trigger({ job }: { job: Job }) {
  const { name } = job
  const [later, setLater] = useState(false)
  const [when, setWhen] = useState('')
  const [payload, setPayload] = useState('')
  const [ignorePause, setIgnorePause] = useState(false)
  const text = payload.trim()
  const wrong = text !== '' && !isJSON(text)
  const ms = later ? new Date(when).getTime() : NaN
  const at = Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
  const ready = !wrong && (!later || at !== undefined)
  const change = trigger(name, { at, payload: wrong ? '' : text, ignorePause: job.paused && ignorePause })
  return (
    <Ask
      title={`Trigger ${name}`}
      says={
        <>
          One run of {name} is made, {later ? 'which starts at the time below' : 'which starts now'}
          {job.paused && !ignorePause && '. The job is paused, so the run is held until the job is resumed'}.
        </>
      }
      wont="The schedule stays as it is: its next fires come all the same."
      button="Trigger"
      ready={ready}
      act={async () => {
        const run = await carryOnce<Run>(change)
        return (
          <>
            Accepted: <RunLink id={run.id} />
          </>
        )
      }}
      look={{ href: withQuery(to('runs'), { job: name }), text: 'runs of ' + name }}
      terminal={{ command: belfry(['job', 'trigger', name], { at, payload: wrong ? '' : text, 'ignore-pause': job.paused && ignorePause }), change }}
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
            <input type="datetime-local" value={when} aria-label={`Time, as clocks show it in ${mine}`} onInput={(event) => setWhen(event.currentTarget.value)} /> <span class="fine">{mine}</span>
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
      {job.paused && (
        <label>
          <input type="checkbox" checked={ignorePause} onChange={(event) => setIgnorePause(event.currentTarget.checked)} /> Start it although the job is paused. The job stays paused.
        </label>
      )}
    </Ask>
  )
}

function Delete({ job }: { job: Job }) {
  const { name } = job
  const [typed, setTyped] = useState('')
  const counted = useCount({ path: '/runs/cancel', body: { matching: { job: name } } })
  const change = remove(name, job.status.etag)
  return (
    <Ask
      title={`Delete ${name}`}
      says={
        <>
          The job is deleted and makes no more runs. <Counted of={counted} one="run of it has not ended" many="runs of it have not ended" />
          {counted.found?.count === 0 ? '.' : ': an attempt under way goes on to its end and is not tried again, and all others are cancelled.'}
        </>
      }
      wont="Runs that have ended stay until they expire. A deletion cannot be undone: to have the job back, make it anew."
      button="Delete"
      grave
      ready={typed === name}
      act={async () => {
        await carry(change)
        go(to('jobs'))
        return `The job ${name} is deleted.`
      }}
      look={seen(name)}
      terminal={{ command: belfry(['job', 'delete', name]), change }}
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

/** mostJobs is how many jobs one dialog changes: each takes a request. */
export const mostJobs = 1000

/** PauseMany pauses or resumes jobs one after the other, until one is refused. */
export function PauseMany({ jobs, resumes }: { jobs: string[]; resumes: boolean }) {
  const [text, setText] = useState('')
  const [done, setDone] = useState(0)
  const [at, setAt] = useState('')
  const stop = useStop()
  const reason = text.trim()
  const change = (job: string) => (resumes ? resume(job) : pause(job, reason))
  const word = resumes ? 'resumed' : 'paused'
  const left = jobs.length - done
  return (
    <Ask
      title={resumes ? 'Resume selected jobs' : 'Pause selected jobs'}
      says={
        <>
          <b>{some(left, 'job', 'jobs')}</b> {left === 1 ? 'is' : 'are'} {word}, by one request each, until one is refused. {resumes ? 'They make runs again from now on, and runs on demand that were held start.' : 'They make no runs until they are resumed. Those that are paused already get this reason.'}
        </>
      }
      wont={resumes ? 'Fires of the pause are not made up.' : 'What has started goes on, with its retries. Fires of the pause are not made up.'}
      button={`${resumes ? 'Resume' : 'Pause'} ${left.toLocaleString('en')}`}
      ready={left > 0}
      act={async () => {
        stop.current = false
        let so = done
        try {
          for (; so < jobs.length && !stop.current; setDone(++so)) {
            setAt(jobs[so] ?? '')
            await send(change(jobs[so] ?? ''))
            setAt('')
          }
        } finally {
          askAgain()
        }
        return `${some(so, 'job is', 'jobs are')} ${word}${so < jobs.length ? ', then it was stopped' : ''}.`
      }}
      look={{ href: to('jobs'), text: 'jobs' }}
      terminal={{
        command: belfry(['job', resumes ? 'resume' : 'pause', ...jobs], resumes ? {} : { reason }),
        change: `for job in ${jobs.join(' ')}; do ${curl(change('$job')).replace('%24job', '$job')}; done`,
      }}
    >
      {!resumes && <Field name="Reason" value={text} set={setText} most={500} />}
      {(done > 0 || at) && (
        <p class="progress">
          <progress max={jobs.length} value={done} aria-label="Done so far" /> {done.toLocaleString('en')} of {some(jobs.length, 'job', 'jobs')} {word}
          {at && <>, at {at}</>}.{' '}
          <button type="button" class="plain" onClick={() => (stop.current = true)}>
            Stop
          </button>
        </p>
      )}
    </Ask>
  )
}
