// The way of one run, as the server's own simulation has it: from its timer through the queue to workers and back, until it has succeeded or is a dead letter.
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { post } from './api'
import { Player, still, usePlayer } from './player'
import { filter } from './router'
import { length, span } from './time'
import { Absent, asked, Choice, Field, useAsked } from './tool'
import { Line, pending, Waiting } from './ui'
import { layouts, Picture, stands } from './wayframe'

export interface Event {
  at: string
  event: string
  attempt?: number
  until?: string
}

export interface Run {
  state: string
  reason: string
  nominal_time: string
  attempts: { attempt: number; outcome: string; error?: string }[]
  events: Event[]
}

interface Report {
  runs: Run[]
}

export interface Policy {
  max_attempts: number
  initial: string
  factor: number
  max: string
}

const ends = {
  fails: 'Each attempt fails',
  succeeds: 'One attempt succeeds',
  times_out: 'Each runs into its timeout',
  dies: 'The worker dies in each',
  dies_once: 'The worker dies in one',
}
type End = keyof typeof ends
const begin = Date.parse('2026-01-05T00:00:00Z')

/** timeoutOf is the timeout of the job, in ms; 0 for the usual 30 s. An attempt that runs into it lasts as long as attempts take, and 1 s at least: no timeout is
 * shorter. */
function timeoutOf(takes: string, end: End): number {
  const lasts = Math.ceil(length(takes))
  if (end === 'times_out') return lasts > 0 ? Math.max(1000, lasts) : 0
  return lasts > 30_000 ? lasts : 0
}

/** scenarioOf is one job that fires once, with this policy. */
function scenarioOf(policy: Policy, takes: string, end: End, n: number): object {
  const fails = { takes, fails: 'no answer' }
  const dies = { takes, crashes: true }
  const before = Array.from({ length: n - 1 }, () => fails)
  const outcomes = { fails: [fails], succeeds: [...before, { takes }], times_out: [{ never: true }], dies: [dies], dies_once: [...before, dies, fails] }[end]
  const timeout = timeoutOf(takes, end)
  return {
    start: new Date(begin).toISOString().replace('.000', ''),
    until: '1m',
    events: true,
    jobs: { job: { schedule: { cron: '* * * * *' }, retry: policy, ...(timeout ? { timeout: timeout + 'ms' } : {}), target: { handler: { name: 'work' } } } },
    outcomes: { job: outcomes },
  }
}

export function Way({ policy, takes }: { policy: Policy; takes: string }) {
  const chosen = asked('target', 'fails')
  const end = chosen in ends ? (chosen as End) : 'fails'
  const one = end === 'succeeds' || end === 'dies_once'
  const usual = String(Math.min(3, policy.max_attempts))
  const said = asked('attempt', usual)
  const wrong = one && !(/^\d{1,3}$/.test(said) && Number(said) >= 1 && Number(said) <= policy.max_attempts)
  const scenario = scenarioOf(policy, takes, end, wrong ? 1 : Number(said))
  const got = useAsked(wrong ? '' : 'way ' + JSON.stringify(scenario), (stop) => post<Report>('/simulate', scenario, stop))
  const run = got.data?.runs[0]
  return (
    <section class="played" aria-labelledby="way">
      <h2 id="way">The way of one run</h2>
      <div class="filters">
        <Choice name="target" label="What the target does" value={end} all={ends} choose={(value) => filter({ target: value === 'fails' ? undefined : value, at: undefined }, true)} />
        {one && <Field name="attempt" label="Which attempt" usual={usual} size={4} />}
      </div>
      <p class="fine">
        The server simulates one run with this policy. Each wait is the longest that its jitter may draw
        {end === 'times_out' ? `, and the timeout is ${span(timeoutOf(takes, end) || 30_000)}.` : '.'}
      </p>
      {wrong && (
        <p class="refused small" role="alert">
          <code>attempt</code> must be from 1 to {policy.max_attempts}, which this policy has; got “{said}”.
        </p>
      )}
      <Absent error={got.error} />
      {!run && !wrong && pending(got.error) && <Waiting lines={6} />}
      {run && (
        <div class={got.error || wrong ? 'played old' : 'played'} aria-busy={got.old}>
          <Play run={run} />
          <details class="cli">
            <summary>This way in a terminal</summary>
            <Line text={`belfry simulate - <<'END'\n${JSON.stringify(scenario, undefined, 1)}\nEND`} />
          </details>
        </div>
      )}
    </section>
  )
}

/** ms is when an event is, from when the run is due. */
const ms = (run: Run, at: string) => Date.parse(at) - Date.parse(run.nominal_time)

/** sentence says what an event is, by what was before. */
function sentence(run: Run, i: number): string {
  const { event, at, attempt = 0, until } = run.events[i] as Event
  const before = run.events[i - 1]
  const wait = until ? span(Date.parse(until) - Date.parse(at)) : ''
  const error = run.attempts.find((a) => a.attempt === attempt)?.error ?? ''
  const failed = `Attempt ${attempt} failed${error ? ': ' + error.replace(/^(handler|timeout): /, '') : ''}.`
  switch (event) {
    case 'queued':
      return attempt ? `The lease of attempt ${attempt} is over: its worker is gone. The run starts anew.` : 'It is due: its timer fires, and a tick claims it.'
    case 'message_sent':
      return (before?.event === 'message_deleted' ? 'The timer of the wait fires: a new message goes to the queue' : 'Its message goes to the queue') + (wait ? `, delayed for ${wait}.` : ', ready at once.')
    case 'message_taken':
      return before?.event === 'worker_died' ? 'The message can be taken again, and another worker takes it.' : before?.event === 'message_hidden' ? 'The wait is over: a worker takes the message.' : 'A worker takes the message.'
    case 'running':
      return `Attempt ${attempt} begins.`
    case 'worker_died':
      return 'The worker dies. Nobody is told, and its lease goes on.'
    case 'retrying':
      return `${failed} The next one is due in ${wait}.`
    case 'message_hidden':
      return `The message stays in the queue, and nobody can take it for ${wait}.`
    case 'message_deleted':
      return before?.event === 'retrying' ? 'The wait is long: the message is deleted, and a timer waits.' : 'The message is deleted.'
    case 'succeeded':
      return `Attempt ${attempt} succeeds.`
    case 'dead':
      return `${before?.event === 'message_taken' ? `The lease of attempt ${attempt} is over: its worker is gone, too.` : failed} The run is a dead letter: ${run.reason.replace(/:.*/, '')}.`
    default:
      return event.replaceAll('_', ' ') + '.'
  }
}

function Play({ run }: { run: Run }) {
  const { events } = run
  const last = events.length - 1
  const times = useMemo(() => events.map((e) => ms(run, e.at)), [run])
  const gap = (i: number) => (times[i + 1] ?? 0) - (times[i] ?? 0)
  // A place is an event, and the share of the time from it to the next. What lasts longer plays longer, but not in proportion.
  const next = (p: number, speed: number) => {
    const i = Math.floor(p)
    return p + (80 * speed) / (450 + 350 * Math.log10(1 + Math.max(0, i < 0 ? 0 : gap(i)) / 1000))
  }
  const player = usePlayer(events.length, next, 100)
  const { at, now: i, playing, stop } = player
  const clock = i < 0 ? 0 : (times[i] ?? 0) + (at - i) * (i < last ? gap(i) : 0)
  const sentences = useMemo(() => events.map((_, k) => sentence(run, k)), [run])
  const places = useMemo(() => stands(events), [run])
  const told = i < 0 ? '' : at === i || span(clock) === span(times[i] ?? 0) ? `${span(clock)} after it was due: ${sentences[i]}` : `${span(clock)} after it was due. At ${span(times[i] ?? 0)}: ${sentences[i]}`
  return (
    <Player of={player} words={told} lasts={span(times[last] ?? 0)}>
      <div class="way">
        <div class="maps" aria-hidden="true">
          {layouts.map((layout) => (
            <Picture key={layout.name} layout={layout} places={places} at={at} waits={i >= 0 && i < last && gap(i) > 0} timed={(k) => gap(k) > 0} smooth={playing && !still()} />
          ))}
        </div>
        <Events run={run} times={times} sentences={sentences} now={i} choose={stop} />
      </div>
    </Player>
  )
}

/** Events are all that happens, in words; the one that the marker is at is kept in sight. */
function Events({ run, times, sentences, now, choose }: { run: Run; times: number[]; sentences: string[]; now: number; choose: (i: number) => void }) {
  const around = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const of = around.current
    const one = of?.querySelectorAll('li')[Math.max(0, now)]
    if (of && one) of.scrollTop = one.offsetTop - (of.clientHeight - one.clientHeight) / 2
  }, [now, run])
  return useMemo(
    () => (
      <div class="events" ref={around} tabIndex={0} role="region" aria-label="What happens">
        <ol>
          {run.events.map((e, i) => (
            <li key={i} aria-current={i === now ? 'step' : undefined}>
              <button type="button" tabIndex={-1} onClick={() => choose(i)}>
                <time dateTime={e.at}>{span(times[i] ?? 0)}</time>
              </button>{' '}
              {sentences[i]} <code>{e.event}</code>
            </li>
          ))}
        </ol>
      </div>
    ),
    [run, now],
  )
}
