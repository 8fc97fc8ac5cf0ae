// The tools: what a schedule, a retry policy or a number of workers comes to, before anything runs; and what a queue holds.
import '../app'
import { lazy } from '../lazy'
import { to } from '../router'
import { Empty } from '../ui'

const Cron = lazy(() => import('./toolcron').then((m) => m.Cron))
const Scaling = lazy(() => import('./toolscaling').then((m) => m.Scaling))
const Capacity = lazy(() => import('./toolcapacity').then((m) => m.Capacity))
const Queue = lazy(() => import('./toolqueue').then((m) => m.QueueTool))
const Once = lazy(() => import('./toolonce').then((m) => m.Once))
const Retry = lazy(() => import('./toolretry').then((m) => m.Retry))

const tools = [
  { name: 'cron', title: 'Cron', says: 'what an expression means, when it fires, and what other schedulers make of it', Page: Cron },
  { name: 'scaling', title: 'Workers', says: 'how deep a queue gets, how busy its workers are, and how long runs wait', Page: Scaling },
  { name: 'capacity', title: 'Capacity', says: 'what a load needs of a stack on AWS, what that costs, and which limit is reached first', Page: Capacity },
  { name: 'queue', title: 'Queue', says: 'which message is delayed, ready or taken, as it happens, and in which order made-up load is taken', Page: Queue },
  { name: 'retry', title: 'Retries', says: 'when attempts begin, when a run is given up, and who comes back at once', Page: Retry },
  { name: 'exactly-once', title: 'Exactly once', says: 'how often a target is called, and how often that has an effect, when something goes wrong', Page: Once },
]

export function Tools({ of }: { of: string }) {
  const tool = tools.find((t) => t.name === of)
  return (
    <section class="page tool">
      <header class="bar">
        <h1>{tool?.title ?? 'Tools'}</h1>
        {tool && <span class="fine">{tool.says}</span>}
      </header>
      {tools.length > 1 && tool && (
        <nav class="tabs" aria-label="Tools">
          {tools.map((t) => (
            <a key={t.name} href={to('tools', t.name)} aria-current={t === tool ? 'page' : undefined}>
              {t.title}
            </a>
          ))}
        </nav>
      )}
      {tool ? <tool.Page /> : of ? (
        <Empty>
          There is no tool {of}. <a href={to('tools')}>All tools</a>
        </Empty>
      ) : (
        <ul class="brief">
          {tools.map((t) => (
            <li key={t.name}>
              <a href={to('tools', t.name)}>{t.title}</a> <span class="fine">{t.says}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
