// The text of a log, by a state machine over its bytes: colours become classes from a fixed list, and every other control sequence goes.
// Nothing of a log is ever more than text.

export interface Piece {
  text: string
  style: string // classes
}

export interface Line {
  pieces: Piece[]
}

const colours = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

type Mode = 'text' | 'escape' | 'csi' | 'string' | 'stringEscape' | 'charset'

/** Screen takes a log in parts, as it comes, and keeps its newest lines. */
export class Screen {
  lines: Line[] = [{ pieces: [] }]
  dropped = 0
  private decoder = new TextDecoder()
  private mode: Mode = 'text'
  private parameters = ''
  private colour = ''
  private bright = false
  private strong = false
  private faint = false
  private buffer = ''
  private rewind = false

  constructor(private most = 5000) {}

  write(part: Uint8Array, last = false): void {
    for (const letter of this.decoder.decode(part, { stream: !last })) this.letter(letter)
    this.flush()
    if (this.lines.length > this.most) {
      const over = this.lines.length - this.most
      this.lines.splice(0, over)
      this.dropped += over
    }
  }

  private letter(c: string): void {
    switch (this.mode) {
      case 'text':
        return this.plain(c)
      case 'escape':
        if (c === '[') {
          this.mode = 'csi'
          this.parameters = ''
        } else if (c === ']' || c === 'P' || c === 'X' || c === '^' || c === '_') this.mode = 'string'
        else if (c === '(' || c === ')' || c === '*' || c === '+' || c === '#' || c === '%' || c === ' ') this.mode = 'charset'
        else this.mode = 'text'
        return
      case 'csi':
        if (c >= '@' && c <= '~') {
          if (c === 'm') this.select()
          this.mode = 'text'
        } else if (c < ' ' || this.parameters.length > 64) this.mode = 'text'
        else this.parameters += c
        return
      case 'string':
        if (c === '\x07' || c === '\x9c') this.mode = 'text'
        else if (c === '\x1b') this.mode = 'stringEscape'
        else if (c === '\n') {
          this.mode = 'text' // one that never ends takes no more than its line
          this.plain(c)
        }
        return
      case 'stringEscape':
        this.mode = c === '\\' ? 'text' : 'string'
        return
      case 'charset':
        this.mode = 'text'
    }
  }

  private plain(c: string): void {
    if (c === '\x1b' || c === '\x9b') {
      this.mode = c === '\x1b' ? 'escape' : 'csi'
      this.parameters = ''
      return
    }
    if (c === '\n') {
      this.flush()
      this.rewind = false
      this.lines.push({ pieces: [] })
      return
    }
    if (c === '\r') {
      this.rewind = true // a progress bar writes its line anew; \r\n does not
      return
    }
    if ((c < ' ' && c !== '\t') || (c >= '\x7f' && c <= '\x9f')) return
    if (this.rewind) {
      this.buffer = ''
      this.last().pieces = []
      this.rewind = false
    }
    this.buffer += bidi.has(c) ? '\ufffd' : c
  }

  private last(): Line {
    return this.lines[this.lines.length - 1] as Line
  }

  private flush(): void {
    if (!this.buffer) return
    const style = this.style()
    const pieces = this.last().pieces
    const before = pieces[pieces.length - 1]
    if (before && before.style === style) before.text += this.buffer
    else pieces.push({ text: this.buffer, style })
    this.buffer = ''
  }

  private style(): string {
    return [this.colour && 'ansi-' + this.colour, this.bright && 'ansi-bright', this.strong && 'ansi-bold', this.faint && 'ansi-faint'].filter(Boolean).join(' ')
  }

  private select(): void {
    this.flush()
    const given = this.parameters.split(/[;:]/).map((p) => (p === '' ? 0 : Number(p)))
    for (let i = 0; i < given.length; i++) {
      const n = given[i] as number
      if (n === 0) {
        this.colour = ''
        this.bright = this.strong = this.faint = false
      } else if (n === 1) this.strong = true
      else if (n === 2) this.faint = true
      else if (n === 22) this.strong = this.faint = false
      else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) {
        this.bright = n >= 90
        this.colour = colours[n - (this.bright ? 90 : 30)] ?? ''
      }
      else if (n === 39) this.colour = ''
      else if (n === 38 || n === 48) i += given[i + 1] === 5 ? 2 : given[i + 1] === 2 ? 4 : 0 // others than the sixteen are not shown
    }
  }
}

// Marks that turn the direction of what follows could make a line read as another than it is.
const bidi = new Set(['\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'])
