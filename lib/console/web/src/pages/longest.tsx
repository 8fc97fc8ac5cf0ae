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
import { open, soon } from './overview'

const most = 200 // runs that are looked at: the newest that have not ended
const shown = 3

export function Longest() {
  const live = useLive('longest', async (stop) => {
    const asked = began()
    const { data } = await get<Page<Run>>('/runs', { state: open, limit: most, to: soon() }, stop)
    return { ids: keep(data.items, asked), more: data.next !== undefined }
  }, 20_000)
  const runs = (live.data?.ids ?? []).map((id) => runOf(id)?.value).filter((run) => run !== undefined)
  const slowest = longest(runs.filter((run) => run.state === 'running'), (run) => lasted(run, now.value))
  const waiting = longest(runs.filter((run) => run.state === 'queued' || run.state === 'waiting'), (run) => now.value - parse(run.nominal_time))
  if (!slowest.length && !waiting.length) return null
  return (
    <div class="columns">
      <Few id="o-slowest" title="Slowest now" of={slowest} none="Nothing runs at this moment." more={live.data?.more} />
      <Few id="o-waiting" title="Longest waiting" of={waiting} none="No run waits for its start." more={live.data?.more} />
    </div>
  )
}

interface Long {
  id: string
  ms: number
}

function longest(runs: Run[], of: (run: Run) => number): Long[] {
  return runs
    .map((run) => ({ id: run.id, ms: of(run) }))
    .filter(({ ms }) => ms >= 0)
    .sort((a, b) => b.ms - a.ms || (a.id < b.id ? -1 : 1))
    .slice(0, shown)
}

function Few({ id, title, of, none, more }: { id: string; title: string; of: Long[]; none: string; more: boolean | undefined }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {of.length === 0 && <p class="nothing">{none}</p>}
      <ul class="brief next">
        {of.map((run) => (
          <li key={run.id}>
            <RunLink id={run.id} />
            <span class="fine">{span(run.ms)}</span>
          </li>
        ))}
      </ul>
      {more && <p class="fine">Of the newest {most} runs that have not ended.</p>}
    </section>
  )
}
