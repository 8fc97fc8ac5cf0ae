// What a job says of itself, in words.
import type { Job, Run, Schedule } from './model'
import { isOpen, lastError } from './model'
import { inFull, length, parse, short, span } from './time'

/** on writes the instants in a text of the server as people do. */
export function on(text: string): string {
  return text.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, (at) => (inFull(parse(at), 'UTC').split('\n')[0] ?? at).replace('.000', ''))
}

/** when tells a schedule in a few words. Of a cron expression the server knows the words. */
export function when(s: Schedule | undefined): string {
  if (!s) return 'on demand'
  let text = ''
  if (s.every) text = 'every ' + each(s.every)
  else if (s.at) text = 'once, ' + on(s.at)
  else if (s.cron) text = s.cron + ' ' + short(s.timezone ?? 'UTC')
  if (s.jitter) text += ', up to ' + s.jitter + ' later'
  return text
}

function each(text: string): string {
  const ms = length(text)
  return Number.isNaN(ms) ? text : span(ms)
}

/** calls tells what a job's target is: its kind, and what it calls. */
export function calls(job: Job): { kind: string; what: string } {
  const [kind, spec] = Object.entries(job.target)[0] ?? ['', {}]
  const text = (name: string) => (typeof spec[name] === 'string' ? (spec[name] as string) : '')
  switch (kind) {
    case 'http':
      return { kind, what: (text('method') || 'POST') + ' ' + text('url') }
    case 'exec':
      return { kind, what: Array.isArray(spec.argv) ? spec.argv.map(String).join(' ') : '' }
    case 'handler':
      return { kind, what: text('name') }
    case 'aws':
      return { kind, what: text('arn') }
    case 'email':
      return { kind, what: Array.isArray(spec.to) ? spec.to.map(String).join(', ') : '' }
    case 'workflow': {
      const n = Object.keys((spec.steps as object | undefined) ?? {}).length
      return { kind, what: n === 1 ? 'of 1 step' : `of ${n} steps` }
    }
  }
  return { kind, what: '' }
}

/** because is why a run is where it is, in the few words that a list has room for. */
export function because(run: Run): string {
  const error = lastError(run)
  if (error) return error
  return run.why?.text ?? run.reason ?? ''
}

/** nextFire is when a job fires next, in ms; NaN where nothing more is known. What the server told last may be some seconds old, in
 * which a job of every second has fired as often as it told. */
export function nextFire(job: Job, now: number): number {
  const told = (job.status.next_runs ?? []).map(parse)
  const next = told.find((at) => at > now - 500)
  if (next !== undefined) return next
  const last = told.at(-1) ?? NaN
  const step = length(job.schedule?.every ?? '')
  if (!(step > 0)) return NaN
  const at = last + Math.ceil((now - last) / step) * step
  return at > parse(job.schedule?.end) || at > parse(job.status.final_run) ? NaN : at
}

/** overlaps tells how many runs of a job may be in progress at once. */
export function overlaps(job: Job): string {
  const given = job.overlap
  const policy = (typeof given === 'string' ? given : given?.policy) ?? 'allow'
  const limit = (typeof given === 'string' ? undefined : given?.limit) ?? 1
  const bounded = typeof given === 'object' && given.limit !== undefined
  if (policy === 'allow' && !bounded) return 'allowed'
  const does = { allow: 'waits', queue: 'waits', skip: 'skipped', queue_one: 'one waits', queue_latest: 'the latest waits', cancel: 'has the earliest stop, and waits', replace: 'ends the earliest', strict: 'waits, also behind one that ended badly,' }[policy]
  if (!does) return policy
  const each = typeof given === 'object' && given.key ? `, for each value of ${given.key}` : ''
  return (limit === 1 ? `${does} while a run is in progress` : `${does} while ${limit.toLocaleString('en')} runs are in progress`) + each
}

/** late is how much later than its time a run was started first, in ms; NaN where that is not known any more. */
export function late(run: Run): number {
  const first = run.attempts[0]
  if (first?.attempt !== 1) return NaN
  return parse(first.started_at) - parse(run.nominal_time)
}

/** lasted is how long the newest attempt of a run took or has taken so far, in ms. */
export function lasted(run: Run, now: number): number {
  const newest = run.attempts[run.attempts.length - 1]
  const from = parse(newest?.started_at ?? run.started_at)
  const end = parse(newest?.ended_at)
  if (Number.isNaN(from)) return NaN
  if (!Number.isNaN(end)) return end - from
  return isOpen(run.state) ? Math.max(0, now - from) : parse(run.ended_at) - from
}
