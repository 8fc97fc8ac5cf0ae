// Written by make generate: how runs are counted.
import type { State } from './model'

/** followed is for how many hours at least a run is looked at that has not ended. */
export const followed = 5

/** outcomes are the states that are counted together. */
export const outcomes: Record<'succeeded' | 'failed' | 'skipped' | 'open', State[]> = {
  succeeded: ['succeeded'],
  failed: ['failed', 'dead', 'unknown'],
  skipped: ['cancelled', 'skipped'],
  open: ['scheduled', 'queued', 'waiting', 'running', 'retrying'],
}
