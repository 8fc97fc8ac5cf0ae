// Made-up load that the server has played through a queue: the board at each event, under a marker that plays.
import { useMemo, useRef } from 'preact/hooks'
import { get } from './api'
import { Board, places, priorities, tell, type Piece, type Place } from './board'
import { Player, usePlayer } from './player'
import { query } from './router'
import { span } from './time'
import { Absent, asked, Distribution, Field, Figure, InTerminal, useAsked } from './tool'
import { pending, Waiting } from './ui'

interface Event {
  at: number
  message: number
  event: 'sent' | 'ready' | 'taken' | 'ended'
  priority: string
  due?: number
  worker?: number
  turn?: string
}

interface Answer {
  config: { workers: number; messages: number; rate: number }
  lasts: number
  by_priority: { messages: number; mean: number; max: number }[]
  events: Event[]
}

// The address names what the API does. The first ones the API must be told, or takes none of; here they are so that there is something to see.
const dials = [
  { name: 'workers', label: 'Workers', usual: '2' },
  { name: 'arrivals', label: 'Messages a second', usual: '8' },
  { name: 'messages', label: 'Messages in all', usual: '60' },
  { name: 'duration', label: 'Mean duration', usual: '300ms' },
  { name: 'high', label: 'Share of high priority', usual: '0.3' },
  { name: 'low', label: 'Share of low priority', usual: '0.3' },
  { name: 'delayed', label: 'Share that is delayed', usual: '0.4' },
  { name: 'longest_delay', label: 'Longest delay', usual: '3s' },
]
const others = [{ name: 'seed', label: 'Seed', usual: '1' }]

/** time writes an instant of the play to the millisecond: events follow each other closely. */
const time = (seconds: number): string => seconds.toFixed(3) + ' s'
const between = (from: number | undefined, to: number | undefined): string => (from === undefined || to === undefined ? '–' : time(to - from))

export function Played() {
  const question: Record<string, string | undefined> = {
    ...Object.fromEntries(dials.map((f) => [f.name, asked(f.name, f.usual)])),
    ...Object.fromEntries([...others.map((f) => f.name), 'distribution', 'p99'].map((name) => [name, query.value.get(name) ?? undefined])),
  }
  const got = useAsked('order ' + JSON.stringify(question), async (stop) => (await get<Answer>('/plan/order', question, stop)).data)
  const shown = got.data
  return (
    <>
      <div class="filters">
        {dials.map((f) => (
          <Field key={f.name} {...f} />
        ))}
      </div>
      <details class="besides">
        <summary>How durations are distributed, and the seed</summary>
        <div class="filters">
          <Distribution usual="300ms">
            <Field name="p99" label="One run in a hundred takes longer than" usual="" />
          </Distribution>
          {others.map((f) => (
            <Field key={f.name} {...f} />
          ))}
        </div>
      </details>
      <Absent error={got.error} />
      {!shown && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class={got.error ? 'page old' : 'page'} aria-busy={got.old}>
          <Play of={shown} />
          <Waits of={shown} />
          <InTerminal command="belfry plan order" flags={question} />
        </div>
      )}
    </>
  )
}

/** standing is where each message stands after so many events: those that have ended stand nowhere. */
function standing(events: Event[], happened: number): { pieces: Piece[]; counts: Record<string, Record<Place, number>>; sum: Record<Place, number>; ended: number } {
  const order: Record<Place, Map<number, Event>> = { delayed: new Map(), ready: new Map(), taken: new Map() }
  let ended = 0
  for (const e of events.slice(0, happened)) {
    for (const place of places) order[place].delete(e.message)
    if (e.event === 'ended') ended++
    else order[e.event === 'sent' ? (e.due === undefined ? 'ready' : 'delayed') : e.event].set(e.message, e)
  }
  const counts = Object.fromEntries(priorities.map((p) => [p, { delayed: 0, ready: 0, taken: 0 }])) as Record<string, Record<Place, number>>
  const pieces: Piece[] = []
  for (const place of places) {
    const all = [...order[place].values()]
    if (place === 'delayed') all.sort((a, b) => (a.due ?? 0) - (b.due ?? 0))
    for (const e of all) {
      const of = counts[e.priority]
      if (of) of[place]++
      pieces.push({ key: String(e.message), text: String(e.message), place, priority: e.priority })
    }
  }
  return { pieces, counts, sum: { delayed: order.delayed.size, ready: order.ready.size, taken: order.taken.size }, ended }
}

const does = (e: Event): string =>
  `message ${e.message} (${e.priority}) ` +
  { sent: e.due === undefined ? 'is sent and ready' : `is sent, delayed until ${time(e.due)}`, ready: 'is ready', taken: `is taken by worker ${e.worker}` + (e.turn === e.priority ? '' : `, in a turn of ${e.turn}: none of that was ready`), ended: `has ended at worker ${e.worker}` }[e.event]

/** Play is the board as it is where the player stands. */
function Play({ of }: { of: Answer }) {
  const { events } = of
  const clock = useRef(0) // in seconds of the play
  const player = usePlayer(events.length, (n, speed) => {
    const here = events[n]?.at ?? 0
    const then = events[n + 1]?.at ?? here
    // A pause of more than a second is cut to that.
    clock.current = Math.max(clock.current < here || clock.current > then ? here : clock.current, then - speed) + 0.08 * speed
    const to = events.findLastIndex((e) => e.at <= clock.current)
    return Math.max(n, to)
  })
  const { at } = player
  const stands = useMemo(() => standing(events, at + 1), [events, at])
  const one = events[at]
  const told = one ? `at ${time(one.at)}: ${does(one)}. ${tell(stands.sum)}, ${stands.ended.toLocaleString('en')} ended` : ''
  const table = useMemo(() => <Messages events={events} />, [events])
  const times = useMemo(() => ({ of: events.map((e) => e.at), end: of.lasts }), [of])
  return (
    <section class="played" aria-labelledby="played">
      <Player of={player} title={<h2 id="played">The queue, event by event</h2>} words={told} times={times} lasts={time(of.lasts)}>
        <Figure title="Where each message stands" about="A number is that of a message." table={table}>
          <Board pieces={stands.pieces} counts={stands.counts} of="numbers" />
        </Figure>
      </Player>
    </section>
  )
}

/** Messages is all that happens, a row for each message. */
function Messages({ events }: { events: Event[] }) {
  const rows: (Partial<Record<Event['event'], number>> & { priority: string; worker?: number; turn?: string })[] = []
  for (const e of events) {
    const row = (rows[e.message] ??= { priority: e.priority })
    row[e.event] = e.at
    if (e.event === 'sent' && e.due === undefined) row.ready = e.at
    if (e.event === 'taken') Object.assign(row, { worker: e.worker, turn: e.turn })
  }
  return (
    <table>
      <thead>
        <tr>
          {['Message', 'Priority', 'Sent', 'Ready', 'Taken', 'Waited', 'Worker', 'Turn', 'Ended'].map((h) => (
            <th scope="col" class="num" key={h}>
              {h}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((m, number) => (
          <tr key={number}>
            {[number, m.priority, between(0, m.sent), between(0, m.ready), between(0, m.taken), between(m.ready, m.taken), m.worker, m.turn, between(0, m.ended)].map((text, i) => (
              <td class="num" key={i}>
                {text}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Waits({ of }: { of: Answer }) {
  return (
    <section aria-labelledby="waits">
      <h2 id="waits">Waits, from ready to taken</h2>
      <table class="sums">
        <thead>
          <tr>
            <th scope="col">Priority</th>
            <th scope="col" class="num">
              Messages
            </th>
            <th scope="col" class="num">
              Mean
            </th>
            <th scope="col" class="num">
              Longest
            </th>
          </tr>
        </thead>
        <tbody>
          {of.by_priority.map((w, i) => (
            <tr key={i}>
              <th scope="row">{priorities[i]}</th>
              <td class="num">{w.messages.toLocaleString('en')}</td>
              <td class="num">{w.messages ? span(w.mean * 1000) : '–'}</td>
              <td class="num">{w.messages ? span(w.max * 1000) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="fine">Of 16 turns normal has 3 and low has 1, and high the others; where none of that priority is ready, the highest that has something goes. How long a message has waited does not matter between priorities.</p>
      <p class="fine">This is the queue of a server's own. In SQS each priority is a queue by itself: workers ask the three in the same turns, for up to ten messages at once, and SQS keeps no order within a queue.</p>
    </section>
  )
}
