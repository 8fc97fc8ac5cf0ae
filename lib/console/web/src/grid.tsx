// A list of rows of one height, of which only those in sight are elements.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { step, walk } from './keys'
import { go } from './router'

export interface Column {
  name: string // class of its cells
  head: string
}

/** Picking is which rows are selected, while rows are selected. */
export interface Picking {
  on: boolean
  ids: ReadonlySet<string>
  toggle: (id: string) => void
  set: (on: boolean, ids?: string[]) => void
}

/** usePicking has no row selected to begin with, and when identity has changed: rows go on being selected then. */
export function usePicking(identity: string): Picking {
  const [state, setState] = useState({ identity, on: false, ids: new Set<string>() })
  const now = state.identity === identity ? state : { identity, on: state.on, ids: new Set<string>() }
  return {
    on: now.on,
    ids: now.ids,
    toggle: (id) => {
      const ids = new Set(now.ids)
      if (!ids.delete(id)) ids.add(id)
      setState({ identity, on: true, ids })
    },
    set: (on, ids = []) => setState({ identity, on, ids: new Set(ids) }),
  }
}

/** Picks are the buttons that begin and end to select rows, and select all that are loaded: more says that there are others. */
export function Picks({ of, ids, more = false }: { of: Picking; ids: string[]; more?: boolean }) {
  return (
    <>
      <button type="button" class="act" aria-pressed={of.on} onClick={() => of.set(!of.on)}>
        Select
      </button>
      {of.on && (
        <button type="button" class="act" onClick={() => of.set(true, ids)}>
          All {ids.length.toLocaleString('en')}
          {more && ' loaded'}
        </button>
      )}
    </>
  )
}

interface Props {
  label: string
  kind: string // class that lays out the columns
  columns: Column[]
  ids: string[]
  total?: number
  cells: (id: string, index: number) => ComponentChildren[]
  href?: (id: string) => string
  end?: () => void // the last rows are in sight
  sight?: (ids: string[]) => void // told which rows are elements
  scroll?: boolean // it has the rest of the window, and scrolls by itself
  busy?: { current: boolean } // told whether somebody is at it
  picking?: Picking
}

const wide = matchMedia('(min-width: 720px)')
const over = 1 // rows drawn beyond what is in sight

export function Grid({ label, kind, columns, ids, total, cells, href, end, sight, scroll = false, busy, picking }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [room, setRoom] = useState(600)
  const [tall, setTall] = useState(wide.matches ? 32 : 54)
  const [at, setAt] = useState('')

  useLayoutEffect(() => {
    const changed = () => setTall(wide.matches ? 32 : 54)
    wide.addEventListener('change', changed)
    const element = box.current
    const seen = new ResizeObserver(() => element && setRoom(element.clientHeight))
    if (element && scroll) {
      setRoom(element.clientHeight)
      seen.observe(element)
    }
    return () => {
      wide.removeEventListener('change', changed)
      seen.disconnect()
    }
  }, [scroll])

  const latest = useRef({ ids, at, tall, picking })
  latest.current = { ids, at, tall, picking }
  useLayoutEffect(
    () =>
      walk({
        move: (by) => {
          const { ids, at, tall } = latest.current
          if (!ids.length) return
          const here = ids.indexOf(at)
          const next = Math.max(0, Math.min(ids.length - 1, here < 0 ? 0 : here + by))
          setAt(ids[next] ?? '')
          const element = box.current
          if (!element) return
          if (!scroll) {
            element.querySelectorAll('[role=row]')[next + 1]?.scrollIntoView({ block: 'nearest' })
            return
          }
          const head = 30
          if (next * tall < element.scrollTop) element.scrollTop = next * tall
          else if ((next + 1) * tall + head > element.scrollTop + element.clientHeight) element.scrollTop = (next + 1) * tall + head - element.clientHeight
        },
        open: () => {
          const { at, ids } = latest.current
          if (at && href && ids.includes(at)) go(href(at))
        },
        pick: () => {
          const { at, ids, picking } = latest.current
          if (ids.includes(at)) picking?.toggle(at)
        },
      }),
    [scroll, href],
  )

  const picks = picking?.on ?? false
  useLayoutEffect(() => {
    if (!picks) return
    const escape = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || document.querySelector('dialog[open]') || (event.target as Element).closest('input, select, textarea')) return
      latest.current.picking?.set(false)
    }
    document.addEventListener('keydown', escape)
    return () => document.removeEventListener('keydown', escape)
  }, [picks])

  const first = scroll ? Math.max(0, Math.floor(top / tall) - over) : 0
  const last = scroll ? Math.min(ids.length, Math.ceil((top + room) / tall) + over) : ids.length
  useEffect(() => {
    if (end && ids.length && last >= ids.length - 20) end()
  }, [last, ids.length])

  const seen = ids.slice(first, last)
  useEffect(() => sight?.(seen), [seen.join(' ')])

  const over_ = (is: boolean) => {
    if (busy) busy.current = is || (box.current?.scrollTop ?? 0) > 0
  }
  const picked = ids.indexOf(at)
  return (
    <>
      {picks && <p class="fine">A click selects a row, with Shift all rows up to it. Select again, or Escape, ends that: then a click opens a row.</p>}
      <div
        ref={box}
        class={'grid ' + kind + (scroll ? ' scrolls' : '') + (picking?.on ? ' picks' : '')}
        role="grid"
        aria-label={label}
        aria-rowcount={(total ?? ids.length) + 1}
        aria-multiselectable={picking?.on}
        aria-activedescendant={picked >= first && picked < last ? kind + '-' + picked : undefined}
        tabIndex={0}
        onScroll={(event) => {
          setTop(event.currentTarget.scrollTop)
          over_(event.currentTarget.scrollTop > 0)
        }}
        onPointerEnter={() => over_(true)}
        onPointerLeave={() => over_(false)}
        onFocus={() => over_(true)}
        onBlur={() => over_(false)}
        onKeyDown={(event) => {
          const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          const picks = event.key === ' ' && picking?.on && ids.includes(at)
          if ((!by && !picks) || event.target !== event.currentTarget) return
          event.preventDefault()
          if (by) step(by)
          else picking?.toggle(at)
        }}
      >
        <div role="row" class="head" aria-rowindex={1}>
          {columns.map((c) => (
            <div role="columnheader" key={c.name} class={c.name}>
              {c.head}
            </div>
          ))}
        </div>
        <div role="rowgroup" class="rows" style={scroll ? { height: ids.length * tall + 'px' } : undefined}>
          {seen.map((id, i) => {
            const index = first + i
            return (
              // Keys do the same: j, k and Enter; and the row's first cell is a link.
              // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
              <div
                role="row"
                key={id}
                id={kind + '-' + index}
                aria-rowindex={index + 2}
                aria-selected={picking?.on ? picking.ids.has(id) : id === at}
                class={id === at ? 'at' : undefined}
                style={scroll ? { top: index * tall + 'px' } : undefined}
                onClick={
                  href
                    ? (event) => {
                        if (picking?.on && !event.ctrlKey && !event.metaKey) {
                          event.preventDefault()
                          setAt(id)
                          const from = ids.indexOf(at)
                          if (event.shiftKey && from >= 0) picking.set(true, [...picking.ids, ...ids.slice(Math.min(from, index), Math.max(from, index) + 1)])
                          else picking.toggle(id)
                          return
                        }
                        if ((event.target as Element).closest('a, button') || getSelection()?.toString()) return
                        go(href(id))
                      }
                    : undefined
                }
              >
                {cells(id, index).map((cell, n) => (
                  <div role="gridcell" key={n} class={columns[n]?.name}>
                    {cell}
                  </div>
                ))}
              </div>
            )
          })}
        </div>
      </div>
    </>
  )
}
