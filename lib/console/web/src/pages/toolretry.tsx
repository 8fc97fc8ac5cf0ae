// A retry policy: when each attempt begins, when it gives up, and how many clients that failed together come back at once.
import '../app'
import { get } from '../api'
import { quoted } from '../quoted'
import { query } from '../router'
import { span } from '../time'
import { Absent, asked, Field, Figure, useAsked } from '../tool'
import { Command, pending, Waiting } from '../ui'

interface Spread {
  least: number
  p10: number
  p50: number
  p90: number
  most: number
}

interface Answer {
  retry: { max_attempts: number; initial: string; factor: number; max: string }
  duration: string
  clients: number
  seed: number
  tries: string
  attempts: { attempt: number; begins: Spread; alike: number; peak: number }[]
  gives_up: Spread
  peak: { spread: number; alike: number }
  crowd: { from: number; to: number; spread: number; alike: number }[]
}

// The address names what the API does, and what stands here is what the API takes where it says nothing.
const fields = [
  { name: 'max_attempts', flag: 'attempts', label: 'Attempts', usual: '15' },
  { name: 'initial', flag: 'initial', label: 'Shortest wait', usual: '1s' },
  { name: 'factor', flag: 'factor', label: 'Factor', usual: '2' },
  { name: 'max', flag: 'max', label: 'Longest wait', usual: '1h' },
  { name: 'duration', flag: 'duration', label: 'An attempt takes', usual: '0s' },
  { name: 'clients', flag: 'clients', label: 'Clients', usual: '10000' },
  { name: 'seed', flag: 'seed', label: 'Seed', usual: '1' },
]

const time = (seconds: number) => span(seconds * 1000)
const between = ({ least, most }: Spread) => (time(least) === time(most) ? time(most) : `${time(least)} to ${time(most)}`)
const count = (n: number) => n.toLocaleString('en')

export function Retry() {
  const given = Object.fromEntries(fields.map((f) => [f.name, query.value.get(f.name) ?? undefined]))
  const got = useAsked('retry ' + JSON.stringify(given), async (stop) => (await get<Answer>('/plan/retry', given, stop)).data)
  const shown = got.error ? undefined : got.data
  const flags = fields.filter((f) => asked(f.name, f.usual) !== f.usual).map((f) => ` --${f.flag} ${quoted(asked(f.name, f.usual))}`)
  return (
    <>
      <div class="filters">
        {fields.map((f) => (
          <Field key={f.name} name={f.name} label={f.label} usual={f.usual} />
        ))}
      </div>
      <Absent error={got.error} />
      {!got.data && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class="page" aria-busy={got.old}>
          <p>
            <strong>
              It {shown.tries}, and gives up {shown.gives_up.most ? 'after ' + between(shown.gives_up) : 'at once'}.
            </strong>{' '}
            {shown.gives_up.p10 < shown.gives_up.p90 && (
              <span class="fine">Half of the clients have given up after {time(shown.gives_up.p50)}, nine in ten after {time(shown.gives_up.p90)}.</span>
            )}
          </p>
          <Bands of={shown} />
          {shown.crowd.length > 0 && <Crowd of={shown} />}
          <details class="cli">
            <summary>In a terminal</summary>
            <Command text={'belfry plan retry' + flags.join('')} />
          </details>
        </div>
      )}
    </>
  )
}

const wide = 720
const row = 18

/** scale puts seconds on an axis that grows by the same factor everywhere, since waits do. What is at the beginning stands at its left end. */
function scale(from: number, to: number): (seconds: number) => number {
  const first = Math.max(from, 1e-3)
  const factor = Math.log(Math.max(to, first * 1.1) / first)
  return (seconds) => (Math.max(0, Math.min(1, Math.log(Math.max(seconds, first) / first) / factor)) * wide)
}

const marks = [0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000]

function Axis({ at, high }: { at: (seconds: number) => number; high: number }) {
  return (
    <>
      {marks.map((m) => {
        const x = at(m)
        return x > 0 && x < wide && <line key={m} class="rule" x1={x} x2={x} y1="0" y2={high} />
      })}
    </>
  )
}

function Ticks({ at }: { at: (seconds: number) => number }) {
  const shown = marks.filter((m) => at(m) > 0 && at(m) < wide * 0.97)
  return (
    <div class="times" aria-hidden="true">
      {shown.map((m) => (
        <span key={m} style={{ left: (at(m) / wide) * 100 + '%' }}>
          {time(m)}
        </span>
      ))}
    </div>
  )
}

function Bands({ of }: { of: Answer }) {
  const at = scale(of.attempts[1] ? of.attempts[1].begins.least * 0.8 : 0.001, of.gives_up.most || 1)
  const high = of.attempts.length * row
  const last = of.attempts.at(-1)
  if (!last) return null
  return (
    <Figure
      title="When attempts begin"
      about="from the first on; light: earliest to latest, dark: eight clients in ten, line: half of them"
      table={
        <table>
          <thead>
            <tr>
              {['Attempt', 'Earliest', '10 %', 'Half', '90 %', 'Latest', 'Most in 0.1 s'].map((h) => (
                <th scope="col" key={h} class="num">
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {of.attempts.map((a) => (
              <tr key={a.attempt}>
                <th scope="row" class="num">
                  {a.attempt}
                </th>
                {[a.begins.least, a.begins.p10, a.begins.p50, a.begins.p90, a.begins.most].map((s, i) => (
                  <td class="num" key={i}>
                    {time(s)}
                  </td>
                ))}
                <td class="num">{count(a.peak)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      }
    >
      <svg class="bands" viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" style={{ height: high + 'px' }} role="img" aria-label={`${of.attempts.length} attempts; the last begins after ${between(last.begins)}`}>
        <Axis at={at} high={high} />
        {of.attempts.map((a, i) => {
          const b = a.begins
          const bar = (from: number, to: number, look: string) => <rect class={look} x={at(from)} width={Math.max(2, at(to) - at(from))} y={i * row + 3} height={row - 6} />
          return (
            <g key={a.attempt}>
              <title>{`attempt ${a.attempt}: ${between(b)}, half of them by ${time(b.p50)}`}</title>
              {bar(b.least, b.most, 'band')}
              {bar(b.p10, b.p90, 'core')}
              <rect class="half" x={Math.max(0, at(b.p50) - 1)} width="2" y={i * row + 1} height={row - 2} />
            </g>
          )
        })}
      </svg>
      <Ticks at={at} />
    </Figure>
  )
}

function Crowd({ of }: { of: Answer }) {
  const first = of.crowd[0]
  const last = of.crowd.at(-1)
  if (!first || !last) return null
  const at = scale(first.from, last.to)
  const most = Math.max(...of.crowd.map((b) => Math.max(b.spread, b.alike)), 1)
  const draw = (look: 'spread' | 'alike', name: string) => (
    <svg class={'crowd ' + look} viewBox={`0 0 ${wide} 60`} preserveAspectRatio="none" role="img" aria-label={`${name}: at most ${count(Math.max(...of.crowd.map((b) => b[look])))} in one stretch`}>
      <Axis at={at} high={60} />
      {of.crowd.map((b, i) => b[look] > 0 && (
        <rect key={i} x={at(b.from)} width={Math.max(1, at(b.to) - at(b.from) - 1)} y={60 - (b[look] / most) * 60} height={(b[look] / most) * 60}>
          <title>{`${time(b.from)} to ${time(b.to)}: ${count(b[look])}`}</title>
        </rect>
      ))}
    </svg>
  )
  return (
    <Figure
      title={`${count(of.clients)} clients that fail together`}
      about={`how many try again in each stretch of time; in the worst tenth of a second ${count(of.peak.spread)} with jitter, ${count(of.peak.alike)} without`}
      table={
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col" class="num">With jitter</th>
              <th scope="col" class="num">Without</th>
            </tr>
          </thead>
          <tbody>
            {of.crowd.filter((b) => b.spread || b.alike).map((b) => (
              <tr key={b.from}>
                <td>{time(b.from)}</td>
                <td>{time(b.to)}</td>
                <td class="num">{count(b.spread)}</td>
                <td class="num">{count(b.alike)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      }
    >
      <span class="fine">With jitter, as Belfry does</span>
      {draw('spread', 'With jitter')}
      <span class="fine">Without: all wait alike</span>
      {draw('alike', 'Without jitter')}
      <Ticks at={at} />
    </Figure>
  )
}
