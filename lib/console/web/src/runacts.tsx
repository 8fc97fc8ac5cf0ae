// What can be done with a run: cancel, retry, discard.
import { useState } from 'preact/hooks'
import { cancel, carry, retry } from './acts'
import { Discard, Field, useUntil } from './bulk'
import { Ask, Button, open } from './dialog'
import { lazy } from './lazy'
import { Trigger } from './jobacts'
import { isOpen, type Job, type Run, type Step } from './model'
import { to } from './router'
import { runOf } from './store'
import { belfry } from './terminal'
import { RunLink } from './ui'

const seen = (run: string) => ({ href: to('runs', run), text: 'run ' + run })

/** RunActs are the buttons of a run's page. */
export function RunActs({ run, guarantee }: { run: Run; guarantee: string | undefined }) {
  if (isOpen(run.state)) {
    return (
      <div class="acts">
        <Button scope="run" act={() => open(<Cancel run={run} guarantee={guarantee} />)}>
          Cancel…
        </Button>
        <Repeat run={run} />
      </div>
    )
  }
  return (
    <div class="acts">
      <Button scope="run" letter="r" why={stands(run)} act={() => open(<Retry run={run} />)}>
        Retry…
      </Button>
      <Repeat run={run} />
      {(run.state === 'dead' || run.state === 'failed') && !run.discarded && (
        <Button scope="run" act={() => open(<Discard of={{ runs: [run.id], name: run.id }} />)}>
          Discard…
        </Button>
      )}
    </div>
  )
}

const Again = lazy(() => import('./again').then((m) => m.Again))

/** Repeat asks for another run, which this one says the payload of. */
function Repeat({ run }: { run: Run }) {
  return (
    <Button scope="run" act={() => open(<Again run={run} />)}>
      Run again…
    </Button>
  )
}

/** stands is why a run cannot be retried whatever is asked for. */
function stands(run: Run): string | undefined {
  if (run.state === 'skipped' && run.skipped) return 'This run stands for missed fires and never ran. Trigger the job instead.'
  if (run.steps && run.started_at) return 'The steps of this workflow have begun, so the run cannot be retried. Trigger the job instead.'
  return undefined
}

/** StepActs are what can be done about one step of a workflow's run. */
export function StepActs({ run, step, job }: { run: Run; step: Step; job: Job | undefined }) {
  if (isOpen(run.state)) {
    return step.state !== 'pending' && !isOpen(step.state) ? null : (
      <div class="acts">
        <Button scope="run" act={() => open(<Cancel run={run} guarantee={undefined} />)}>
          Cancel the whole run…
        </Button>
        <span class="fine">A step is not cancelled by itself.</span>
      </div>
    )
  }
  return (
    <div class="acts">
      <Button scope="run" why={job ? undefined : 'The job is not there any more, so there is nothing to trigger.'} act={() => open(job ? <Trigger job={job} /> : <></>)}>
        Run the workflow again…
      </Button>
      <span class="fine">A step of a run that has ended is not run again by itself.</span>
    </div>
  )
}

function Cancel({ run: given, guarantee }: { run: Run; guarantee: string | undefined }) {
  const run = runOf(given.id)?.value ?? given // it goes on meanwhile
  const [text, setText] = useState('')
  const reason = text.trim()
  const change = cancel(run.id, reason)
  const running = run.state === 'running'
  const ended = !isOpen(run.state)
  return (
    <Ask
      title="Cancel this run"
      says={
        ended ? (
          <>{run.id} has ended meanwhile: it is <i>{run.state.replaceAll('_', ' ')}</i>.</>
        ) : running && run.steps ? (
          <>Steps of {run.id} that run are told to stop, and no other step starts. The run is <i>cancelled</i> when they have stopped.</>
        ) : running ? (
          <>
            The worker of {run.id} is told to stop its target. A run that succeeds before it stops is <i>succeeded</i>{guarantee === 'at_most_once' && <>, and one whose worker is lost is <i>unknown</i></>}.
          </>
        ) : (
          <>{run.id} ends now, and its target is not called{run.attempt > 0 && ' again'}.</>
        )
      }
      wont={`What ${run.steps ? 'its steps have' : 'the target has'} done already is not taken back. Other runs of the job and its schedule stay as they are.`}
      button="Cancel the run"
      missing={ended ? 'The run has ended, so there is nothing to cancel.' : undefined}
      grave
      act={async () => {
        const now = await carry<Run>(change)
        return isOpen(now.state) ? <>Told to stop: <RunLink id={run.id} /></> : <>The run <RunLink id={run.id} /> is {now.state}.</>
      }}
      look={seen(run.id)}
      terminal={{ command: belfry(['run', 'cancel', run.id], { reason }), change }}
    >
      <Field name="Reason" value={text} set={setText} most={120} />
    </Ask>
  )
}

function Retry({ run }: { run: Run }) {
  const [agreed, setAgreed] = useState(false)
  const forced = run.state === 'unknown' || run.state === 'succeeded'
  const until = useUntil([], run.ended_at)
  const change = retry(run.id, forced, until)
  return (
    <Ask
      title={forced ? 'Retry by force' : 'Retry this run'}
      says={<>{run.id} is queued again under its own name, with a new budget of attempts and the newest definition of its job.</>}
      wont="Its earlier attempts, their logs and errors stay. No other run is made, and the schedule stays as it is."
      button={forced ? 'Retry by force' : 'Retry'}
      grave={forced}
      ready={!forced || agreed}
      act={async () => {
        await carry(change)
        return <>Queued again: <RunLink id={run.id} /></>
      }}
      look={seen(run.id)}
      terminal={{ command: belfry(['run', 'retry', run.id], { force: forced, 'ended-before': until }), change }}
    >
      {forced && (
        <>
          <p class="note bad">
            {run.state === 'unknown'
              ? 'Nobody knows whether this run had its effect: it may have happened. It was to start at most once, and a retry may make it happen a second time, such as a second payment.'
              : 'This run succeeded: its effect has happened. A retry makes it happen a second time.'}
          </p>
          <label>
            <input type="checkbox" checked={agreed} onChange={(event) => setAgreed(event.currentTarget.checked)} /> I have looked, and a second effect is acceptable.
          </label>
        </>
      )}
    </Ask>
  )
}
