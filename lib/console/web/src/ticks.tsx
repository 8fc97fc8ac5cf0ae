// The last runs of a job as marks, oldest first: their height is how long they took, their shape and colour what became of them.
import { isBad, isOpen, type State } from './model'

export interface Mark {
  state: State
  ms: number // how long it took or has taken; NaN where that is not known
}

const kinds = ['ok', 'open', 'off', 'bad'] as const

export function Ticks({ marks }: { marks: Mark[] }) {
  if (!marks.length) return null
  const shown = marks.slice(0, 10).reverse()
  const most = Math.max(...shown.map((m) => (Number.isNaN(m.ms) ? 0 : m.ms)), 1)
  const paths = { ok: '', open: '', off: '', bad: '' }
  shown.forEach(({ state, ms }, i) => {
    const kind = isOpen(state) ? 'open' : isBad(state) ? 'bad' : state === 'succeeded' ? 'ok' : 'off'
    const height = Number.isNaN(ms) ? 4 : 5 + 9 * Math.sqrt(Math.max(0, ms) / most)
    paths[kind] += `M${i * 8 + 1} ${20 - height}h5v${height}h-5z`
    if (kind === 'bad') paths.bad += `M${i * 8} 0l7 0l-3.5 5z`
  })
  const told = 'Last runs, oldest first: ' + shown.map((m) => m.state).join(', ')
  return (
    <svg class="ticks" width="80" height="20" role="img" aria-label={told}>
      {kinds.map((k) => paths[k] && <path key={k} class={'t-' + k} d={paths[k]} />)}
    </svg>
  )
}
