// A queue, message by message: that of the server, as it is now, and one that made-up load is played through.
import '../app'
import { query, to, withQuery } from '../router'
import { Live } from '../queuelive'
import { Played } from '../queueplayed'

export function QueueTool() {
  const made = query.value.get('load') === 'made'
  const here = to('tools', 'queue')
  return (
    <>
      <nav class="views" aria-label="What is drawn">
        <a class="chip" href={here} aria-current={made ? undefined : 'page'}>
          This server, live
        </a>
        <a class="chip" href={withQuery(here, { load: 'made' })} aria-current={made ? 'page' : undefined}>
          Made-up load
        </a>
      </nav>
      {made ? <Played /> : <Live />}
    </>
  )
}
