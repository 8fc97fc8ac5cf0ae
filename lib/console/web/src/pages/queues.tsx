// What waits in the queues, who works on them, and whether the server is well.
import { get, getAt, outside, Refusal } from '../api'
import { now } from '../clock'
import { useLive } from '../live'
import type { Check, Page, Queue, Worker } from '../model'
import { parse } from '../time'
import { Ago, Command, Empty, pending, Refused, State, Waiting } from '../ui'

const priorities = ['high', 'normal', 'low']

export function Queues() {
  const queues = useLive('queues', async (stop) => (await get<Page<Queue>>('/queues', {}, stop)).data.items, undefined, ['queues'])
  const workers = useLive('workers', async (stop) => (await get<Page<Worker>>('/workers', {}, stop)).data.items)
  const ready = useLive('ready', checks, 10_000)
  const deepest = Math.max(1, ...(queues.data ?? []).flatMap((q) => priorities.map((p) => sum(q, p))))
  return (
    <section class="page">
      <header class="bar">
        <h1>Queues and workers</h1>
      </header>
      <Refused error={queues.error} />
      {!queues.data && pending(queues.error) && <Waiting />}
      {queues.data?.length === 0 && <Empty command="belfry queue list">This token’s tenant has no queue of its own.</Empty>}
      <div class="cards">
        {queues.data?.map((q) => (
          <article key={q.name} class="card" aria-label={'Queue ' + q.name}>
            <h2>
              {q.name}
              {q.remote && <span class="tag">remote workers only</span>}
              {q.shared && <span class="tag">shared</span>}
            </h2>
            <table class="depth">
              <thead>
                <tr>
                  <th scope="col">Priority</th>
                  <th scope="col" class="num h-ready">
                    ready
                  </th>
                  <th scope="col" class="num h-delayed">
                    delayed
                  </th>
                  <th scope="col" class="num h-taken">
                    taken
                  </th>
                  <th scope="col">
                    <span class="hidden">As a bar</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {priorities.map((p) => {
                  const d = q.priorities[p] ?? { ready: 0, delayed: 0, taken: 0 }
                  return (
                    <tr key={p}>
                      <th scope="row">{p}</th>
                      <td class="num">{d.ready.toLocaleString('en')}</td>
                      <td class="num">{d.delayed.toLocaleString('en')}</td>
                      <td class="num">{d.taken.toLocaleString('en')}</td>
                      <td class="bar">
                        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                          <rect class="b-taken" x="0" y="0" height="8" width={(d.taken / deepest) * 100} />
                          <rect class="b-ready" x={(d.taken / deepest) * 100} y="0" height="8" width={(d.ready / deepest) * 100} />
                          <rect class="b-delayed" x={((d.taken + d.ready) / deepest) * 100} y="0" height="8" width={(d.delayed / deepest) * 100} />
                        </svg>
                      </td>
                    </tr>
                  )
                })}
              </tbody>
            </table>
            <p class="fine">
              {q.workers === 0 ? <b class="warn">No worker serves it.</b> : `${q.workers} ${q.workers === 1 ? 'worker serves' : 'workers serve'} it.`}
            </p>
            {q.lacking && q.lacking.length > 0 && (
              <p class="note bad">
                Runs wait for what no worker offers: <b class="said">{q.lacking.join(', ')}</b>
              </p>
            )}
          </article>
        ))}
      </div>
      <h2>Workers</h2>
      <Refused error={workers.error} small />
      {workers.data?.length === 0 && <Empty command="belfry worker --help">No worker is known here.</Empty>}
      {workers.data && workers.data.length > 0 && (
        <div class="scroller" tabIndex={0} role="region" aria-label="Workers">
          <table>
            <thead>
              <tr>
                <th scope="col">Worker</th>
                <th scope="col">Queue</th>
                <th scope="col">Busy</th>
                <th scope="col">Started</th>
                <th scope="col">Last seen</th>
                <th scope="col">Handlers and labels</th>
              </tr>
            </thead>
            <tbody>
              {workers.data.map((w) => (
                <tr key={w.queue + ' ' + w.id}>
                  <td>
                    <code>{w.id}</code>
                    {w.remote && <span class="tag">remote</span>}
                  </td>
                  <td>{w.queue}</td>
                  <td class="busy">
                    <meter min={0} max={Math.max(1, w.concurrency)} value={w.running} aria-label={`${w.running} of ${w.concurrency} attempts`} /> {w.running} of {w.concurrency}
                  </td>
                  <td>
                    <Ago at={w.started_at} />
                  </td>
                  <td>{w.remote ? <Heard at={w.seen_at} /> : 'this process'}</td>
                  <td class="said">
                    {[...(w.handlers ?? []), ...Object.entries(w.labels ?? {}).map(([k, v]) => k + '=' + v)].join(', ')}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <h2>Checks of the server</h2>
      <Refused error={ready.error} small />
      <Checks of={ready.data} />
      <details class="cli">
        <summary>In a terminal</summary>
        <Command text="belfry queue list" />
        <Command text="belfry queue workers" />
        <Command text="belfry doctor" />
      </details>
    </section>
  )
}

function sum(q: Queue, priority: string): number {
  const d = q.priorities[priority]
  return d ? d.ready + d.delayed + d.taken : 0
}

function Heard({ at }: { at: string | undefined }) {
  const quiet = now.value - parse(at) > 60_000
  return (
    <span class={quiet ? 'warn' : undefined}>
      <Ago at={at} />
    </span>
  )
}

/** checks asks what the server looked at of itself. One that is not ready answers the same with 503. */
export async function checks(stop: AbortSignal): Promise<Check[]> {
  try {
    return (await getAt<{ checks: Check[] }>(outside('/readyz'), stop)).data.checks
  } catch (error) {
    if (error instanceof Refusal && 'checks' in error.problem) return error.problem.checks as Check[]
    throw error
  }
}

export function Checks({ of }: { of: Check[] | undefined }) {
  if (!of) return null
  return (
    <ul class="checks">
      {of.map((c) => (
        <li key={c.name}>
          <State of={c.state} /> <b>{c.name}</b> <span class="fine">{c.detail}</span>
        </li>
      ))}
    </ul>
  )
}
