// JSON as it was sent. Reading and writing it again would change numbers, the order of names and what is doubled; so its text is laid out
// anew between its tokens alone.

export const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs

/** pretty lays out a text of JSON; what is none comes back as it is. */
export function pretty(text: string): string {
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  const out: string[] = []
  let deep = 0
  const line = () => out.push('\n' + '  '.repeat(Math.min(deep, 40)))
  const tokens = text.match(token) ?? []
  for (let i = 0; i < tokens.length; i++) {
    const t = tokens[i] as string
    const next = tokens[i + 1]
    if (t === '{' || t === '[') {
      if (next === '}' || next === ']') {
        out.push(t + next)
        i++
        continue
      }
      deep++
      out.push(t)
      line()
    } else if (t === '}' || t === ']') {
      deep--
      line()
      out.push(t)
    } else if (t === ',') {
      out.push(t)
      line()
    } else if (t === ':') out.push(': ')
    else out.push(t)
  }
  return out.join('')
}

/** fieldText finds the text of one field of a JSON object, as it was sent; undefined where there is none. */
export function fieldText(text: string, field: string): string | undefined {
  let deep = 0
  let name = ''
  let from = -1
  let awaits = false
  for (const match of text.matchAll(token)) {
    const t = match[0]
    const at = match.index
    if (deep === 1 && from >= 0 && (t === ',' || t === '}')) return text.slice(from, at).trim()
    if (t === '{' || t === '[') deep++
    else if (t === '}' || t === ']') deep--
    if (deep === 1 && t === ',') awaits = false
    else if (deep === 1 && t === ':' && !awaits) {
      awaits = true
      if (name === JSON.stringify(field)) from = at + 1
    } else if (deep === 1 && !awaits) name = t
  }
  return undefined
}

/** elements gives the texts of what a JSON array holds, as they were sent. */
export function elements(text: string): string[] {
  const found: string[] = []
  let deep = 0
  let from = -1
  for (const match of text.matchAll(token)) {
    const t = match[0]
    const at = match.index
    if (t === ']' || t === '}') deep--
    if (from >= 0 && ((deep === 1 && t === ',') || (deep === 0 && t === ']'))) {
      found.push(text.slice(from, at).trim())
      from = -1
    } else if (deep === 1 && from < 0 && t !== ',' && t !== ']' && t !== '}') from = at
    if (t === '[' || t === '{') deep++
  }
  return found
}
