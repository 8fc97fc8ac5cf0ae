// Small parts that all pages share. Each makes text nodes only.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Refusal, Unreachable } from './api'
import { now } from './clock'
import { lost } from './live'
import type { State as Of } from './model'
import { to } from './router'
import { quoted } from './quoted'
import { ago, inFull, instant, parse, short, span, zoneFor } from './time'

/** State tells one by shape, word and colour. */
export function State({ of }: { of: Of | string }) {
  return <span class={'state s-' + (states.has(of) ? of : 'other')}>{of.replaceAll('_', ' ')}</span>
}

const states = new Set(['scheduled', 'queued', 'waiting', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped', 'dead', 'unknown', 'crashed', 'handed_back', 'ok', 'attention', 'failing', 'paused', 'pending', 'suspended', 'upstream_failed'])

/** RunLink leads to a run. Where there is little room the name of its job is cut to 12 letters, and then what follows. */
export function RunLink({ id }: { id: string }) {
  const end = id.indexOf('~')
  if (end < 0) return <a href={to('runs', id)}>{id}</a>
  return (
    <a href={to('runs', id)} class="run-link" aria-label={id}>
      <span style={{ minWidth: Math.min(end, 12) + 'ch', maxWidth: `calc(100% - ${id.length - end}ch)` }}>{id.slice(0, end)}</span>
      {id.slice(end)}
    </a>
  )
}

/** Instant is a time with its zone; where is the zone of the job, if there is one. Long lists have it plain, and brief where it is of
 * a schedule, which hardly ever fires between minutes. */
export function Instant({ at, where, plain = false, brief = false }: { at: string | undefined; where?: string; plain?: boolean; brief?: boolean }) {
  const ms = parse(at)
  if (Number.isNaN(ms)) return <span class="none">–</span>
  const of = zoneFor(where)
  const text = instant(ms, now.value, of)
  return (
    <time dateTime={at} title={inFull(ms, of)}>
      {brief ? text.replace(/(:\d\d):00$/, '$1') : text} {plain ? short(of) : <i>{short(of)}</i>}
    </time>
  )
}

/** Ago is how far away a time is. */
export function Ago({ at }: { at: string | undefined }) {
  const ms = parse(at)
  if (Number.isNaN(ms)) return null
  return <span class="ago">{ago(ms, now.value)}</span>
}

/** took is how long something lasted, of what has ended or goes on. */
export function took(from: string | undefined, to: string | undefined): string {
  const begin = parse(from)
  const end = parse(to)
  if (Number.isNaN(begin)) return '–'
  return span(Math.max(0, (Number.isNaN(end) ? now.value : end) - begin))
}

/** Empty says in one sentence what would be here, and the one command that puts it there. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {command && <Command text={command} />}
    </div>
  )
}

/** Command is a line for a terminal that ends with a command of belfry. It names this server where that is not the one that is called unasked. */
export function Command({ text }: { text: string }) {
  const flags = document.documentElement.dataset.flags // of belfry console: how the same server is called
  return <Line text={text + (flags ? ' ' + flags : location.origin === usual ? '' : ' --address ' + quoted(location.origin))} />
}

/** Line is a line for a terminal, as it stands. */
export function Line({ text }: { text: string }) {
  return (
    <div class="command">
      <code>
        {text.length > 2000
          ? text
          : text.split(/(?= )|(?<= )/).map((word) => (
              // A flag is not cut behind its hyphens. A line may end at the blanks between flags, which are not part of any.
              <span class={word.startsWith('--') && word.length < 24 ? 'whole' : undefined}>{word}</span>
            ))}
      </code>
      <Copy text={text} />
    </div>
  )
}

// What belfry calls unless it is told otherwise. It is compared with, never loaded from.
const usual = 'http:' + '//127.0.0.1:7340'

export function Copy({ text, what = 'Copy' }: { text: string; what?: string }) {
  const [done, setDone] = useState('')
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(''), 1500)
    return () => clearTimeout(timer)
  }, [done])
  // Browsers have a clipboard on https and on this machine only.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setDone('Copied')
    } catch {
      setDone('Select it by hand')
    }
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      <span aria-live="polite">{done || what}</span>
    </button>
  )
}

/** Refused shows a refusal in the server's own words. What was shown before stays beside it. A field that has a label here is led to. */
export function Refused({ error, small = false, labels = {} }: { error: Error | undefined; small?: boolean; labels?: Record<string, string> }) {
  if (!error || error instanceof Unreachable) return null
  if (!(error instanceof Refusal)) {
    return (
      <div class="refused" role="alert">
        <strong>This page made an error.</strong> {error.message}
      </div>
    )
  }
  const { problem, requestID } = error
  if (problem.status === 401) return null // the page asks for a token
  return (
    <div class={small ? 'refused small' : 'refused'} role="alert">
      <strong>{titles[problem.status] ?? 'Refused.'}</strong> {sentence(problem.detail)}
      {problem.errors?.map((e) => (
        <p key={e.field}>
          {labels[e.field] && (
            <button type="button" class="copy" onClick={() => document.getElementsByName(e.field)[0]?.focus()}>
              {labels[e.field]}
            </button>
          )}{' '}
          <code>{e.field}</code> {e.message}
        </p>
      ))}
      <span class="fine">
        {problem.code || problem.status}
        {requestID && ' · request ' + requestID}
      </span>
    </div>
  )
}

/** sentence makes one of what the server says in half a one, as it does of what a command line shows behind a colon. */
export function sentence(text: string): string {
  return text.replace(/^[a-z]+(?= )/, (word) => word.charAt(0).toUpperCase() + word.slice(1)) + (/[.!?…]$/.test(text) ? '' : '.')
}

const titles: Record<number, string> = {
  400: 'The request is malformed.',
  403: 'Not allowed.',
  404: 'Not found.',
  409: 'Not possible now.',
  410: 'No longer kept.',
  422: 'Not possible.',
  429: 'Too many requests.',
  500: 'The server made an error.',
  503: 'Not available now.',
}

/** pending tells whether something may come yet: an error that is no refusal is tried again. */
export const pending = (error: Error | undefined): boolean => !error || error instanceof Unreachable

/** Waiting stands where nothing has come yet; for a moment it shows nothing, so that quick answers do not flicker. */
export function Waiting({ lines = 4 }: { lines?: number }) {
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150)
    return () => clearTimeout(timer)
  }, [])
  if (lost.value) return <p class="nothing">The server does not answer. This comes when it does.</p>
  return (
    <div class="waiting" role="status">
      <span class="hidden">Loading</span>
      {late && Array.from({ length: lines }, (_, i) => <div key={i} />)}
    </div>
  )
}

export function Labels({ of }: { of: Record<string, string> | undefined }) {
  const entries = Object.entries(of ?? {})
  if (!entries.length) return null
  return (
    <ul class="labels" aria-label="Labels">
      {entries.map(([name, value]) => (
        <li key={name}>
          {name}={value}
        </li>
      ))}
    </ul>
  )
}

/** Fresh is the button that lets new rows in. It keeps its room, so that nothing moves when it comes. */
export function Fresh({ count, apply }: { count: number; apply: () => void }) {
  return (
    <button type="button" class="fresh" hidden={count === 0} onClick={apply}>
      {count} new
    </button>
  )
}
