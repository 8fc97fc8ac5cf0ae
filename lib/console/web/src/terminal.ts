// The same as a page asks for, for a terminal: as a command of belfry, and as curl.
import { session, urlOf, type Change } from './api'

// What a terminal would act on, or show in another place than it stands: control characters, but for line ends, and marks of direction.
const acting = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

/** quoted is a word as a shell takes it, whatever is in it. */
export function quoted(word: string): string {
  if (/^(?:[\w@%+=:,./-]|(?<=\w)~(?=\w))+$/.test(word)) return word
  if (!acting.test(word)) return `'${word.replaceAll("'", "'\\''")}'`
  // A shell takes the line ends off the end of what a command prints.
  const [ends = ''] = /\n*$/.exec(word) ?? []
  const bytes = [...new TextEncoder().encode(word.slice(0, word.length - ends.length))]
  const spelt = bytes.map((b) => (/[\w .,:;/@=+]/.test(String.fromCharCode(b)) ? String.fromCharCode(b) : b === 0x25 ? '%%' : '\\' + b.toString(8).padStart(3, '0')))
  return `"$(printf '${spelt.join('')}')"` + (ends && `'${ends}'`)
}

/** belfry is a command line: words, and flags with their values where they have one. */
export function belfry(words: string[], flags: Record<string, string | number | boolean | undefined> = {}): string {
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined || value === '' || value === false ? [] : [`--${name}` + (value === true ? '' : '=' + quoted(String(value)))]))
  return ['belfry', ...words.map(quoted), ...given].join(' ')
}

/** curl sends a request as the page does. It takes the token from the environment: that of the page is for the page alone. */
export function curl({ method, path, body, headers }: Change): string {
  const words = ['curl', '-X', method]
  const given = { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers }
  for (const [name, value] of Object.entries(given)) words.push('-H', quoted(`${name}: ${value}`))
  if (session.peek()) words.push('-H', '"Authorization: Bearer $BELFRY_TOKEN"')
  if (body !== undefined) words.push('-d', quoted(escaped(body)))
  return [...words, quoted(urlOf(path))].join(' ')
}

/** escaped is JSON of which no terminal acts on a character. */
function escaped(json: string): string {
  return json.replace(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
}
