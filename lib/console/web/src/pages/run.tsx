// One run: why it is where it is, its attempts in time, its log, payload and result.
import { useRef } from 'preact/hooks'
import { bytes, get } from '../api'
import { now } from '../clock'
import { fieldText } from '../json'
import { Log } from '../log'
import { useLive } from '../live'
import { isOpen, lastError, type Job, type Run as Data, type Wait } from '../model'
import { query, to, withQuery } from '../router'
import { Attempts, Steps } from '../steps'
import { began, keep, runOf } from '../store'
import { parse, span } from '../time'
import { Timeline } from '../timeline'
import { Ago, Command, Instant, Labels, pending, Refused, RunLink, State, took, Waiting } from '../ui'
import { Raw } from '../raw'
import { RunActs } from '../runacts'
import { quoted } from '../quoted'
import { late } from '../words'

const ordinary = ['log', 'result', 'payload', 'record'] as const
const ofWorkflow = ['steps', 'payload', 'record'] as const

export function Run({ id }: { id: string }) {
  const asked = useRef(0)
  const live = useLive('run ' + id, async (stop) => {
    asked.current = began()
    const answer = await get<Data>('/runs/' + encodeURIComponent(id), {}, stop)
    keep([answer.data], asked.current)
    return answer
  }, undefined, ['run:' + id])
  const name = live.data?.data.job ?? ''
  const job = useLive(name && 'job ' + name, async (stop) => (await get<Job>('/jobs/' + encodeURIComponent(name), {}, stop)).data, 30_000)
  if (!live.data) {
    return (
      <section class="page">
        <header class="bar">
          <h1>Run</h1>
          <code class="id">{id}</code>
        </header>
        <Refused error={live.error} />
        {pending(live.error) && <Waiting />}
      </section>
    )
  }
  const run = runOf(id)?.value ?? live.data.data
  const where = job.data?.schedule?.timezone
  const tabs = run.steps ? ofWorkflow : ordinary
  const chosen = tabs.find((t) => t === query.value.get('tab')) ?? tabs[0]
  const step = query.value.get('step')
  // The address tells of it, which a run again with changes leads to: the server does not know.
  const made = query.value.get('from')
  const from = made?.startsWith(run.job + '~') && made !== run.id ? made : undefined
  const text = live.data.text
  return (
    <section class="page">
      <header class="bar">
        <h1>
          <span class="kind">Run of</span> <a href={to('jobs', run.job)}>{run.job}</a>
        </h1>
        <State of={run.state} />
        <code class="id">{run.id}</code>
        <RunActs run={run} guarantee={job.data?.guarantee} />
      </header>
      <Refused error={live.error} />
      {live.data.data.discarded && <Discarded of={live.data.data.discarded} where={where} />}
      <Why run={run} waiting={isOpen(run.state) ? live.data.data.waiting : undefined} where={where} tries={job.data?.retry?.max_attempts} />
      <Timeline run={run} where={where} />
      <dl class="facts">
        <Fact name="Due">
          <Instant at={run.nominal_time} where={where} /> <Ago at={run.nominal_time} />
        </Fact>
        {!Number.isNaN(late(run)) && <Fact name="Started late by">{span(Math.max(0, late(run)))}</Fact>}
        <Fact name="Triggered by">
          {run.callback ? (
            run.callback.event === 'missed' ? (
              <>
                missed fires, which stand in <RunLink id={run.callback.run} />
                {more(run.callback.count)}
              </>
            ) : (
              <>
                <RunLink id={run.callback.run} />, which has {run.callback.event}
                {more(run.callback.count)}
              </>
            )
          ) : run.trigger === 'schedule' ? (
            'its schedule'
          ) : (
            'a request'
          )}
        </Fact>
        {run.overlap && <Fact name="Overlap">{run.overlap}, in place of its job’s</Fact>}
        {from && (
          <Fact name="Made from">
            <RunLink id={from} />
          </Fact>
        )}
        {run.attempt > 0 && (
          <Fact name="Attempt">
            {run.attempt}
            {job.data?.retry && ' of ' + job.data.retry.max_attempts}
          </Fact>
        )}
        <Fact name="Priority">{run.priority ?? '–'}</Fact>
        {run.worker && <Fact name="Worker">{run.worker}</Fact>}
        <Fact name="Definition">
          {run.generation === 0 ? 'not bound yet' : job.data && job.data.status.generation !== run.generation ? 'an earlier one' : 'the current one'}
        </Fact>
        {!run.steps && <Fact name="Fence">{fieldText(text, 'fence') ?? run.fence}</Fact>}
        {run.trace && <Fact name="Trace">{run.trace}</Fact>}
      </dl>
      <Labels of={run.labels} />
      <Attempts of={run.attempts} where={where} />
      <nav class="tabs" aria-label="What to show">
        {tabs.map((t) => (
          <a key={t} href={withQuery(to('runs', id), { tab: t === tabs[0] ? undefined : t, from })} aria-current={t === chosen ? 'page' : undefined}>
            {t}
          </a>
        ))}
      </nav>
      {chosen === 'log' && run.attempt === 0 && !isOpen(run.state) && <p class="nothing">It never started, so it has no log.</p>}
      {chosen === 'log' && (run.attempt > 0 || isOpen(run.state)) && <Log key={run.id + ' ' + run.attempt} run={run.id} attempt={run.attempt} state={run.state} />}
      {chosen === 'steps' && <Steps run={run} where={where} job={job.data} />}
      {chosen === 'result' && <Result text={text} run={run} />}
      {chosen === 'payload' && <Payload key={run.id} id={run.id} />}
      {chosen === 'record' && <Raw text={text} label="The run as the API returns it" />}
      <details class="cli">
        <summary>In a terminal</summary>
        <Command text={`belfry run get ${run.id}`} />
        {isOpen(run.state) && <Command text={`belfry run why ${run.id}`} />}
        {run.steps && <Command text={`belfry run steps ${run.id}`} />}
        {(!run.steps || step) && <Command text={`belfry run logs ${run.id}` + (run.steps && step ? ' --step ' + quoted(step) : '')} />}
      </details>
    </section>
  )
}

/** Discarded tells who has settled a dead letter, and what they had to say. */
function Discarded({ of, where }: { of: NonNullable<Data['discarded']>; where: string | undefined }) {
  return (
    <p class="note">
      It was discarded <Ago at={of.at} />, at <Instant at={of.at} where={where} />
      {of.by && <> by {of.by}</>}
      {of.note && <>: <b class="said">{of.note}</b></>}.
    </p>
  )
}

/** Why says what holds the run up, in the server's words, what comes first standing first; or how it ended. */
function Why({ run, waiting, where, tries }: { run: Data; waiting: Wait[] | undefined; where: string | undefined; tries: number | undefined }) {
  const error = lastError(run)
  if (!waiting?.length) {
    return (
      <div class="verdict">
        <Verdict run={run} where={where} tries={tries} />
      </div>
    )
  }
  return (
    <>
      <ol class="waits" aria-label="Why it has not ended">
        {waiting.map((w) => (
          <li key={w.code}>
            {w.text}
            {(w.until || w.who) && (
              <div class="fine">
                {w.until && (
                  <>
                    until <Instant at={w.until} where={where} /> <Ago at={w.until} />
                  </>
                )}
                {w.until && w.who && ' · '}
                {w.who}
              </div>
            )}
          </li>
        ))}
      </ol>
      {error && (
        <p class="verdict">
          Last error: <b class="said">{error}</b>
        </p>
      )}
    </>
  )
}

/** more says how many others a callback with a window tells of, beside the first. */
function more(count = 1) {
  return count > 1 && `, and ${count - 1} more`
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Verdict is one sentence: why the run has not ended, or how it did. */
function Verdict({ run, where, tries }: { run: Data; where: string | undefined; tries: number | undefined }) {
  const error = lastError(run)
  const why = error ? <b class="said">{error}</b> : null
  switch (run.state) {
    case 'scheduled':
      return (
        <>
          Its time has not come: due <Instant at={run.nominal_time} where={where} /> (<Ago at={run.nominal_time} />).
        </>
      )
    case 'queued':
      return parse(run.nominal_time) > now.value ? (
        <>
          It is with its queue already and starts at <Instant at={run.nominal_time} where={where} /> (<Ago at={run.nominal_time} />).
        </>
      ) : (
        <>It waits in its queue for a worker with room.</>
      )
    case 'waiting':
      return <>It waits in line until other runs of its job have ended.</>
    case 'running':
      if (run.steps) return <>Its steps run, since {took(run.started_at, undefined)}.</>
      return (
        <>
          It is running: attempt {run.attempt}, for {took(run.started_at, undefined)}
          {run.worker && <> on {run.worker}</>}.
        </>
      )
    case 'retrying':
      return (
        <>
          Attempt {run.attempt} failed: {why}. The next one starts <Ago at={run.next_attempt_at} />, at <Instant at={run.next_attempt_at} where={where} />.
        </>
      )
    case 'succeeded':
      return (
        <>
          It succeeded{run.attempt > 1 && <> with attempt {run.attempt}</>}, after {took(run.attempts.at(-1)?.started_at ?? run.started_at, run.ended_at)}, <Ago at={run.ended_at} />.
        </>
      )
    case 'dead':
      return (
        <>
          It was given up after {run.attempt}
          {tries ? ` of ${Math.max(tries, run.attempt)}` : ''} attempts: {why ?? run.reason}.
        </>
      )
    case 'failed':
      if (run.steps) return <>It failed: <b class="said">{run.reason}</b>.</>
      return <>It failed for good, since another attempt would fail the same way: {why ?? run.reason}.</>
    case 'unknown':
      return <>Nobody knows whether it had its effect, and it is not to happen twice: {why ?? run.reason ?? 'its worker was lost'}.</>
    case 'cancelled':
      if (run.why) return <Skipped since={run.why} was="cancelled" />
      return <>It was cancelled{run.reason && <>: <b class="said">{run.reason}</b></>}.</>
    case 'skipped':
      if (run.why) return <Skipped since={run.why} />
      return (
        <>
          It did not run: <b class="said">{run.reason || 'it was missed'}</b>
          {run.skipped && run.skipped.count > 1 && <>. It stands for {run.skipped.count} fires</>}.
        </>
      )
  }
}

/** Skipped says in the server's words what a run was skipped for, or gave way to, and leads to these runs. */
function Skipped({ since, was = 'skipped' }: { since: NonNullable<Data['why']>; was?: string }) {
  return (
    <>
      It was {was}: {since.text}.
      {since.in_the_way.length > 0 && (
        <ul class="in-the-way" aria-label={['queue_latest', 'cancel', 'replace'].includes(since.policy) ? 'Took its place' : since.policy === 'skip' ? 'In progress when it was due' : 'In its way'}>
          {since.in_the_way.map((id) => (
            <li key={id}>
              <RunLink id={id} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Result({ text, run }: { text: string; run: Data }) {
  const found = fieldText(text, 'result')
  if (run.result_size)
    return (
      <p class="note">
        The result has {run.result_size} bytes{run.result_type && <> of {run.result_type}</>}. <code>belfry run result {run.id}</code> prints it.
      </p>
    )
  if (found === undefined) return <p class="nothing">{isOpen(run.state) ? 'The result appears when the run has succeeded.' : 'No result was kept.'}</p>
  return (
    <>
      {run.result_cut && <p class="note">Only the beginning was kept.</p>}
      {run.result_type?.endsWith(';base64') && <p class="note">It is not text: {run.result_type}</p>}
      <Raw text={found} label="Result" />
    </>
  )
}

function Payload({ id }: { id: string }) {
  const live = useLive('payload ' + id, (stop) => bytes(`/runs/${encodeURIComponent(id)}/payload`, {}, stop), 0)
  if (!live.data) return pending(live.error) ? <Waiting /> : <Refused error={live.error} small />
  const { data, headers } = live.data
  if (!data.length) return <p class="nothing">This run has no payload.</p>
  return <Raw text={new TextDecoder().decode(data)} label={headers.get('Belfry-Payload') === 'job' ? 'Payload of the job' : 'Payload of this run'} />
}
