// The steps of a workflow's run: where each stands, and of the one that is chosen its attempts and its log.
import { get } from './api'
import { useLive } from './live'
import { Log } from './log'
import { isOpen, type Attempt, type Job, type Page, type Run, type Step } from './model'
import { query, to, withQuery } from './router'
import { StepActs } from './runacts'
import { Instant, pending, Refused, State, took, Waiting } from './ui'

export function Steps({ run, where, job }: { run: Run; where: string | undefined; job: Job | undefined }) {
  const live = useLive('steps ' + run.id + ' ' + run.state, async (stop) => (await get<Page<Step>>(`/runs/${encodeURIComponent(run.id)}/steps`, {}, stop)).data, isOpen(run.state) ? 2000 : 30_000, ['run:' + run.id])
  if (!live.data) return pending(live.error) ? <Waiting /> : <Refused error={live.error} small />
  const path = query.value.get('step')
  const chosen = live.data.items.find((s) => s.path === path)
  return (
    <>
      <Refused error={live.error} small />
      <div class="scroller steps" tabIndex={0} role="region" aria-label="Steps">
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">State</th>
              <th scope="col" class="num">
                Attempts
              </th>
              <th scope="col">Started</th>
              <th scope="col" class="num">
                Took
              </th>
              <th scope="col">Error</th>
            </tr>
          </thead>
          <tbody>
            {live.data.items.map((s) => (
              <Row key={s.path} step={s} run={run.id} where={where} at={s === chosen} />
            ))}
          </tbody>
        </table>
      </div>
      {chosen?.kind === 'task' ? (
        <One key={chosen.path} step={chosen} run={run} where={where} job={job} />
      ) : (
        <p class="nothing">{path && !chosen ? `There is no step ${path}.` : 'Choose a step to see its attempts and its log.'}</p>
      )}
    </>
  )
}

function Row({ step, run, where, at }: { step: Step; run: string; where: string | undefined; at: boolean }) {
  const names = step.path.split('/')
  const name = names.at(-1) ?? step.path
  return (
    <tr class={at ? 'at' : undefined}>
      <td class="step" style={{ paddingLeft: `${(names.length - 1) * 18 + 8}px` }}>
        {step.kind === 'task' ? (
          <a href={withQuery(to('runs', run), { step: step.path })} aria-label={step.path} aria-current={at ? 'true' : undefined} title={step.target}>
            {name}
          </a>
        ) : (
          <span>
            {name} <span class="fine">{step.kind}</span>
          </span>
        )}
      </td>
      <td>
        <State of={step.state} />
      </td>
      <td class="num">{step.attempt || ''}</td>
      <td>{step.started_at && <Instant at={step.started_at} where={where} />}</td>
      <td class="num">{step.started_at && (step.ended_at || step.state === 'running') && took(step.started_at, step.ended_at)}</td>
      <td class="said">
        {step.waits_until && <>waits until <Instant at={step.waits_until} where={where} /></>}
        {step.times_out_at && <>times out <Instant at={step.times_out_at} where={where} /></>}
        {[step.caught_by && `caught by ${step.caught_by}`, step.attempts.findLast((a) => a.error)?.error ?? step.reason].filter(Boolean).join(': ')}
      </td>
    </tr>
  )
}

function One({ step, run, where, job }: { step: Step; run: Run; where: string | undefined; job: Job | undefined }) {
  return (
    <section class="one" aria-label={'Step ' + step.path}>
      <h2>
        {step.path} <State of={step.state} />
      </h2>
      <StepActs run={run} step={step} job={job} />
      {step.target && <p class="fine">{step.target}</p>}
      <Attempts of={step.attempts} where={where} />
      {step.state === 'pending' ? (
        <p class="nothing">It waits for other steps.</p>
      ) : step.attempt === 0 && !isOpen(step.state) ? (
        <p class="nothing">It never started, so it has no log.</p>
      ) : (
        <Log key={step.path + ' ' + step.attempt} run={run.id} step={step.path} attempt={step.attempt} state={step.state} />
      )}
    </section>
  )
}

export function Attempts({ of, where }: { of: Attempt[]; where: string | undefined }) {
  if (!of.length) return null
  return (
    <div class="scroller" tabIndex={0} role="region" aria-label="Attempts">
      <table>
        <thead>
          <tr>
            <th scope="col">Attempt</th>
            <th scope="col">Outcome</th>
            <th scope="col">Started</th>
            <th scope="col" class="num">
              Took
            </th>
            <th scope="col">Error</th>
          </tr>
        </thead>
        <tbody>
          {of.map((a) => (
            <tr key={a.attempt + ' ' + a.started_at}>
              <td>{a.attempt}</td>
              <td>
                <State of={a.outcome} />
              </td>
              <td>
                <Instant at={a.started_at} where={where} />
              </td>
              <td class="num">{took(a.started_at, a.ended_at)}</td>
              <td class="said">{a.error}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
