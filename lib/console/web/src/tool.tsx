// What the tools share. Each has all that it is asked in the address, asks the server alone for its numbers, and draws them.
import type { ComponentChildren, InputHTMLAttributes, TargetedEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, patiently, Refusal } from './api'
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

/** oneOf is what the address says for a name where it is one of a list, and else the usual. */
export const oneOf = (name: string, list: readonly string[], usual: string): string => {
  const said = asked(name, usual)
  return list.includes(said) ? said : usual
}

/** Choice is a select with a label: all has its values, each with its words. */
export function Choice({ name, label, value, all, choose }: { name: string; label: string; value: string; all: Record<string, string>; choose: (value: string) => void }) {
  return (
    <label>
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {Object.entries(all).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
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
        <Choice name="distribution" label="Durations are" value={kind} all={kinds} choose={choose} />
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
