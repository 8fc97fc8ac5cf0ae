// A run is asked for once more, with another payload.
import './app'
import { useState } from 'preact/hooks'
import { carryOnce, trigger } from './acts'
import { bytes, get, Refusal } from './api'
import { Ask } from './dialog'
import { pretty } from './json'
import { useLive } from './live'
import type { Job, Run } from './model'
import { to, withQuery } from './router'
import { belfry } from './terminal'
import { Refused, RunLink } from './ui'
import { parse, write } from './value'

const most = 256 << 10 // beyond this nobody edits by hand

/** Again asks for a new run of a job with the payload of an earlier one, as it is edited. */
export function Again({ run }: { run: Run }) {
  const name = run.job
  const given = useLive('payload to edit of ' + run.id, async (stop) => {
    const { data, headers } = await bytes(`/runs/${encodeURIComponent(run.id)}/payload`, {}, stop)
    return { text: new TextDecoder().decode(data), ofJob: headers.get('Belfry-Payload') === 'job' }
  }, 0)
  const job = useLive('job to run again ' + name, async (stop) => (await get<Job>('/jobs/' + encodeURIComponent(name), {}, stop)).data, 5000)
  const gone = job.error instanceof Refusal && job.error.problem.status === 404
  const [typed, setTyped] = useState<string>()
  const [ignorePause, setIgnorePause] = useState(false)
  const large = (given.data?.text.length ?? 0) > most
  const text = (typed ?? (given.data && !large ? pretty(given.data.text) : '')).trim()
  const wrong = text !== '' && !isJSON(text)
  const paused = Boolean(job.data?.paused)
  const payload = wrong || !text ? '' : write(parse(text))
  const overlap = run.overlap === 'allow' || job.data?.overlap !== undefined ? run.overlap : undefined // of a job without one the server takes none but allow
  const change = trigger(name, { payload, ignorePause: paused && ignorePause, overlap })
  const unread = given.error !== undefined && typed === undefined
  return (
    <Ask
      title="Run again with changes"
      says={
        gone ? (
          <>The job {name} is gone, so no run of it can be made. This run stays as it is.</>
        ) : (
          <>
            A new run of {name} is made now, by the job as it stands{job.data && job.data.status.generation !== run.generation && run.generation > 0 && <>, which was changed since this run</>}.
            {overlap && ` It goes by the policy ${overlap} in place of its job’s, as this run did.`}
            {paused && !ignorePause && ' The job is paused: the run is held until the job is resumed.'}
          </>
        )
      }
      wont={`${run.id} stays as it is: its state, its attempts, its log.`}
      button="Run again"
      missing={gone ? 'The job is gone.' : !given.data && !unread ? 'The payload is being read.' : wrong ? 'The payload is not JSON.' : undefined}
      act={async () => {
        const { made, again } = await carryOnce<Run>(change)
        return (
          <>
            {again ? <>The run of your earlier request, of which nobody knew what had become: </> : <>Accepted: </>}
            <a href={withQuery(to('runs', made.id), { from: run.id })}>{made.id}</a>. It was made from <RunLink id={run.id} />.
          </>
        )
      }}
      look={{ href: withQuery(to('runs'), { job: name }), text: 'runs of ' + name }}
      terminal={{ command: belfry(['job', 'trigger', name], { payload, 'ignore-pause': paused && ignorePause, overlap }), change }}
    >
      {!gone && (
        <>
          <label class="field">
            <span>Payload, as JSON; empty for that of the job{given.data?.ofJob && '. This run had that of its job'}</span>
            <textarea rows={Math.max(4, Math.min(16, text.split('\n').length + 1))} value={typed ?? text} spellcheck={false} aria-invalid={wrong ? 'true' : undefined} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
          {wrong && (
            <p class="wrong" role="alert">
              This is not JSON. A text stands in quotes: "text".
            </p>
          )}
          {large && typed === undefined && <p class="note">The payload of this run is too large to be edited here. Without another one, the new run has that of the job.</p>}
          <Refused error={given.error} small />
          {paused && (
            <label>
              <input type="checkbox" checked={ignorePause} onChange={(event) => setIgnorePause(event.currentTarget.checked)} /> Start it although the job is paused. The job stays paused.
            </label>
          )}
        </>
      )}
    </Ask>
  )
}

const isJSON = (s: string): boolean => {
  try {
    JSON.parse(s)
    return true
  } catch {
    return false
  }
}
