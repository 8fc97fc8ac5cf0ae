// What the API answers, as far as pages read it. docs/reference/api.md has all of it.
import { outcomes } from './outcomes'

export type State = 'scheduled' | 'queued' | 'waiting' | 'running' | 'retrying' | 'succeeded' | 'failed' | 'cancelled' | 'skipped' | 'dead' | 'unknown'

export interface Attempt {
  attempt: number
  started_at?: string
  ended_at?: string
  outcome: string
  error?: string
}

export interface Run {
  id: string
  job: string
  generation: number
  state: State
  nominal_time: string
  trigger: string
  overlap?: string // the policy that its request brought, in place of its job's
  priority?: string
  attempt: number
  fence: number
  created_at?: string
  started_at?: string
  ended_at?: string
  next_attempt_at?: string
  worker?: string
  reason?: string
  skipped?: { count: number; through: string }
  callback?: { event: string; run: string; count?: number } // of a run that tells of another one's end, or of missed fires: of which
  why?: { code: string; policy: string; in_the_way: string[]; text: string } // of a run that was skipped at a gate, or as too late, or gave way to a later one
  discarded?: { at: string; by?: string; note?: string } // of a dead letter that was settled
  result_type?: string
  result_cut?: boolean
  result_size?: number // of one that is too large to be shown
  labels?: Record<string, string>
  trace?: string
  attempts: Attempt[]
  waiting?: Wait[]
  steps?: unknown[] // of a workflow's run; its page asks for more of them
}

/** Step is a step of a workflow's run. */
export interface Step {
  path: string // its name, behind those of the scopes around it and slashes
  kind: string
  state: State | 'pending' | 'suspended' | 'upstream_failed'
  target?: string
  attempt: number
  started_at?: string
  ended_at?: string
  waits_until?: string // of a suspended step
  times_out_at?: string // of a scope under way
  reason?: string
  caught_by?: string // which step handles its failure
  attempts: Attempt[]
}

/** Wait is one reason why a run has not ended. */
export interface Wait {
  code: string
  text: string
  until?: string
  who?: string
}

export interface Page<T> {
  items: T[]
  next?: string
}

export interface Schedule {
  cron?: string
  every?: string
  phase?: string
  at?: string
  timezone?: string
  start?: string
  end?: string
  jitter?: string
}

export interface Job {
  name: string
  description?: string
  schedule?: Schedule
  target: Record<string, Record<string, unknown>>
  queue: string
  priority: string
  timeout?: string // of a workflow's job its steps have it, as the next two
  guarantee?: string
  retry?: { max_attempts: number; initial: string; factor: number; max: string }
  catch_up: { mode: string; window: string }
  retention: string
  overlap?: string | { policy: string; key?: string; limit?: number; max_waiting?: number } // as it was given
  labels?: Record<string, string>
  paused?: boolean
  max_runs?: number
  pause_after?: number
  status: {
    generation: number
    etag?: string
    next_runs?: string[]
    final_run?: string
    tries: string
    created_at?: string
    updated_at?: string
    paused_reason?: string
    fault?: string
  }
}

export interface Depth {
  ready: number
  delayed: number
  taken: number
}

export interface Queue {
  name: string
  priorities: Record<string, Depth>
  remote?: boolean
  shared?: boolean
  workers: number
  lacking?: string[]
}

export interface Worker {
  id: string
  queue: string
  running: number
  concurrency: number
  started_at?: string
  remote?: boolean
  seen_at?: string
  handlers?: string[]
  labels?: Record<string, string>
}

export interface Check {
  name: string
  state: 'ok' | 'attention' | 'failing'
  detail: string
}

export const open = outcomes.open
export const all: State[] = ['running', 'retrying', 'queued', 'waiting', 'scheduled', 'succeeded', 'failed', 'dead', 'unknown', 'cancelled', 'skipped']
export const isOpen = (state: Step['state']): boolean => (open as string[]).includes(state)
export const isBad = (state: State): boolean => outcomes.failed.includes(state)

/** lastError is why a run is where it is: what its newest attempt with an error said. */
export function lastError(run: Run): string {
  for (let i = run.attempts.length - 1; i >= 0; i--) {
    const error = run.attempts[i]?.error
    if (error) return error
  }
  return ''
}
