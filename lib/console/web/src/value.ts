// JSON as a tree of which parts can be changed. Numbers stay as they were sent, and names in their order, which they would not if it were read
// by JSON.parse.
import { token } from './json'

export type Value = { raw: string } | { items: Value[] } | Fields
export interface Fields {
  members: [string, Value][]
}

/** parse reads JSON, which must be some. */
export function parse(json: string): Value {
  const tokens = json.match(token) ?? []
  let at = 0
  const value = (): Value => {
    const t = tokens[at++] ?? 'null'
    if (t === '[') {
      const items: Value[] = []
      while (tokens[at] !== ']' && at < tokens.length) {
        items.push(value())
        if (tokens[at] === ',') at++
      }
      at++
      return { items }
    }
    if (t !== '{') return { raw: t }
    const members: [string, Value][] = []
    while (tokens[at] !== '}' && at < tokens.length) {
      const name = JSON.parse(tokens[at] ?? '""') as string
      at += 2 // and the colon
      members.push([name, value()])
      if (tokens[at] === ',') at++
    }
    at++
    return { members }
  }
  return value()
}

export function write(v: Value): string {
  if ('raw' in v) return v.raw
  if ('items' in v) return `[${v.items.map(write).join(',')}]`
  return `{${v.members.map(([name, of]) => JSON.stringify(name) + ':' + write(of)).join(',')}}`
}

/** fields are a value's members, none of what is no object. */
export const fields = (v: Value | undefined): [string, Value][] => (v && 'members' in v ? v.members : [])

export function at(v: Value | undefined, path: string[]): Value | undefined {
  for (const name of path) v = fields(v).find(([n]) => n === name)?.[1]
  return v
}

export const text = (s: string): Value => ({ raw: JSON.stringify(s) })
export const number = (s: string): Value => (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(s.trim()) ? { raw: s.trim() } : text(s))

/** shown is a scalar as somebody types it; '' where there is none. */
export function shown(v: Value | undefined): string {
  if (!v || !('raw' in v) || v.raw === 'null') return ''
  return v.raw.startsWith('"') ? (JSON.parse(v.raw) as string) : v.raw
}

export const isText = (v: Value | undefined): boolean => v !== undefined && 'raw' in v && v.raw.startsWith('"')

// A new field stands where the API has it.
const order = ['name', 'description', 'schedule', 'target', 'payload', 'queue', 'priority', 'timeout', 'guarantee', 'catch_up', 'retry', 'retention', 'labels', 'paused', 'overlap', 'expires_after', 'deadline', 'max_runs', 'pause_after', 'on']

/** set gives the value with another one at a path, or without it. An object that has nothing left goes too, but for what a job calls. */
export function set(v: Value | undefined, path: string[], to: Value | undefined, deep = 0): Value {
  const [name, ...rest] = path
  const members = fields(v)
  if (name === undefined) return to ?? { members }
  const i = members.findIndex(([n]) => n === name)
  let next: Value | undefined = to
  if (rest.length) {
    next = set(members[i]?.[1], rest, to, deep + 1)
    if (to === undefined && fields(next).length === 0 && name !== 'target' && path[0] !== 'target' && !(deep === 1 && kinds.includes(name))) next = undefined
  }
  if (next === undefined) return { members: members.filter(([n]) => n !== name) }
  if (i >= 0) return { members: members.map((m, k) => (k === i ? [name, next] : m)) }
  const rank = order.indexOf(name)
  const before = deep === 0 && rank >= 0 ? members.findIndex(([n]) => order.indexOf(n) > rank) : -1
  const place = before < 0 ? members.length : before
  return { members: [...members.slice(0, place), [name, next], ...members.slice(place)] }
}

/** kinds are what a job can call. */
export const kinds = ['exec', 'http', 'handler', 'email', 'aws', 'workflow']
