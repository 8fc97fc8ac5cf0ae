// The one place where runs are kept, so that no two parts of a page tell two states of the same run.
import { effect, signal, type Signal } from '@preact/signals'
import { session } from './api'
import type { Run } from './model'

interface Kept {
  run: Signal<Run>
  asked: number
}

const runs = new Map<string, Kept>()
const most = 20_000

// Another session may be of another tenant, whose runs can have the same names.
effect(() => {
  void session.value
  runs.clear()
})

let tick = 0
/** began is a mark of when an answer was asked for: what was asked for later tells of a later state. */
export const began = (): number => ++tick

/** keep takes in the runs of an answer and gives their IDs, in its order. */
export function keep(answered: Run[], asked: number): string[] {
  for (const run of answered) {
    const kept = runs.get(run.id)
    if (!kept) runs.set(run.id, { run: signal(run), asked })
    else if (asked >= kept.asked) {
      kept.asked = asked
      if (!same(kept.run.peek(), run)) kept.run.value = run
    }
  }
  if (runs.size > most) for (const id of [...runs.keys()].slice(0, runs.size - most)) runs.delete(id)
  return answered.map((run) => run.id)
}

export const runOf = (id: string): Signal<Run> | undefined => runs.get(id)?.run

// Lists leave some of a run out; what they tell of its course says whether anything has changed.
function same(a: Run, b: Run): boolean {
  return a.state === b.state && a.attempt === b.attempt && a.fence === b.fence && a.reason === b.reason && a.next_attempt_at === b.next_attempt_at &&
    a.ended_at === b.ended_at && a.worker === b.worker && a.attempts.length === b.attempts.length
}
