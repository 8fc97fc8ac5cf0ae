// A retry policy: when each attempt begins, when it gives up, how many clients that failed together come back at once, and the way of one run.
import '../app'
import { get } from '../api'
import { query } from '../router'
import { span } from '../time'
import { Absent, asked, Field, Figure, InTerminal, useAsked } from '../tool'
import { pending, Waiting } from '../ui'
import { Way } from '../way'

interface Percentiles {
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
  attempts: { attempt: number; begins: Percentiles; begins_without_jitter: number; peak: number }[]
  gives_up: Percentiles
  peak: { with_jitter: number; without_jitter: number }
  crowd: { from: number; to: number; with_jitter: number; without_jitter: number }[]
}

// The address names what the API does, and what stands here is what the API takes where it says nothing. The longest wait follows the shortest, so
// the answer says it.
const fields = [
  { name: 'max_attempts', flag: 'attempts', label: 'Attempts', usual: '15' },
  { name: 'initial', flag: 'initial', label: 'Shortest wait', usual: '1s' },
  { name: 'factor', flag: 'factor', label: 'Factor', usual: '2' },
  { name: 'max', flag: 'max', label: 'Longest wait', usual: '' },
  { name: 'duration', flag: 'duration', label: 'An attempt takes', usual: '0s' },
  { name: 'clients', flag: 'clients', label: 'Clients', usual: '10000' },
  { name: 'seed', flag: 'seed', label: 'Seed', usual: '1' },
]

const time = (seconds: number) => span(seconds * 1000)
const between = ({ least, most }: Percentiles) => (time(least) === time(most) ? time(most) : `${time(least)} to ${time(most)}`)
const count = (n: number) => n.toLocaleString('en')

export function Retry() {
  const given = Object.fromEntries(fields.map((f) => [f.name, query.value.get(f.name) ?? undefined]))
  const got = useAsked('retry ' + JSON.stringify(given), async (stop) => (await get<Answer>('/plan/retry', given, stop)).data)
  const shown = got.error ? undefined : got.data
  const flags = Object.fromEntries(fields.map((f) => [f.flag, asked(f.name, f.usual) === f.usual ? undefined : asked(f.name, f.usual)]))
  return (
    <>
      <div class="filters">
        {fields.map((f) => (
          <Field key={f.name} name={f.name} label={f.label} usual={f.usual} placeholder={f.usual || shown?.retry.max} />
        ))}
      </div>
      <Absent error={got.error} />
      {!got.data && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class="page" aria-busy={got.old}>
          <p>
            <strong>
              It tries {shown.attempts.length > 1 ? shown.attempts.length + ' times' : 'once'} and gives up {shown.gives_up.most ? 'after ' + between(shown.gives_up) : 'at once'}.
            </strong>{' '}
            {shown.gives_up.p10 < shown.gives_up.p90 && (
              <span class="fine">Half of the clients have given up after {time(shown.gives_up.p50)}, nine in ten after {time(shown.gives_up.p90)}.</span>
            )}
          </p>
          <Bands of={shown} at={scaleOf(shown)} />
          {shown.crowd.length > 0 && shown.clients > 1 && <Crowd of={shown} at={scaleOf(shown)} />}
          <InTerminal command="belfry plan retry" flags={flags} />
          <Way policy={shown.retry} takes={shown.duration} />
        </div>
      )}
    </>
  )
}

const wide = 720
const apart = 40 // what is at 0 stands left of this: the axis has no 0
const row = 18

// Marks of the axis, in steps of 1, 2 and 5 of a unit.
const marks = [[1e-3, 100], [1, 10], [60, 10], [3600, 10], [86_400, 1000]].flatMap(([unit = 1, most = 1]) =>
  [1, 10, 100, 1000].filter((ten) => ten <= most).flatMap((ten) => [1, 2, 5].map((n) => n * ten * unit)).filter((m) => unit < 1 || unit === 86_400 || m < 30 * unit),
)

interface Scale {
  (seconds: number): number
  from: number
  to: number
}

/** scaleOf puts seconds on a logarithmic axis, since waits grow by a factor. It reaches from one mark to another, and both pictures have it. */
function scaleOf({ crowd, gives_up }: Answer): Scale {
  const end = Math.max(gives_up.most, crowd.at(-1)?.to ?? 0) || 1
  const from = marks.findLast((m) => m <= (crowd[0]?.from ?? end)) ?? 1e-3
  const to = marks.find((m) => m > from && m >= end) ?? end
  const at = (seconds: number) => (seconds < from ? 0 : apart + Math.min(1, Math.log(seconds / from) / Math.log(to / from)) * (wide - apart))
  return Object.assign(at, { from, to })
}

/** labels chooses marks that are so far apart, as a share of the width. Those that begin a unit, or ten of it, come first. */
function labels(at: Scale, share: number): number[] {
  const within = marks.filter((m) => m >= at.from && m <= at.to)
  const major = within.filter((m) => /^1[ 0]/.test(time(m)))
  const chosen: number[] = []
  for (const m of [...major, ...within]) if (chosen.every((c) => Math.abs(at(c) - at(m)) >= share * wide)) chosen.push(m)
  return chosen
}

function Axis({ at, high }: { at: Scale; high: number }) {
  return (
    <>
      {labels(at, 0.08).map((m) => (
        <line key={m} class="rule" x1={at(m)} x2={at(m)} y1="0" y2={high} />
      ))}
    </>
  )
}

function Ticks({ at }: { at: Scale }) {
  const few = labels(at, 0.22)
  return (
    <div class="lined" aria-hidden="true">
      <span />
      <div class="times">
        <span class="first">0</span>
        {labels(at, 0.08).map((m) => (
          <span key={m} class={(few.includes(m) ? '' : 'thin ') + (m === at.from ? 'first' : m === at.to ? 'last' : '')} style={{ left: (at(m) / wide) * 100 + '%' }}>
            {time(m)}
          </span>
        ))}
      </div>
    </div>
  )
}

function Bands({ of, at }: { of: Answer; at: Scale }) {
  const last = of.attempts.at(-1)
  if (!last) return null
  const takes = of.gives_up.least - last.begins.least
  const rows = [...of.attempts.map((a) => ({ name: String(a.attempt), when: a.begins, peak: count(a.peak) })), { name: 'gives up', when: of.gives_up, peak: '' }]
  const high = rows.length * row
  const numbers = ({ least, p10, p50, p90, most }: Percentiles) => [least, p10, p50, p90, most]
  return (
    <Figure
      title="When attempts begin"
      about={'light: earliest to latest, dark: eight clients in ten, line: half of them' + (takes > 0 ? ', thin: how long an attempt lasts' : '')}
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
            {rows.map(({ name, when, peak }) => (
              <tr key={name}>
                <th scope="row" class="num">
                  {name}
                </th>
                {numbers(when).map((s, i) => (
                  <td class="num" key={i}>
                    {time(s)}
                  </td>
                ))}
                <td class="num">{peak}</td>
              </tr>
            ))}
          </tbody>
        </table>
      }
    >
      <div class="lined">
        <ol aria-hidden="true">
          {rows.map(({ name }) => (
            <li key={name}>{name}</li>
          ))}
        </ol>
        <svg class="bands" viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" style={{ height: high + 'px' }} role="img" aria-label={`${of.attempts.length} attempts; the last begins after ${between(last.begins)}; gives up after ${between(of.gives_up)}`}>
          <Axis at={at} high={high} />
          {rows.map(({ name, when, peak }, i) => {
            const bar = (from: number, to: number, look: string, thin = 0) => <rect class={look} x={at(from)} width={Math.max(2, at(to) - at(from))} y={i * row + 3 + thin} height={row - 6 - 2 * thin} />
            return (
              <g key={name} class={peak ? undefined : 'end'}>
                <title>{`${peak && 'attempt '}${name}: ${between(when)}, half of them by ${time(when.p50)}`}</title>
                {bar(when.least, when.most, 'band')}
                {bar(when.p10, when.p90, 'core')}
                {peak && takes > 0 && bar(when.p50, when.p50 + takes, 'lasts', 4)}
                <rect class="half" x={Math.max(0, at(when.p50) - 1)} width="2" y={i * row + 1} height={row - 2} />
              </g>
            )
          })}
        </svg>
      </div>
      <Ticks at={at} />
    </Figure>
  )
}

type Look = 'with_jitter' | 'without_jitter'

function Crowd({ of, at }: { of: Answer; at: Scale }) {
  const last = of.attempts.at(-1)
  const jitter = last && last.begins.least < last.begins.most
  const looks: [Look, string][] = jitter ? [['with_jitter', 'With jitter'], ['without_jitter', 'Without jitter']] : [['without_jitter', 'No jitter']]
  const most = Math.max(...looks.map(([look]) => of.peak[look]), 1)
  return (
    <Figure
      title={`${count(of.clients)} clients that fail together`}
      about={'how many try again within a tenth of a second; in the worst one ' + (jitter ? `${count(of.peak.with_jitter)} with jitter, ${count(of.peak.without_jitter)} without` : `${count(of.peak.without_jitter)}: this policy has no jitter`)}
      table={
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              {looks.map(([look, name]) => (
                <th scope="col" class="num" key={look}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {of.crowd.filter((b) => looks.some(([look]) => b[look])).map((b) => (
              <tr key={b.from}>
                <td>{time(b.from)}</td>
                <td>{time(b.to)}</td>
                {looks.map(([look]) => (
                  <td class="num" key={look}>
                    {count(b[look])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      }
    >
      {looks.map(([look, name]) => (
        <div class="lined" key={look}>
          <span>{count(most)}</span>
          <div>
            <svg class={'crowd ' + look} viewBox={`0 0 ${wide} 60`} preserveAspectRatio="none" role="img" aria-label={`${name}: at most ${count(of.peak[look])} try again within a tenth of a second`}>
              <Axis at={at} high={60} />
              {of.crowd.map((b) => {
                const high = (b[look] / most) * 60
                return high > 0 && (
                  <rect key={b.from} x={at(b.from)} width={Math.max(1, at(b.to) - at(b.from) - 1)} y={60 - Math.max(high, 1)} height={Math.max(high, 1)}>
                    <title>{`${time(b.from)} to ${time(b.to)}: ${count(b[look])} within a tenth of a second`}</title>
                  </rect>
                )
              })}
            </svg>
            <span class="fine">{name}</span>
          </div>
        </div>
      ))}
      <Ticks at={at} />
    </Figure>
  )
}
