// Cells in rows and columns, each a number seen at a glance. Arrows go from cell to cell, and each says in words what it is.
import { useRef, useState } from 'preact/hooks'

export interface Cell {
  look: string // classes
  told: string // in words, for those who point at it or hear it
  text?: string // what stands in it
  href?: string
}

interface Part {
  rows: string[]
  columns: string[] // '' for one without a heading
  cells: (Cell | undefined)[][] // by row
  label: string
  look: string
  told: (text: string) => void // what is pointed at, '' for nothing
}

/** Heat is a grid with one place that the tab key leads to. A cell with an href is a link. */
export function Heat({ rows, columns, cells, label, look, told }: Part) {
  const [at, setAt] = useState<[number, number]>()
  const table = useRef<HTMLTableElement>(null)
  // Until somebody has gone somewhere it is the last cell.
  const last = cells.reduce<[number, number]>((found, row, r) => row.reduce<[number, number]>((f, cell, c) => (cell && c >= f[1] ? [r, c] : f), found), [0, -1])
  const [row, column] = at && cells[at[0]]?.[at[1]] ? at : last
  const go = (event: KeyboardEvent) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] }[event.key]
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    let [r, c] = [row, column]
    const wide = cells[r]?.length ?? 0
    if (!Number.isFinite(by[1])) {
      const found = (cells[r] ?? []).map((cell, n) => (cell ? n : -1)).filter((n) => n >= 0)
      c = (event.key === 'Home' ? found[0] : found.at(-1)) ?? c
    } else {
      do {
        r += by[0] ?? 0
        c += by[1] ?? 0
      } while (r >= 0 && r < cells.length && c >= 0 && c < wide && !cells[r]?.[c])
    }
    if (!cells[r]?.[c]) return
    setAt([r, c])
    table.current?.querySelector<HTMLElement>(`[data-at="${r} ${c}"]`)?.focus()
  }
  const headed = columns.some(Boolean)
  return (
    // The cells take the focus; keys come up from them.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-to-interactive-role
    <table class={'heat ' + look} role="grid" aria-label={label} ref={table} onKeyDown={go} onPointerLeave={() => told('')} onBlur={() => told('')}>
      {headed && (
        <thead>
          <tr>
            <td />
            {columns.map((name, c) =>
              name ? (
                <th key={c} scope="col">
                  {name}
                </th>
              ) : (
                <td key={c} />
              ),
            )}
          </tr>
        </thead>
      )}
      <tbody>
        {cells.map((of, r) => (
          <tr key={r}>
            <th scope="row">
              <span>{rows[r]}</span>
            </th>
            {of.map((cell, c) => {
              if (!cell) return <td key={c} />
              const given = {
                class: cell.look,
                'data-at': `${r} ${c}`,
                tabIndex: r === row && c === column ? 0 : -1,
                'aria-label': cell.told,
                onPointerEnter: () => told(cell.told),
                onFocus: () => {
                  setAt([r, c])
                  told(cell.told)
                },
              }
              return (
                <td key={c}>
                  {cell.href ? (
                    <a href={cell.href} {...given}>
                      {cell.text}
                    </a>
                  ) : (
                    <span role="img" {...given}>
                      {cell.text}
                    </span>
                  )}
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** strength puts a number among 0 for none and 1 to 4, by its logarithm: so few and many can be told apart beside very many. */
export function strength(n: number, most: number): number {
  if (n <= 0) return 0
  if (most <= 1) return 4
  return 1 + Math.round((3 * Math.log(Math.min(n, most))) / Math.log(most))
}
