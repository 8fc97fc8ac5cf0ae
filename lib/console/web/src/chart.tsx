// What charts over time share: bars or lines that are stretched over as many bins as there are, one crosshair, and its way by pointer and keys.
import { stretches } from './stats'

export const wide = 600 // of a chart's own units, by which it is stretched

/** Under says of a chart how many bins it has, at which the crosshair stands, and which are chosen; -1 for none. */
export interface Under {
  bins: number
  at: number
  first?: number
  last?: number
}

/** Ground is what all charts have behind and before what they show. */
export function Ground({ bins, at, first = -1, last = -1, tall }: Under & { tall: number }) {
  const w = wide / bins
  return (
    <>
      <path class="rule" d={`M0 .5H${wide}M0 ${tall / 2}H${wide}M0 ${tall - 0.5}H${wide}`} />
      {first >= 0 && <rect class="brushed" x={first * w} y="0" width={(last - first + 1) * w} height={tall} />}
      {at >= 0 && <rect class="cursor" x={at * w} y="0" width={w} height={tall} />}
    </>
  )
}

/** line is the path through the middles of bins. share says how high a value stands, from 0 to 1; a bin without a value is a gap. */
export function line(values: (number | undefined)[], tall: number, share: (value: number) => number): string {
  const w = wide / values.length
  return stretches(values)
    .map(({ from, values: part }) => 'M' + part.map((v, i) => `${(from + i + 0.5) * w} ${tall - share(v) * (tall - 2) - 1}`).join('L') + (part.length === 1 ? 'h.01' : ''))
    .join('')
}

/** place is the bin under a pointer. */
export function place(event: PointerEvent & { currentTarget: HTMLElement }, bins: number): number {
  const box = event.currentTarget.getBoundingClientRect()
  return Math.max(0, Math.min(bins - 1, Math.floor(((event.clientX - box.left) / box.width) * bins)))
}

/** moved is the bin that a key leads to, from the one at which the crosshair stands; undefined for other keys. */
export function moved(event: KeyboardEvent, at: number, bins: number): number | undefined {
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key]
  if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return undefined
  return Math.max(0, Math.min(bins - 1, (at < 0 ? bins : at) + by))
}
