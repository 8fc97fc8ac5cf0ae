// What has run for longest, and what has waited for longest.
import '../app'
import { get } from '../api'
import { now } from '../clock'
import { useLive } from '../live'
import type { Page, Run } from '../model'
import { began, keep, runOf } from '../store'
import { parse, span } from '../time'
import { RunLink } from '../ui'
import { lasted } from '../words'
import { soon } from './overview'

const most = 200 // runs in progress that are looked at
const shown = 3

export function Longest() {
  const live = useLive(
    'longest',
    async (stop) => {
      const oldest = async (state: string, limit: number) => {
        const asked = began()
        const { data } = await get<Page<Run>>('/runs', { state, sort: 'oldest', limit, to: soon() }, stop)
        return { ids: keep(data.items, asked), more: data.next !== undefined }
      }
      const [running, waiting] = await Promise.all([oldest('running', most), oldest('queued,waiting', shown)])
      return { running, waiting }
    },
    20_000,
  )
  if (!live.data) return null
  const { running, waiting } = live.data
  const slowest = longest(running.ids, ['running'], (run) => lasted(run, now.value))
  const oldest = longest(waiting.ids, ['queued', 'waiting'], (run) => now.value - parse(run.nominal_time))
  if (!slowest.length && !oldest.length && !running.more && !waiting.more) return null
  // What was not looked at was due after the last one here, and began no sooner: where the slowest began before that, they are the slowest of all.
  const unseen = parse(runOf(running.ids[running.ids.length - 1] ?? '')?.value.nominal_time)
  const third = slowest[shown - 1]
  const sure = !running.more || (third !== undefined && now.value - third.ms <= unseen)
  return (
    <div class="columns">
      <Few id="o-slowest" title="Slowest now" of={slowest} none="Nothing runs at this moment." looked={sure ? undefined : running.ids.length} />
      <Few id="o-waiting" title="Longest waiting" of={oldest} none="No run waits for its start." looked={!waiting.more || waiting.ids.length >= shown ? undefined : waiting.ids.length} />
    </div>
  )
}

interface Long {
  id: string
  ms: number
}

// Runs that are still in one of the states.
function longest(ids: string[], states: string[], of: (run: Run) => number): Long[] {
  return ids
    .flatMap((id) => runOf(id)?.value ?? [])
    .filter((run) => states.includes(run.state))
    .map((run) => ({ id: run.id, ms: of(run) }))
    .filter(({ ms }) => ms >= 0)
    .sort((a, b) => b.ms - a.ms || (a.id < b.id ? -1 : 1))
    .slice(0, shown)
}

function Few({ id, title, of, none, looked }: { id: string; title: string; of: Long[]; none: string; looked: number | undefined }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {of.length === 0 && looked === undefined && <p class="nothing">{none}</p>}
      <ul class="brief next">
        {of.map((run) => (
          <li key={run.id}>
            <RunLink id={run.id} />
            <span class="fine">{span(run.ms)}</span>
          </li>
        ))}
      </ul>
      {looked !== undefined && <p class="fine">{looked ? `Among the ${looked} that were due first.` : 'Not known: too many others that have not ended were due before.'}</p>}
    </section>
  )
}
