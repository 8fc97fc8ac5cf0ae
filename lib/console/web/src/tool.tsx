// What the tools share. Each has all that it is asked in the address, asks the server alone for its numbers, and draws them.
import type { ComponentChildren, InputHTMLAttributes, TargetedEvent } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { get, patiently, Refusal } from './api'
import { moved } from './chart'
import { now } from './clock'
import { useLive } from './live'
import { quoted } from './quoted'
import { filter, query } from './router'
import type { Week } from './stats'
import { length } from './time'
import { Command, Refused } from './ui'

const pause = 150

/** useAsked asks the server when its key has not changed for 150 ms, and no longer waits for the answer before. What was shown stays until the next
 * one comes; an error stands beside it. */
export function useAsked<T>(key: string, ask: (stop: AbortSignal) => Promise<T>): { data: T | undefined; error: Error | undefined; old: boolean } {
  const [settled, setSettled] = useState(key)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(key), pause)
    return () => clearTimeout(timer)
  }, [key])
  const live = useLive(settled, (stop) => patiently(() => ask(stop), stop), 0)
  const last = useRef<T>()
  if (live.data !== undefined) last.current = live.data
  return { data: live.data ?? last.current, error: settled === key ? live.error : undefined, old: settled !== key || live.data === undefined }
}

/** asked is what the address says for a name, or what stands for it where it says nothing. */
export const asked = (name: string, usual: string): string => query.value.get(name) ?? usual

/** say puts a value into the address, without one more step back. */
export const say = (name: string, value: string, usual: string): void => filter({ [name]: value === usual ? undefined : value }, true)

/** Field is an input whose value stands in the address. Until it is left it shows what was typed, so that it can be emptied: the address, which says
 * nothing then, stands for the usual. An address that changes otherwise is shown at once. */
export function Field({ name, label, usual, follow, size = 8, placeholder = usual, wrong = false, ...more }: { name: string; label: string; usual: string; wrong?: boolean; follow?: (event: TargetedEvent<HTMLInputElement>) => void } & Pick<InputHTMLAttributes, 'class' | 'list' | 'maxLength' | 'size' | 'placeholder'>) {
  const [typed, setTyped] = useState<string>()
  const value = asked(name, usual)
  const input = (event: TargetedEvent<HTMLInputElement>) => {
    setTyped(event.currentTarget.value)
    say(name, event.currentTarget.value, usual)
    follow?.(event)
  }
  return (
    <label>
      <span>{label}</span>
      <input type="text" name={name} value={typed !== undefined && (typed || usual) === value ? typed : value} placeholder={placeholder} aria-invalid={wrong ? 'true' : undefined} size={size} spellcheck={false} autocomplete="off" onInput={input} onBlur={() => setTyped(undefined)} onKeyUp={follow} onClick={follow} onFocus={follow} {...more} />
    </label>
  )
}

/** clamped is a number from least to most that the address says for a name, the nearest of them; least where it says no number. It is a whole one, or
 * one of so many parts. */
export const clamped = (name: string, least: number, most: number, parts = 1): number => {
  const n = Math.round(Number(query.value.get(name) ?? NaN) * parts) / parts
  return Number.isNaN(n) ? least : Math.min(most, Math.max(least, n))
}

/** oneOf is what the address says for a name where it is one of a list, and else the usual. */
export const oneOf = (name: string, list: readonly string[], usual: string): string => {
  const said = asked(name, usual)
  return list.includes(said) ? said : usual
}

const frame = 80 // ms that a marker stays at a place while it plays
const calm = matchMedia('(prefers-reduced-motion: reduce)')

/** still says that somebody has asked their system for less motion. */
export const still = (): boolean => calm.matches

/** useMarker is a place among those from 0 to last, -1 for none, and plays over them. While it plays or is dragged it moves; else it is at rest, where
 * the address says, into which mark puts it. next is where it goes from a place, 80 ms later; whoever wants less motion gets a step a second, each of a
 * twelfth of them all. */
export function useMarker(last: number, rest: number, mark: (n: number) => void, next: (n: number) => number) {
  const [moving, setMoving] = useState<number>()
  const at = Math.min(moving ?? rest, last)
  const [playing, setPlaying] = useState(false)
  const latest = useRef(next)
  latest.current = next
  // Before the browser draws: one that has been stopped goes no step further.
  useLayoutEffect(() => {
    if (!playing) return
    const timer = setInterval(() => setMoving((n) => n === undefined ? n : Math.min(last, calm.matches ? Math.ceil(n + (last + 1) / 12) : latest.current(n))), calm.matches ? 1000 : frame)
    return () => clearInterval(timer)
  }, [playing, last])
  const stop = (n: number) => {
    setPlaying(false)
    setMoving(undefined)
    mark(n)
  }
  useEffect(() => {
    if (playing && at === last) stop(at)
  }, [playing, at, last])
  return {
    at,
    playing,
    stop,
    play: () => {
      if (playing) return stop(at)
      setMoving(at < 0 || at === last ? 0 : at)
      setPlaying(true)
    },
    drag: (n: number | undefined) => {
      if (n !== undefined) setPlaying(false)
      setMoving(n)
    },
  }
}

const speeds = ['0.1', '0.25', '0.5', '1', '2', '5', '20', '100']

/** usePlayer is a marker over so many events, for a Player, at the place and the speed in the address. A place is an event, -1 before the first; where it
 * has parts, it has also a share, in so many parts, of the way to the next event. next is as of useMarker, at a speed. */
export function usePlayer(events: number, next: (n: number, speed: number) => number, parts = 1) {
  const speed = oneOf('speed', speeds, '1')
  const mark = (n: number) => filter({ at: n < 0 ? undefined : String(Math.round((n + 1) * parts) / parts) }, true)
  const marker = useMarker(events - 1, clamped('at', 0, events, parts) - 1, mark, (n) => next(n, Number(speed)))
  return { ...marker, events, speed, now: Math.floor(marker.at) }
}

/** Player plays events, goes from one to the next, and says in words what has happened. Its slider goes by their times where it is given them, else event by
 * event. lasts is in words how long it takes in all, and title stands before its buttons; what is played stands under it. */
export function Player({ of, title, words, times, lasts, children }: { of: ReturnType<typeof usePlayer>; title?: ComponentChildren; words: string; times?: { of: readonly number[]; end: number }; lasts: string; children: ComponentChildren }) {
  const { at, now, events, playing, play, stop, drag } = of
  const last = events - 1
  const placed = (value: number) => (times ? times.of.findLastIndex((t) => t <= value) : value)
  const led = (event: KeyboardEvent): number | undefined => {
    const up = { ArrowUp: 1, ArrowDown: -1 }[event.key]
    if (up) return Math.max(-1, Math.min(last, now + up))
    if (event.key === 'Home' || (event.key === 'ArrowLeft' && at <= 0)) return -1
    if (event.key === 'ArrowRight' && at < 0) return 0
    return moved(event, event.key === 'ArrowLeft' ? Math.ceil(at) : now, events)
  }
  return (
    <>
      <header class="bar">
        {title}
        <button type="button" class="act" onClick={play}>
          {playing ? 'Pause' : 'Play'}
        </button>
        <button type="button" class="act" disabled={at < 0} onClick={() => stop(Math.ceil(at) - 1)}>
          Step back
        </button>
        <button type="button" class="act" disabled={now >= last} onClick={() => stop(now + 1)}>
          Step
        </button>
        <label class="speed">
          <span>Speed</span>{' '}
          <select name="speed" value={of.speed} onChange={(event) => say('speed', event.currentTarget.value, '1')}>
            {speeds.map((s) => (
              <option key={s} value={s}>
                {s} ×
              </option>
            ))}
          </select>
        </label>
        <span class="fine">
          event {now + 1} of {events.toLocaleString('en')}, {lasts} in all
        </span>
      </header>
      <input
        type="range"
        class="seek"
        aria-label="Time"
        min={times ? 0 : -1}
        max={times ? times.end : last}
        step="any"
        value={times ? (times.of[now] ?? 0) : at}
        aria-valuetext={words || 'nothing has happened yet'}
        onInput={(event) => drag(placed(Number(event.currentTarget.value)))}
        onChange={(event) => stop(placed(Number(event.currentTarget.value)))}
        onKeyDown={(event) => {
          const to = led(event)
          if (to === undefined) return
          stop(to)
          event.preventDefault()
        }}
      />
      <p class="fine instant" aria-live={playing ? 'off' : 'polite'}>
        {words || 'Play, step, or choose an instant.'}
      </p>
      {children}
      {still() && <p class="fine">Your system asks for less motion: it plays in twelve steps, one a second.</p>}
    </>
  )
}

/** Figure is a picture that has its numbers as a table beside it. */
export function Figure({ title, about, table, children }: { title: string; about?: string; table: ComponentChildren; children: ComponentChildren }) {
  return (
    <figure class="minutes">
      <figcaption>
        <b>{title}</b> {about && <span class="fine">{about}</span>}
      </figcaption>
      {children}
      <details>
        <summary>As a table</summary>
        <div class="scroller short" tabIndex={0} role="region" aria-label={title}>
          {table}
        </div>
      </details>
    </figure>
  )
}

const kinds = { constant: 'constant', exponential: 'exponential', lognormal: 'lognormal, with a p99' }

/** Distribution chooses how durations are distributed. The lognormal one has a p99, which is five times the mean until it is said, and then stays as
 * many times as long as the mean; usual is the mean where the address says none. */
export function Distribution({ usual, children }: { usual: string; children: ComponentChildren }) {
  const kind = oneOf('distribution', Object.keys(kinds), 'constant')
  const mean = length(asked('duration', usual))
  const p99 = length(asked('p99', ''))
  const before = useRef({ mean, p99 })
  useEffect(() => {
    const was = before.current
    let next = p99
    if (kind === 'lognormal' && mean > 0 && mean !== was.mean && p99 > 0 && p99 === was.p99) {
      const text = Number(((p99 * mean) / was.mean).toPrecision(6)) + 'ms'
      next = length(text)
      filter({ p99: text }, true)
    }
    // While one is typed it may be no duration: what it was before is what the other goes by.
    before.current = { mean: mean > 0 ? mean : was.mean, p99: next }
  }, [kind, mean, p99])
  const choose = (kind: string) => filter({ distribution: kind === 'constant' ? undefined : kind, p99: kind === 'lognormal' ? Math.round((mean > 0 ? mean : length(usual)) * 5) + 'ms' : undefined }, true)
  return (
    <>
      <div class="dial">
        <label>
          <span>Durations are</span>
          <select name="distribution" value={kind} onChange={(event) => choose(event.currentTarget.value)}>
            {Object.entries(kinds).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {kind === 'lognormal' && children}
    </>
  )
}

/** InTerminal is a command that answers the same. Its flags are called as the address calls them, but for their hyphens; what is left out is no flag. */
export function InTerminal({ command, flags }: { command: string; flags: Record<string, string | undefined> }) {
  const given = Object.entries(flags).map(([name, value]) => (value === undefined ? '' : ` --${name.replaceAll('_', '-')} ${quoted(value)}`))
  return (
    <details class="cli">
      <summary>In a terminal</summary>
      <Command text={command + given.join('')} />
    </details>
  )
}

const hour = 3_600_000

/** useWeek is what the server has counted in the last week, by the hour; undefined until it is there. */
export function useWeek(): Week | undefined {
  return useLive('stats of a week', async (stop) => {
    const end = Math.ceil(now.peek() / hour) * hour
    return (await get<Week>('/stats', { from: new Date(end - 7 * 24 * hour).toISOString(), to: new Date(end).toISOString(), step: '1h' }, stop)).data
  }, 0).data
}

/** Absent is a refusal, and says it where the server makes no plans: the functions on AWS do not. labels are those of the fields, by their names. */
export function Absent({ error, labels }: { error: Error | undefined; labels?: Record<string, string> }) {
  if (error instanceof Refusal && error.problem.status === 404) return <p class="nothing">This server makes no plans. A server of “belfry dev” or “belfry serve” does, and so does the command line.</p>
  return <Refused error={error} labels={labels} />
}
