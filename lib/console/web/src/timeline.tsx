// A run in time, from when it was due to its end: what waited, what ran, what is to come. Long waits are folded, so that what
// happened can be seen beside them.
import { now } from './clock'
import { isOpen, type Run } from './model'
import { instant, parse, short, span, zoneFor } from './time'

interface Part {
  kind: string // class
  from: number
  to: number
  words: string
  open?: boolean
}

export function partsOf(run: Run, at: number): Part[] {
  const parts: Part[] = []
  const due = parse(run.nominal_time)
  let last = due
  for (const a of run.attempts) {
    const from = parse(a.started_at)
    if (Number.isNaN(from)) continue
    const end = parse(a.ended_at)
    const first = a.attempt === 1
    if (from > last) parts.push({ kind: 'wait', from: last, to: from, words: first ? 'waited' : 'between attempts' })
    const to = Number.isNaN(end) ? Math.max(at, from) : end
    parts.push({ kind: 'o-' + a.outcome, from, to, words: `attempt ${a.attempt} ${a.outcome.replaceAll('_', ' ')}`, open: Number.isNaN(end) })
    last = Math.max(last, to)
  }
  const next = parse(run.next_attempt_at)
  if (run.state === 'retrying' && next > last) parts.push({ kind: 'next', from: last, to: next, words: 'until the next attempt' })
  if ((run.state === 'queued' || run.state === 'scheduled') && at > last) parts.push({ kind: 'wait', from: last, to: at, words: 'waits', open: true })
  return parts
}

const wide = 1000
const tall = 34

export function Timeline({ run, where }: { run: Run; where?: string }) {
  const moving = isOpen(run.state)
  const at = moving ? now.value : 0
  const parts = partsOf(run, at)
  if (!parts.length) return null
  // A wait counts for no more than what ran in all, so that an hour of waiting does not hide a second of work.
  const ran = parts.filter((p) => p.kind.startsWith('o-')).reduce((sum, p) => sum + (p.to - p.from), 0)
  const cap = Math.max(ran, 1000)
  const weight = (p: Part) => Math.max(p.kind.startsWith('o-') ? p.to - p.from : Math.min(p.to - p.from, cap), 1)
  const sum = parts.reduce((n, p) => n + weight(p), 0)
  const least = Math.min(14, wide / parts.length / 2)
  const spare = wide - least * parts.length
  let x = 0
  const zone = zoneFor(where)
  const told = parts.map((p) => `${p.words} ${span(p.to - p.from)}`).join(', ')
  return (
    <figure class="timeline">
      <svg viewBox={`0 0 ${wide} ${tall}`} preserveAspectRatio="none" role="img" aria-label={'Course: ' + told}>
        {parts.map((p, i) => {
          const width = least + (weight(p) / sum) * spare
          const from = x
          x += width
          const folded = !p.kind.startsWith('o-') && p.to - p.from > cap
          return (
            <g key={i} class={p.kind}>
              <title>{`${p.words}: ${span(p.to - p.from)}`}</title>
              <rect x={from + 1} y={p.kind.startsWith('o-') ? 4 : 13} width={Math.max(2, width - 2)} height={p.kind.startsWith('o-') ? tall - 8 : 8} rx="2" />
              {folded && <path class="fold" d={`M${from + width / 2 - 6} 8l4 18M${from + width / 2 + 2} 8l4 18`} />}
            </g>
          )
        })}
      </svg>
      <figcaption>
        <span>
          due {instant(parts[0]?.from ?? 0, now.value, zone)} {short(zone)}
        </span>
        <ul>
          {parts.map((p, i) => (
            <li key={i} class={p.kind}>
              {p.words} <b>{span(p.to - p.from)}</b>
            </li>
          ))}
        </ul>
        <span>
          {moving && parts.at(-1)?.kind !== 'next' ? 'now' : instant(parts.at(-1)?.to ?? 0, now.value, zone) + ' ' + short(zone)}
        </span>
      </figcaption>
    </figure>
  )
}
