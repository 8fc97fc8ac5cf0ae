// The picture of a run's way: the stations that it can stand at, the ways between them, and the run itself.
import type { Event } from './way'

const names = {
  timer: 'Timer',
  claimed: 'Claimed',
  ready: 'Queue: ready',
  delayed: 'Queue: waits',
  worker: 'Worker',
  failed: 'Failed',
  succeeded: 'Succeeded',
  dead: 'Dead letters',
} as const
type Station = keyof typeof names
type Box = [x: number, y: number]

export interface Layout {
  name: string
  wide: number
  high: number
  box: [wide: number, high: number]
  at: Record<Station, Box>
  ways: string[]
}

/** layouts are those of a wide window and of a narrow one; the style sheet shows one of them. */
export const layouts: Layout[] = [
  {
    name: 'wide',
    wide: 748,
    high: 186,
    box: [118, 56],
    at: { timer: [8, 10], claimed: [160, 10], ready: [312, 10], worker: [464, 10], succeeded: [622, 10], delayed: [312, 106], failed: [464, 106], dead: [622, 106] },
    ways: ['M126 38H158', 'M278 38H310', 'M430 38H462', 'M582 38H620', 'M523 66V104', 'M464 134H432', 'M371 106V68', 'M582 134H620', 'M523 162V178H67V68'],
  },
  {
    name: 'narrow',
    wide: 330,
    high: 318,
    box: [136, 56],
    at: { timer: [18, 8], claimed: [186, 8], delayed: [18, 90], ready: [186, 90], failed: [18, 172], worker: [186, 172], dead: [18, 254], succeeded: [186, 254] },
    ways: ['M154 36H184', 'M254 64V88', 'M254 146V170', 'M254 228V252', 'M186 200H156', 'M86 172V148', 'M154 118H184', 'M86 228V252', 'M18 200H6V36H16'],
  },
]

export interface Stand {
  at: Station
  died: boolean // the worker of its attempt has died
  attempt: number
}

/** stands is where the run is after each event. Before the first it stands at its timer. */
export function stands(events: Event[]): Stand[] {
  const all: Stand[] = []
  let now: Stand = { at: 'timer', died: false, attempt: 0 }
  for (const e of events) {
    now = { at: now.at, died: e.event === 'worker_died', attempt: e.attempt ?? 0 }
    if (e.event === 'queued') now.at = e.attempt ? 'worker' : 'claimed'
    else if (e.event === 'message_sent') now.at = e.until ? 'delayed' : 'ready'
    else if (e.event === 'message_taken' || e.event === 'running') now.at = 'worker'
    else if (e.event === 'retrying') now.at = 'failed'
    else if (e.event === 'message_hidden') now.at = 'delayed'
    else if (e.event === 'message_deleted') now.at = now.at === 'failed' ? 'timer' : now.at
    else if (e.event === 'succeeded') now.at = 'succeeded'
    else if (e.event !== 'worker_died') now.at = 'dead'
    all.push(now)
  }
  return all
}

const ease = (f: number) => f * f * (3 - 2 * f)

/** Picture draws a place: an event, and a share of the time to the next. Where time passes the run goes through its station, and else to the next one. */
export function Picture({ layout, places, at, waits, timed, smooth }: { layout: Layout; places: Stand[]; at: number; waits: boolean; timed: (i: number) => boolean; smooth: boolean }) {
  const i = Math.floor(at)
  const share = at - i
  const start: Stand = { at: 'timer', died: false, attempt: 0 }
  const here = places[i] ?? start
  const then = places[i + 1] ?? here
  const [w, h] = layout.box
  const along = (of: Station, f: number): Box => [layout.at[of][0] + 16 + f * (w - 32), layout.at[of][1] + h - 17]
  const enters = (k: number, of: Stand): Box => along(of.at, k >= 0 && timed(k) ? 0 : 0.5)
  const leaves = waits ? 0.85 : 0.3 // from this share on it goes to the next
  const from = waits ? along(here.at, Math.min(1, share / leaves)) : enters(i, here)
  const to = enters(i + 1, then)
  const f = i < 0 ? ease(share) : ease(Math.max(0, (share - leaves) / (1 - leaves)))
  const x = from[0] + (to[0] - from[0]) * f
  const y = from[1] + (to[1] - from[1]) * f
  const arrow = 'arrow-' + layout.name
  return (
    <svg class={'map ' + layout.name} viewBox={`0 0 ${layout.wide} ${layout.high}`}>
      <defs>
        <marker id={arrow} viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
          <path class="head" d="M0 0 6 3 0 6z" />
        </marker>
      </defs>
      {layout.ways.map((d) => (
        <path key={d} class="to" d={d} marker-end={`url(#${arrow})`} />
      ))}
      {(Object.keys(names) as Station[]).map((name) => {
        const [bx, by] = layout.at[name]
        const of = name === here.at
        return (
          <g key={name} class={'station of-' + name + (of ? ' here' : '')}>
            <rect x={bx} y={by} width={w} height={h} rx="5" />
            <text x={bx + 10} y={by + 19}>
              {names[name]}
            </text>
            {of && waits && <path class="track" d={`M${bx + 16} ${by + h - 17}h${w - 32}`} />}
          </g>
        )
      })}
      <g class={(here.died ? 'token died' : 'token') + (smooth ? ' glides' : '')} style={{ transform: `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)` }}>
        <circle r="10" />
        <text y="4">{here.died ? '×' : here.attempt || ''}</text>
      </g>
    </svg>
  )
}
