// Runs that were given up, by what they said: the same error with other numbers in it is the same cause.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get } from '../api'
import { Discard, Redrive } from '../bulk'
import { Button, open as ask } from '../dialog'
import { Grid, Picks, usePicking, type Column } from '../grid'
import { askAgain, useHeld, useLive, useSettled } from '../live'
import { query, to, withQuery } from '../router'
import { parse } from '../time'
import { Ago, Command, Empty, Fresh, Instant, pending, Refused, RunLink, State, Waiting } from '../ui'

interface Letter {
  id: string
  job: string
  state: string
  ended_at: string
  error?: string
}

interface Group {
  pattern: string
  sample: string
  run: string
  count: number
  jobs: string[]
  job_count: number
  first_at: string
  last_at: string
}

/** Groups is what the server says of dead letters by cause. */
export interface Groups {
  items: Group[]
  looked_at: number
  more: boolean
  more_groups?: number
}

export function DeadLetters() {
  const chosen = query.value.get('pattern')
  const live = useLive('dead letters', async (stop) => (await get<Groups>('/dead-letters/groups', {}, stop)).data, 4000, ['dead-letters'])
  const { shown: data, hold } = useHeld(live.data)
  const causes = (data?.items.length ?? 0) + (data?.more_groups ?? 0)
  // Causes keep their places under a pointer; what is told of each does not wait.
  const now = new Map(live.data?.items.map((g) => [g.pattern, g]))
  const groups = data?.items.map((g) => now.get(g.pattern) ?? g)
  const open = groups?.find((g) => g.pattern === chosen)
  return (
    <section class="page">
      <header class="bar">
        <h1>Dead letters</h1>
        <span class="count">
          {data && data.looked_at > 0 && `${data.more ? 'newest ' : ''}${data.looked_at.toLocaleString('en')}, ${causes} ${causes === 1 ? 'cause' : 'causes'}`}
        </span>
      </header>
      <Refused error={live.error} />
      {!data && pending(live.error) && <Waiting />}
      {data?.looked_at === 0 && <Empty command="belfry dead-letter list">No run has been given up. One that fails for good, or as often as its job allows, is kept here.</Empty>}
      <div {...hold}>
        <ul class="groups">
          {groups?.map((g) => (
            <li key={g.pattern} class={g === open ? 'at' : undefined}>
              <a href={withQuery(to('dead-letters'), { pattern: g === open ? undefined : g.pattern })} aria-expanded={g === open}>
                <b class="num">{g.count.toLocaleString('en')}</b>
                <span class="said">{g.count === 1 ? g.sample || 'without an error' : g.pattern || 'without an error'}</span>
              </a>
              <p class="fine">
                {g.jobs.slice(0, 3).map((j, i) => (
                  <>
                    {i > 0 && ', '}
                    <a href={to('jobs', j)}>{j}</a>
                  </>
                ))}
                {g.job_count > 3 && ` and ${g.job_count - 3} more`}
                {' · '}newest <Instant at={g.last_at} /> <Ago at={g.last_at} />
                {g.count > 1 && (
                  <>
                    {' · '}oldest <Ago at={g.first_at} />
                  </>
                )}
              </p>
              {g === open && <Opened of={g} />}
            </li>
          ))}
        </ul>
      </div>
      {data && data.looked_at > 0 && (
        <details class="cli">
          <summary>In a terminal</summary>
          <Command text="belfry dead-letter list" />
          <Command text="belfry dead-letter redrive --help" />
        </details>
      )}
    </section>
  )
}

const columns: Column[] = [
  { name: 'c-state', head: 'State' },
  { name: 'c-run', head: 'Run' },
  { name: 'c-due', head: 'Ended' },
  { name: 'c-why', head: 'Last error' },
]

interface Newest {
  items: Letter[]
  next?: string
}

const first = 20
const more = 100
const most = 520 // that are listed: all of them can be redriven and discarded without

function Opened({ of }: { of: Group }) {
  const [limit, setLimit] = useState(first)
  const live = useLive('dead letters of ' + of.pattern, async (stop) => (await get<Newest>('/dead-letters', { pattern: of.pattern, limit }, stop)).data, 10_000, ['dead-letters'])
  useEffect(() => {
    if (limit > first) askAgain()
  }, [limit])
  const newest = live.data?.items ?? []
  const busy = useRef(false)
  const picking = usePicking(of.pattern)
  const settled = useSettled(live.data && newest.map((r) => r.id), of.pattern, () => busy.current || picking.on)
  const known = useRef(new Map<string, Letter>()) // those of settled rows that newer ones have pushed out, too
  for (const r of newest) known.current.set(r.id, r)
  // What is gone from among the newest has been redriven or discarded.
  const there = new Set(newest.map((r) => r.id))
  const gone = (r: Letter) => live.data !== undefined && !there.has(r.id) && (!live.data.next || parse(r.ended_at) > parse(newest.at(-1)?.ended_at))
  const picked = [...picking.ids]
  const count = picking.on ? picked.length : of.count
  // A count of the newest 5,000 may be of more: the dialog counts all.
  const chosen = picking.on ? { runs: picked, last: newest[0]?.ended_at, name: 'selected dead letters' } : { pattern: of.pattern, newest: of.count > 1 ? of.run : undefined, last: of.last_at, name: `“${of.pattern}”` }
  // Without a pattern, all would match.
  const why = picking.on ? (picked.length ? undefined : 'Select runs first.') : of.pattern ? undefined : 'These have no error to choose them by. Select them instead.'
  if (!live.data) return live.error ? <Refused error={live.error} small /> : <Waiting />
  return (
    <>
      <div class="acts">
        <Button scope="run" why={why} act={() => ask(<Redrive of={chosen} />)}>
          Redrive {count.toLocaleString('en')}…
        </Button>
        <Button scope="run" why={why} act={() => ask(<Discard of={chosen} />)}>
          Discard {count.toLocaleString('en')}…
        </Button>
        <Picks of={picking} ids={settled.ids} more={Boolean(live.data.next)} />
        <Fresh count={settled.fresh} apply={settled.apply} />
      </div>
      <Grid
        label="Newest runs with this error"
        kind="g-dead"
        columns={columns}
        ids={settled.ids}
        cells={(id) => {
          const r = known.current.get(id)
          if (!r) return [id]
          return [gone(r) ? <span class="none">settled</span> : <State of={r.state} />, <RunLink id={id} />, <Instant at={r.ended_at} />, gone(r) ? 'no longer a dead letter' : r.error ?? '']
        }}
        href={(id) => to('runs', id)}
        busy={busy}
        picking={picking}
      />
      {live.data.next && (
        <p class="fine">
          The newest {newest.length.toLocaleString('en')} of {of.count.toLocaleString('en')}.{' '}
          {limit < most ? (
            <button type="button" class="plain" onClick={() => setLimit(newest.length + more)}>
              Show {more} more
            </button>
          ) : (
            'The buttons above are about all of them, unless you select.'
          )}
        </p>
      )}
    </>
  )
}
