// How deep the queues are, as this tab has seen it: no server keeps that.
import { effect } from '@preact/signals'
import { session } from './api'
import type { Depth, Queue } from './model'

export interface Sample {
  at: number // ms, by the server's clock
  ready: number
  delayed: number
  taken: number
}

const most = 720 // an hour, each five seconds
const samples: Sample[] = []

// Who signs in next may be of another tenant.
effect(() => {
  if (session.value !== null) samples.length = 0
})

/** sample keeps what the queues have together. */
export function sample(queues: Queue[], at: number): void {
  const sum: Sample = { at, ready: 0, delayed: 0, taken: 0 }
  for (const q of queues) {
    for (const d of Object.values<Depth>(q.priorities)) {
      sum.ready += d.ready
      sum.delayed += d.delayed
      sum.taken += d.taken
    }
  }
  samples.push(sum)
  if (samples.length > most) samples.shift()
}

export const sampled = (): readonly Sample[] => samples
