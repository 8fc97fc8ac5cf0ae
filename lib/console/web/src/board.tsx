// The board of a queue: where each message stands, by state and priority. One that comes to stand elsewhere moves there.
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { still } from './player'

export const priorities = ['high', 'normal', 'low'] as const
export const places = ['delayed', 'ready', 'taken'] as const
export type Place = (typeof places)[number]

/** Piece is a message on the board; key is its own, text what is written on it. Those of one place and priority stand in their order. */
export interface Piece {
  key: string
  text: string
  place: Place
  priority: string
}

const most = { numbers: 48, names: 24 } // of one place and priority that are drawn

/** tell says in words how many are where. */
export const tell = (count: Record<Place, number>): string => places.map((p) => `${count[p].toLocaleString('en')} ${p}`).join(', ')

/** useMoves has what came to stand elsewhere glide there, by where it is laid out, and what is new appear. Whoever wants less motion gets neither. */
function useMoves(board: RefObject<HTMLDivElement>): void {
  const before = useRef(new Map<string, { x: number; y: number }>())
  useLayoutEffect(() => {
    const now = new Map<string, { x: number; y: number }>()
    for (const piece of board.current?.querySelectorAll<HTMLElement>('[data-piece]') ?? []) {
      const key = piece.dataset.piece ?? ''
      const at = { x: piece.offsetLeft, y: piece.offsetTop }
      const was = before.current.get(key)
      now.set(key, at)
      if (still() || !before.current.size || (was && was.x === at.x && was.y === at.y)) continue
      piece.animate(was ? [{ transform: `translate(${was.x - at.x}px, ${was.y - at.y}px)` }, { transform: 'none' }] : [{ opacity: 0, transform: 'scale(.6)' }, { opacity: 1, transform: 'none' }], { duration: 320, easing: 'ease-out' })
    }
    before.current = now
  })
}

/** Board is a picture for those who see; what it shows is told beside it, in words and as a table. */
export function Board({ pieces, counts, of }: { pieces: Piece[]; counts: Record<string, Record<Place, number>>; of: keyof typeof most }) {
  const board = useRef<HTMLDivElement>(null)
  useMoves(board)
  return (
    <div class={'board ' + of} aria-hidden="true" ref={board}>
      <b />
      {places.map((p) => (
        <b key={p} class={'of-' + p}>
          {p}
        </b>
      ))}
      {priorities.map((priority) => [
        <b key={priority}>{priority}</b>,
        ...places.map((place) => {
          const here = pieces.filter((m) => m.place === place && m.priority === priority)
          const more = (counts[priority]?.[place] ?? 0) - Math.min(here.length, most[of])
          return (
            <div key={priority + place} class="place">
              {here.slice(0, most[of]).map((m) => (
                <span key={m.key} class={'piece of-' + place} data-piece={m.key} title={m.key}>
                  {m.text}
                </span>
              ))}
              {more > 0 && <i>and {more.toLocaleString('en')} more</i>}
            </div>
          )
        }),
      ])}
    </div>
  )
}
