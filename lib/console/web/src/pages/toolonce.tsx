// Exactly once: one run to which something goes wrong, as the server has played it. Each message, write of the run and call is an arrow between the places that it went from and to. A server writes for its workers.
import '../app'
import type { SVGAttributes } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { get } from '../api'
import { Player, usePlayer } from '../player'
import { filter, to, withQuery } from '../router'
import { span } from '../time'
import { Absent, Choice, InTerminal, oneOf, useAsked } from '../tool'
import { pending, Waiting } from '../ui'

const guarantees = { at_least_once: 'At least once', at_most_once: 'At most once' }
const faults = {
  none: 'Nothing',
  message_twice: 'The message comes twice',
  dies_before: 'The worker dies before the effect',
  dies_after: 'The worker dies after the effect',
  answer_lost: 'The target’s answer is lost',
  write_lost: 'The store’s answer is lost',
  zombie: 'A worker wakes up late, and calls last',
  zombie_first: 'A worker wakes up late, and calls first',
  clocks_jump: 'The clocks jump, the message comes again',
}
const guards = { none: 'Nothing', key: 'Key', fence: 'Fence', both: 'Key and fence' }
const places = { scheduler: 'Scheduler', store: 'Store', queue: 'Queue', worker_1: 'Worker 1', worker_2: 'Worker 2', target: 'Target' } as const
type Place = keyof typeof places
const lanes = Object.keys(places) as Place[]

interface Event {
  at: number
  event: string
  from: Place
  to?: Place
  attempt?: number
  fence?: number
  idempotency_key?: string
  delivery?: number
  text: string
}

interface Outcome {
  state: string
  deliveries: number
  attempts: number
  calls: number
  effects: number
  repeated_calls: number
  refused_calls: number
  refused_workers: number
}

interface Question {
  guarantee: keyof typeof guarantees
  fault: keyof typeof faults
  guard: keyof typeof guards
}

interface Answer {
  config: Question
  outcome: Outcome
  says: string
  lasts: number
  events: Event[]
  compare: { config: Question; outcome: Outcome }[]
}

// What the address leaves out: the API takes a run to which nothing happens, and here there is to be something to see.
const usual: Question = { guarantee: 'at_least_once', fault: 'dies_after', guard: 'none' }
const said = (q: Question) => Object.fromEntries(Object.entries(q).map(([name, value]) => [name, value === usual[name as keyof Question] ? undefined : value]))

export function Once() {
  const chosen = {
    guarantee: oneOf('guarantee', Object.keys(guarantees), usual.guarantee),
    fault: oneOf('fault', Object.keys(faults), usual.fault),
    guard: oneOf('guard', Object.keys(guards), usual.guard),
  } as Question
  const got = useAsked('once ' + JSON.stringify(chosen), async (stop) => (await get<Answer>('/plan/once', { ...chosen }, stop)).data)
  const shown = got.data
  const choice = (name: keyof Question, label: string, all: Record<string, string>) => (
    <Choice name={name} label={label} value={chosen[name]} all={all} choose={(value) => filter({ ...said({ ...chosen, [name]: value }), at: undefined }, true)} />
  )
  return (
    <>
      <p class="fine">
        The job asks a payment service to pay an invoice. The effect is one payment. The scheduler, its leases and its fences are the server’s own, over a queue and a store that fail as you choose. The two workers and the payment service follow a script; a server writes for its workers.
      </p>
      <div class="filters">
        {choice('guarantee', 'Guarantee of the job', guarantees)}
        {choice('fault', 'What goes wrong', faults)}
        {choice('guard', 'What the target heeds', guards)}
      </div>
      <p class="fine">
        The key is the run’s ID, the same in each attempt: a target that heeds it pays once under it. The fence is a number that grows with each attempt: a target that heeds it refuses a call with a lower one than the highest that it has seen for this run.
      </p>
      <Absent error={got.error} />
      {!shown && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class={got.error ? 'page old' : 'page'} aria-busy={got.old}>
          <Counts of={shown} />
          <Play key={JSON.stringify(shown.config)} of={shown} />
          <Compare of={shown} />
          <InTerminal command="belfry plan once" flags={chosen as unknown as Record<string, string>} />
        </div>
      )}
    </>
  )
}

// The colours of what is as it should be, of what is not, and so on, as the style sheet has them.
const colours = { ok: 'var(--ok)', bad: 'var(--bad)', warn: 'var(--warn)', odd: 'var(--odd)', call: 'var(--run)', plain: 'var(--soft)' }

/** tone is how well it went: paid once, more than once, or nobody knows. */
const tone = ({ effects, state }: Outcome) => (effects > 1 ? colours.bad : state === 'unknown' ? colours.odd : colours.ok)

function Counts({ of: { outcome: o, says } }: { of: Answer }) {
  const counts: [string, number][] = [['Deliveries', o.deliveries], ['Attempts', o.attempts], ['Calls', o.calls], ['Calls repeated', o.repeated_calls], ['Calls refused', o.refused_calls], ['Workers refused', o.refused_workers]]
  return (
    <section class="page" aria-label="Outcome">
      <p class="waits" style={{ borderColor: tone(o) }}>
        {says}
      </p>
      <dl class="facts" style={{ gridTemplateColumns: 'repeat(auto-fill, minmax(100px, 1fr))' }}>
        <div>
          <dt>Effects</dt>
          <dd>
            <strong style={{ color: tone(o) }}>{o.effects}</strong>
          </dd>
        </div>
        {counts.map(([name, n]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{n}</dd>
          </div>
        ))}
        <div>
          <dt>Run</dt>
          <dd class={'state s-' + o.state}>{o.state}</dd>
        </div>
      </dl>
    </section>
  )
}

const frames = 9 // that an event is shown for, at the usual speed

/** Play is the diagram under its marker, which stands at an event. Before the first one the diagram shows all. */
function Play({ of }: { of: Answer }) {
  const { events } = of
  const player = usePlayer(events.length, (n, speed) => n + speed / frames)
  const { now, playing, stop } = player
  return (
    <section class="played" aria-labelledby="played">
      <Player of={player} title={<h2 id="played">Event by event</h2>} words={events[now]?.text ?? ''} lasts={span(of.lasts * 1000)}>
        <Diagram events={events} at={now} playing={playing} choose={stop} />
      </Player>
    </section>
  )
}

type Life = 'free' | 'holds' | 'stands' | 'dead'

/** lives is what each worker is at behind each event. */
function lives(events: Event[]): Record<string, Life>[] {
  const now: Record<string, Life> = { worker_1: 'free', worker_2: 'free' }
  return events.map((e) => {
    const [one, other] = [e.from, e.to].map((p) => (p && p in now ? p : undefined))
    if (e.event === 'running' && one) now[one] = 'holds'
    else if (e.event === 'worker_died' && one) now[one] = 'dead'
    else if (e.event === 'worker_froze' && one) now[one] = 'stands'
    else if (e.event === 'worker_woke' && one) now[one] = 'holds'
    else if (['succeeded', 'failed', 'retrying', 'unknown'].includes(e.event) && one && now[one] === 'holds') now[one] = 'free'
    else if (e.event === 'refused' && other && now[other] === 'holds') now[other] = 'free'
    return { ...now }
  })
}

const centre = (place: Place) => ((lanes.indexOf(place) + 0.5) / lanes.length) * 100

const marks: Record<string, string> = {
  renewed: 'renew', written_again: 'same again', message_sent: 'message', message_hidden: 'hide', message_deleted: 'delete', effect: 'paid', repeated: 'paid before', stale: 'fence too old', answered: 'answer', answer_lost: 'answer lost',
  write_lost: 'answer lost', refused: 'refused', worker_died: 'dies', worker_froze: 'stands still', worker_woke: 'wakes up', clock_set: 'clocks + 1 h', timer_set: 'timer',
}

/** mark is what an arrow says. */
function mark(e: Event, effects: number): string {
  switch (e.event) {
    case 'running':
      return 'start, fence ' + e.fence
    case 'called':
      return e.idempotency_key ? `fence ${e.fence} + key` : 'call, fence ' + e.fence
    case 'message_taken':
      return 'delivery ' + e.delivery
    case 'message_sent':
      return (e.to ? 'message, fence ' : 'copy, fence ') + e.fence
    case 'effect':
      return effects > 1 ? 'paid again' : 'paid'
  }
  return marks[e.event] ?? e.event
}

const looks: Record<string, keyof typeof colours> = { effect: 'ok', succeeded: 'ok', called: 'call', running: 'call', refused: 'warn', stale: 'warn', repeated: 'warn', worker_died: 'bad', answer_lost: 'bad', write_lost: 'bad', worker_froze: 'odd', worker_woke: 'odd', clock_set: 'odd', unknown: 'odd' }

const time = (e: Event) => (e.at ? span(e.at * 1000) : '0 s')

const middle = 18 // where an arrow is in its row, in px

/** Diagram has a row for each event: an arrow between two lanes, or a mark on one, and the words. Lanes go through all rows. */
function Diagram({ events, at, playing, choose }: { events: Event[]; at: number; playing: boolean; choose: (n: number) => void }) {
  const around = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (playing) around.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [at, playing])
  const all = useMemo(() => lives(events), [events])
  let effects = 0
  return (
    <div class="sequence" role="table" aria-label="What happens" ref={around}>
      <div role="row" class="head">
        <span role="columnheader">At</span>
        <span role="columnheader" class="lanes">
          <span class="hidden">From and to</span>
          {lanes.map((l) => (
            <i key={l} aria-hidden="true">
              {places[l]}
            </i>
          ))}
        </span>
        <span role="columnheader" class="words">
          What happens
        </span>
      </div>
      {events.map((e, i) => {
        if (e.event === 'effect') effects++
        const look = e.event === 'effect' && effects > 1 ? 'bad' : (looks[e.event] ?? 'plain')
        const later = at >= 0 && i > at
        const before = all[i - 1] ?? { worker_1: 'free', worker_2: 'free' }
        return (
          <div role="row" key={i} class={later ? 'later' : undefined} aria-current={i === at ? 'step' : undefined}>
            <span role="cell">
              <button type="button" onClick={() => choose(i)} aria-label={`${time(e)}, event ${i + 1}`}>
                {time(e)}
              </button>
            </span>
            <span role="cell" class="lanes">
              <span class="hidden">{e.to ? `${places[e.from]} to ${places[e.to]}` : places[e.from]}</span>
              <svg aria-hidden="true" style={{ color: colours[look] }}>
                {lanes.map((l) => (
                  <Lane key={l} at={centre(l)} before={before[l] ?? 'plain'} after={all[i]?.[l] ?? 'plain'} />
                ))}
                <Mark of={e} text={mark(e, effects)} />
              </svg>
            </span>
            <span role="cell" class="words" style={later || look === 'plain' || look === 'call' ? undefined : { color: colours[look] }}>
              {later && <span class="hidden">Not yet: </span>}
              {e.text}
            </span>
          </div>
        )
      })}
    </div>
  )
}

const strokes: Record<Life | 'plain', SVGAttributes<SVGLineElement>> = {
  plain: { stroke: 'var(--line)' },
  free: { stroke: 'var(--strong)' },
  holds: { stroke: 'var(--run-fill)', 'stroke-width': 6 },
  stands: { stroke: 'var(--odd)', 'stroke-width': 6, 'stroke-dasharray': '2 4' },
  dead: {},
}

/** Lane is a part of a lane: of a worker, what it is at before the event and behind it. */
function Lane({ at, before, after }: { at: number; before: Life | 'plain'; after: Life | 'plain' }) {
  const x = at + '%'
  return (
    <>
      <line {...strokes[before]} x1={x} x2={x} y1="0" y2={middle} />
      <line {...strokes[after]} x1={x} x2={x} y1={middle} y2="100%" />
    </>
  )
}

const head = 7 // px

function Mark({ of: e, text }: { of: Event; text: string }) {
  const from = centre(e.from)
  const x = from + '%'
  if (!e.to) {
    const right = lanes.indexOf(e.from) < lanes.length / 2
    return (
      <>
        {e.event === 'worker_died' ? <Cross x={x} /> : <circle cx={x} cy={middle} r="4.5" fill="currentColor" />}
        <text x={x} y={middle + 4} dx={right ? 10 : -10} text-anchor={right ? 'start' : 'end'}>
          {text}
        </text>
      </>
    )
  }
  const lost = e.event.endsWith('_lost')
  const end = lost ? (from + centre(e.to)) / 2 : centre(e.to)
  const way = end > from ? 1 : -1
  return (
    <>
      <line stroke="currentColor" stroke-width="1.5" x1={x} x2={end + '%'} y1={middle} y2={middle} />
      {lost ? (
        <Cross x={end + '%'} />
      ) : (
        <svg x={end + '%'} y={middle} overflow="visible">
          <path fill="currentColor" d={`M0 0L${-way * head} -4V4z`} />
        </svg>
      )}
      <text x={(from + end) / 2 + '%'} y={middle - 6} text-anchor="middle">
        {text}
      </text>
    </>
  )
}

function Cross({ x }: { x: string }) {
  return (
    <svg x={x} y={middle} overflow="visible">
      <path fill="none" stroke="currentColor" stroke-width="2" d="M-5-5L5 5M-5 5L5-5" />
    </svg>
  )
}

/** Compare is what becomes of every fault, under the same guarantee, by what the target heeds. */
function Compare({ of: { config, compare } }: { of: Answer }) {
  return (
    <section aria-labelledby="compare">
      <h2 id="compare">All faults, {guarantees[config.guarantee].toLowerCase()}: how many of the calls had an effect</h2>
      <div class="scroller" tabIndex={0} role="region" aria-label="Outcomes of all faults">
        <table class="outcomes">
          <thead>
            <tr>
              <th scope="col">What goes wrong</th>
              {Object.entries(guards).map(([guard, name]) => (
                <th scope="col" key={guard}>
                  {guard === 'none' ? 'No guard' : name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(faults).map(([fault, name]) => (
              <tr key={fault}>
                <th scope="row">{name}</th>
                {Object.keys(guards).map((guard) => {
                  const one = compare.find((c) => c.config.guarantee === config.guarantee && c.config.fault === fault && c.config.guard === guard)
                  if (!one) return <td key={guard} />
                  const { effects, calls, state } = one.outcome
                  return (
                    <td key={guard}>
                      <a style={{ color: tone(one.outcome) }} href={withQuery(to('tools', 'exactly-once'), said(one.config))} aria-current={fault === config.fault && guard === config.guard ? 'true' : undefined}>
                        {effects} of {calls}
                        {state === 'unknown' && ', unknown'}
                      </a>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="fine">
        1 of 2: the target was called twice and made 1 payment. At least once calls again where nobody knows how an attempt ended, while attempts are left, and only a target that heeds the key then pays once. A fence stops who comes late: it does not tell a
        repeated call, and it stops nobody who is the first to call. At most once never calls again by itself: where nobody knows, the run is unknown. Look at the target, and use belfry run retry RUN --force if the effect is missing.
      </p>
    </section>
  )
}
