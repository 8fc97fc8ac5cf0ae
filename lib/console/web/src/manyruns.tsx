// What can be done with many runs: those that are selected, or those that match the filters of their list.
import './app'
import { useState } from 'preact/hooks'
import { Bulk, Field, Pace, useUntil } from './bulk'
import { labelsOf } from './labels'
import type { Many } from './many'
import type { State } from './model'
import { to } from './router'
import { belfry } from './terminal'

/** Chosen are the runs that a list's buttons are about: those that are selected, or those that match its filters. */
export interface Chosen {
  runs?: string[]
  job?: string
  states?: State[] // none: what the request takes unless it is told
  label?: string
  from?: string
  to?: string
}

function asked(of: Chosen): Many['body'] {
  if (of.runs) return { runs: of.runs }
  return { matching: { job: of.job || undefined, states: of.states?.length ? of.states : undefined, labels: of.label ? labelsOf(of.label) : undefined, from: of.from || undefined, to: of.to || undefined } }
}

function command(verb: string, of: Chosen, flags: Parameters<typeof belfry>[1]): string {
  const filters = { job: of.job, state: of.states?.join(','), label: of.label, from: of.from, to: of.to }
  const all = !of.runs && !Object.values(filters).some(Boolean)
  return belfry(['run', verb, ...(of.runs ?? [])], { ...(of.runs ? {} : filters), all, ...flags })
}

const list = { href: to('runs'), text: 'runs' }
const which = (of: Chosen) => (of.runs ? 'selected runs' : 'runs that match')

export function CancelMany({ of }: { of: Chosen }) {
  const [text, setText] = useState('')
  const reason = text.trim()
  return (
    <Bulk
      title={`Cancel ${which(of)}`}
      many={{ path: '/runs/cancel', body: { ...asked(of), reason: reason || undefined } }}
      verb="Cancel"
      done="cancelled, or told to stop"
      says="will be cancelled. Those that are running are told to stop; all others end at once, and their targets are not called."
      wont="What targets have done already is not taken back. Runs that have ended stay as they are, and schedules make new ones."
      command={command('cancel', of, { reason })}
      look={list}
      grave
    >
      <Field name="Reason" value={text} set={setText} most={120} />
    </Bulk>
  )
}

export function RetryMany({ of: given, forced }: { of: Chosen; forced: boolean }) {
  const [perSecond, setPerSecond] = useState(10)
  const [force, setForce] = useState(false)
  const until = useUntil(given.runs ?? [])
  // All of these would be refused, at the pace of those that are not.
  const of = { ...given, states: force ? given.states : given.states?.filter((s) => s !== 'succeeded' && s !== 'unknown') }
  const none = given.states?.length && !of.states?.length ? 'All that match succeeded or are unknown: those are retried by force only.' : undefined
  return (
    <Bulk
      title={`Retry ${which(of)}`}
      none={none}
      many={{ path: '/runs/retry', body: { ...asked(of), force: force || undefined, ended_before: until, per_second: perSecond } }}
      verb="Retry"
      done="queued again"
      says="will be queued again, each with a new budget of attempts and the newest definition of its job."
      wont={`${force ? '' : 'Runs that succeeded or are unknown stay as they are, since a retry may be a second effect. '}Runs that have not ended stay as they are, and so do those that end from now on${of.runs ? '' : ', and so do dead letters that were discarded'}${of.runs || given.states?.length ? '' : ', and runs that were cancelled: choose that state to retry them'}.`}
      command={command('retry', none ? given : of, { force, 'ended-before': until, 'per-second': perSecond === 10 ? undefined : perSecond })}
      look={list}
      grave={force}
    >
      <Pace value={perSecond} set={setPerSecond} />
      {forced && (
        <label>
          <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} /> Also those that succeeded or are unknown: their effect may happen a second time.
        </label>
      )}
    </Bulk>
  )
}
