// What plays: a marker over places, which the address says while it is at rest, and the buttons and the slider of what has events.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { moved } from './chart'
import { filter, query } from './router'
import { oneOf, say } from './tool'

/** clamped is a number from least to most that the address says for a name, the nearest of them; least where it says no number. It is a whole one, or
 * one of so many parts. */
const clamped = (name: string, least: number, most: number, parts = 1): number => {
  const n = Math.round(Number(query.value.get(name) ?? NaN) * parts) / parts
  return Number.isNaN(n) ? least : Math.min(most, Math.max(least, n))
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
