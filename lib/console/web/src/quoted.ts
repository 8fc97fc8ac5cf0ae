// Words for a shell. They may be those of others, and are copied into a terminal.

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

/** escaped is JSON of which no terminal acts on a character. */
export function escaped(json: string): string {
  return json.replace(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
}
