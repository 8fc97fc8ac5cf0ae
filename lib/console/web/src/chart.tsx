// Runs a minute by what became of them, as bars one upon the other.
import { useState } from 'preact/hooks'
import type { Run, State } from './model'
import { instant, parse, short, zoneFor } from './time'
import { now } from './clock'

const kinds: { name: string; states: State[] }[] = [
  { name: 'succeeded', states: ['succeeded'] },
  { name: 'under way', states: ['running', 'retrying', 'queued', 'waiting', 'scheduled'] },
  { name: 'cancelled or skipped', states: ['cancelled', 'skipped'] },
  { name: 'failed', states: ['failed', 'dead', 'unknown'] },
]
const minutes = 60
const tall = 120

export function Outcomes({ runs, since }: { runs: Run[]; since: number }) {
  const [at, setAt] = useState(-1)
  const [table, setTable] = useState(false)
  const zone = zoneFor()
  const last = Math.floor(now.value / 60_000)
  const bins = Array.from({ length: minutes }, (_, i) => ({ minute: last - minutes + 1 + i, counts: kinds.map(() => 0) }))
  for (const run of runs) {
    const bin = bins[Math.floor(parse(run.nominal_time) / 60_000) - (bins[0]?.minute ?? 0)]
    const kind = kinds.findIndex((k) => k.states.includes(run.state))
    if (bin && kind >= 0) bin.counts[kind] = (bin.counts[kind] ?? 0) + 1
  }
  const sums = bins.map((b) => b.counts.reduce((n, m) => n + m, 0))
  const most = nice(Math.max(...sums, 1))
  const totals = kinds.map((_, k) => bins.reduce((n, b) => n + (b.counts[k] ?? 0), 0))
  const known = Math.floor(since / 60_000)
  const clock = (minute: number) => instant(minute * 60_000, now.value, zone, false)
  const told = bins[at]
  return (
    <figure class="chart">
      <figcaption>
        <ul class="legend">
          {kinds.map((k, i) => (
            <li key={k.name} class={'k-' + i}>
              {k.name} <b>{(told ? told.counts[i] : totals[i])?.toLocaleString('en')}</b>
            </li>
          ))}
        </ul>
        <span class="fine">{told ? `${clock(told.minute)} ${short(zone)}` : `last hour, by the minute, ${short(zone)}`}</span>
        <button type="button" class="plain" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? 'As a chart' : 'As a table'}
        </button>
      </figcaption>
      {table ? (
        <div class="scroller short" tabIndex={0} role="region" aria-label="Runs a minute">
          <table>
            <thead>
              <tr>
                <th scope="col">Minute</th>
                {kinds.map((k) => (
                  <th scope="col" class="num" key={k.name}>
                    {k.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...bins].reverse().map((b, i) =>
                sums[minutes - 1 - i] ? (
                  <tr key={b.minute}>
                    <td>
                      {clock(b.minute)} {short(zone)}
                    </td>
                    {b.counts.map((n, k) => (
                      <td class="num" key={k}>
                        {n}
                      </td>
                    ))}
                  </tr>
                ) : null,
              )}
            </tbody>
          </table>
        </div>
      ) : (
        <svg
          viewBox={`0 0 ${minutes * 10} ${tall}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={'Runs of the last hour: ' + kinds.map((k, i) => `${totals[i]} ${k.name}`).join(', ')}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect()
            setAt(Math.max(0, Math.min(minutes - 1, Math.floor(((event.clientX - box.left) / box.width) * minutes))))
          }}
          onPointerLeave={() => setAt(-1)}
        >
          <path class="rule" d={`M0 .5H${minutes * 10}M0 ${tall / 2}H${minutes * 10}M0 ${tall - 0.5}H${minutes * 10}`} />
          {known > (bins[0]?.minute ?? 0) && <rect class="unknown" x="0" y="0" height={tall} width={Math.min(minutes, known - (bins[0]?.minute ?? 0)) * 10} />}
          {kinds.map((_, k) => (
            <path key={k} class={'k-' + k} d={bins.map((b, i) => bar(b.counts, k, i, most)).join('')} />
          ))}
          {at >= 0 && <rect class="cursor" x={at * 10} y="0" width="10" height={tall} />}
        </svg>
      )}
      <div class="axis" aria-hidden="true">
        <span>{clock(last - minutes + 1)}</span>
        <span>{clock(last - minutes / 2 + 1)}</span>
        <span>{clock(last)}</span>
        <b>{most}</b>
      </div>
    </figure>
  )
}

function bar(counts: number[], kind: number, i: number, most: number): string {
  const n = counts[kind] ?? 0
  if (!n) return ''
  const below = counts.slice(0, kind).reduce((a, b) => a + b, 0)
  const y = tall - ((below + n) / most) * tall
  return `M${i * 10 + 1} ${y}h8v${(n / most) * tall}h-8z`
}

// The next of 1, 2, 5, 10, 20…, so that the scale does not change with each run.
function nice(n: number): number {
  for (let size = 1; ; size *= 10) for (const step of [1, 2, 5]) if (step * size >= n) return step * size
}
