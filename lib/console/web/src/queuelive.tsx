// What a tenant has in a queue of the server's own, as it changes.
import { useMemo, useRef, useState } from 'preact/hooks'
import { get, Refusal } from './api'
import { Board, places, priorities, tell, type Piece, type Place } from './board'
import { useLive } from './live'
import type { Depth, Page, Queue } from './model'
import { quoted } from './quoted'
import { asked, Choice, Figure, InTerminal, say } from './tool'
import { Ago, Empty, Instant, pending, Refused, RunLink, Waiting } from './ui'

interface Message {
  run?: string
  unreadable?: boolean
  step?: string
  state: Place
  priority: string
  nominal_time?: string
  sent_at: string
  ready_at?: string
  taken_at?: string
  back_at?: string
  receives: number
}

interface Answer {
  queue: string
  priorities: Record<string, Depth>
  items: Message[]
}

const every = 1000 // what comes of the clock alone, as that a message is ready, no server tells
const limit = 50

export function Live() {
  const name = asked('queue', 'default') || 'default'
  const queues = useLive('queues by name', async (stop) => (await get<Page<Queue>>('/queues', {}, stop)).data.items, 0)
  const [paused, setPaused] = useState(false)
  const live = useLive(paused || !name ? '' : 'messages ' + name, async (stop) => (await get<Answer>(`/queues/${encodeURIComponent(name)}/messages`, { limit }, stop)).data, every)
  const last = useRef<Answer>()
  if (live.data) last.current = live.data
  const choose = (queue: string) => {
    setPaused(false) // nothing is known of another one
    say('queue', queue, 'default')
  }
  const shown = last.current?.queue === name && !(live.error instanceof Refusal && !live.data) ? last.current : undefined
  return (
    <>
      <div class="filters">
        <Choice name="queue" label="Queue" value={name} all={Object.fromEntries([...(queues.data ?? []).map((q) => q.name), name].map((one) => [one, one]))} choose={choose} />
        <button type="button" class="act" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          Pause
        </button>
        {paused && <span class="fine">It stands still, as it was when you paused it.</span>}
      </div>
      <Refused error={live.error} />
      {!shown && !paused && pending(live.error) && <Waiting lines={6} />}
      {shown && <Shown of={shown} />}
      <InTerminal command={'belfry queue messages ' + quoted(name)} flags={{}} />
    </>
  )
}

function Shown({ of }: { of: Answer }) {
  const counts = of.priorities as unknown as Record<string, Record<Place, number>>
  const sum = Object.fromEntries(places.map((p) => [p, priorities.reduce((all, rank) => all + (counts[rank]?.[p] ?? 0), 0)])) as Record<Place, number>
  const pieces = useMemo(() => piecesOf(of.items), [of])
  if (of.items.length === 0) {
    return (
      <Empty command={'belfry queue list'}>
        You have no message in this queue now. Runs that are due later, paused, or in line at a gate are in no queue yet.
      </Empty>
    )
  }
  return (
    <Figure title="Your messages" about={tell(sum) + '. Those of other tenants are not shown.'} table={<Table all={of.items} />}>
      <Board pieces={pieces} counts={counts} of="names" />
      <p class="fine">Taken: with a worker, or waiting for its next attempt.</p>
    </Figure>
  )
}

/** piecesOf gives each message a key that is its own as long as it is there: that of its run, and a number where a run has several. */
function piecesOf(items: Message[]): Piece[] {
  const met = new Map<string, number>()
  return items.map((m) => {
    const run = m.run ?? 'unreadable'
    const of = run + (m.step ? '/' + m.step : '')
    const n = (met.get(of) ?? 0) + 1
    met.set(of, n)
    return { key: n > 1 ? `${of} (${n})` : of, text: m.step ?? run.split('~')[0] ?? run, place: m.state, priority: m.priority }
  })
}

function Table({ all }: { all: Message[] }) {
  return (
    <table>
      <thead>
        <tr>
          {['Run', 'State', 'Priority', 'Since or until', 'Back at', 'Deliveries'].map((h) => (
            <th scope="col" key={h}>
              {h}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.map((m, i) => (
          <tr key={i}>
            <td>
              {m.run ? <RunLink id={m.run} /> : 'cannot be read'}
              {m.step && <> step {m.step}</>}
            </td>
            <td>{m.state}</td>
            <td>{m.priority}</td>
            <td>
              {m.state === 'delayed' ? (
                <>
                  until <Instant at={m.ready_at} /> <Ago at={m.ready_at} />
                </>
              ) : m.state === 'taken' ? (
                <>
                  since <Instant at={m.taken_at} /> <Ago at={m.taken_at} />
                </>
              ) : (
                <>
                  since <Instant at={m.ready_at} /> <Ago at={m.ready_at} />
                </>
              )}
            </td>
            <td>{m.back_at ? <Instant at={m.back_at} /> : '–'}</td>
            <td class="num">{m.receives}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
