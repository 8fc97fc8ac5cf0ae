// What a job says of itself, in words.
import type { Job, Run, Schedule } from './model'
import { isOpen } from './model'
import { inFull, length, parse, short, span } from './time'

/** when tells a schedule in a few words. Of a cron expression the server knows the words. */
export function when(s: Schedule | undefined): string {
  if (!s) return 'on demand'
  let text = ''
  if (s.every) text = 'every ' + each(s.every)
  else if (s.at) text = 'once, ' + (inFull(parse(s.at), 'UTC').split('\n')[0] ?? '').replace('.000', '')
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
  }
  return { kind, what: '' }
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
