// The same as a page asks for, for a terminal: as a command of belfry, and as curl.
import { session, urlOf, type Change } from './api'
import { escaped, quoted } from './quoted'

/** belfry is a command line: words, and flags with their values where they have one. */
export function belfry(words: string[], flags: Record<string, string | number | boolean | undefined> = {}): string {
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined || value === '' || value === false ? [] : [`--${name}` + (value === true ? '' : '=' + quoted(String(value)))]))
  return ['belfry', ...words.map(quoted), ...given].join(' ')
}

/** curl sends a request as the page does, to url, which is a word of the shell. It takes the token from the environment: that of the page is
 * for the page alone. */
export function curl({ method, path, body, headers }: Omit<Change, 'method'> & { method: string }, url = quoted(urlOf(path))): string {
  const words = ['curl', '-X', method]
  const given = { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers }
  for (const [name, value] of Object.entries(given)) words.push('-H', quoted(`${name}: ${value}`))
  if (session.peek()) words.push('-H', '"Authorization: Bearer $BELFRY_TOKEN"')
  if (body !== undefined) words.push('-d', quoted(escaped(body)))
  return [...words, url].join(' ')
}
