// How two texts differ, line by line.

/** Edit is a line of a diff: ' ' stays, '-' goes, '+' comes. */
export interface Edit {
  sign: ' ' | '-' | '+'
  line: string
}

// Texts of more lines together take too long: of those everything between what they begin and end with goes and comes.
const mostCells = 4_000_000 // of the table of a and b, lines of the one by lines of the other

/** differ gives the lines of two texts in the order in which a reader changes the old one into the new. It is the shortest such list. */
export function differ(old: string, next: string): Edit[] {
  const a = lines(old)
  const b = lines(next)
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const same = (part: string[]) => part.map((line): Edit => ({ sign: ' ', line }))
  return [...same(a.slice(0, head)), ...between(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...same(a.slice(a.length - tail))]
}

const lines = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

// By the longest common subsequence.
function between(a: string[], b: string[]): Edit[] {
  const wide = b.length + 1
  const edits: Edit[] = []
  const fits = (a.length + 1) * wide <= mostCells
  const common = new Uint16Array(fits ? (a.length + 1) * wide : 0) // at i, j: how many lines a[i…] and b[j…] have in common
  const at = (i: number, j: number) => common[i * wide + j] ?? 0
  if (fits) {
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) common[i * wide + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (fits && i < a.length && j < b.length && a[i] === b[j]) {
      edits.push({ sign: ' ', line: a[i] ?? '' })
      i++
      j++
    } else if (i < a.length && (j === b.length || !fits || at(i + 1, j) >= at(i, j + 1))) edits.push({ sign: '-', line: a[i++] ?? '' })
    else edits.push({ sign: '+', line: b[j++] ?? '' })
  }
  return edits
}

/** counted says how much differs: "2 lines removed, 1 added"; "" where nothing does. */
export function counted(edits: Edit[]): string {
  const gone = edits.filter((e) => e.sign === '-').length
  const come = edits.filter((e) => e.sign === '+').length
  const of = (n: number) => `${n} ${n === 1 ? 'line' : 'lines'}`
  if (gone && come) return `${of(gone)} removed, ${come} added`
  return gone ? `${of(gone)} removed` : come ? `${of(come)} added` : ''
}
