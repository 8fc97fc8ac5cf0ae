// The next fires of a job that is being written, or taken over.
import { now } from './clock'
import type { Shown } from './draft'
import { Clock, idle, marked } from './pages/job'
import { civil, dayIn, parse, zoneFor } from './time'
import { Ago } from './ui'
import { on } from './words'

export function FireList({ of, most = 10 }: { of: Shown; most?: number }) {
  const where = of.timezone
  if (!of.fires.length) return <p class="nothing">{of.idle === 'on_demand' ? 'It runs only when somebody asks for it.' : (idle[of.idle ?? ''] ?? 'None.')}</p>
  return (
    <ol class="fires">
      {of.fires.slice(0, most).map((f) => (
        <li key={f.at}>
          <span class="day">{dayIn(parse(f.at), zoneFor(where)).replace(` ${civil(now.value, zoneFor(where)).year}`, '')}</span> <Clock at={f.at} where={where} ahead /> <Ago at={f.at} />
          {f.mark && <span class="mark">{marked(f)}</span>}
        </li>
      ))}
    </ol>
  )
}

/** said is a schedule in words, as a sentence. */
export const said = (of: Shown): string => on(of.description ?? '').replace(/^./, (c) => c.toUpperCase())
