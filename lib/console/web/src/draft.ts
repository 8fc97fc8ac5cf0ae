// A job that is being written: a text of YAML, and the value that it says. The form changes the value, and the text follows; the text changes, and
// the form follows where the text can be read. What the job would do is asked for beside that, by a dry run.
import { computed, signal } from '@preact/signals'
import { get, tried, convert, Refusal, session, unanswered, type Answer } from './api'
import type { Job } from './model'
import type { Fires } from './pages/job'
import { unsaved } from './unsaved'
import { at, isText, parse, set, shown, write, type Value } from './value'

export interface Wrong {
  line?: number
  column?: number
  what: string
}

/** Shown are the next fires of a job as its text has it, or what is wrong with its schedule. */
export interface Shown extends Fires {
  wrong?: { field: string; message: string }[]
}

/** Read is one job that the host of the pages has read or written. job is JSON. */
export interface Read {
  line: number
  name: string
  job: string
  yaml: string
  calls?: string[]
  lines?: Record<string, number>
  fires?: Shown
}

export interface ReadAnswer {
  as?: string
  jobs: Read[]
  settings?: { line: number; text: string }[]
  notes?: { line: number; text: string; why: string; lost?: boolean }[]
  wrong?: Wrong
}

/** Stored is a job as it stands: its definition as JSON, with its name, and what the server says of it. */
export interface Stored {
  json: string
  job: Job
}

export const stored = ({ data, text }: Pick<Answer<Job>, 'data' | 'text'>): Stored => ({ json: write(set(parse(text), ['status'], undefined)), job: data })

/** yamlOf is a job as JSON, written as YAML; '' for none. */
export const yamlOf = async (json: string | undefined, stop?: AbortSignal): Promise<string> => (json === undefined ? '' : (await convert<Read>('write', `{"job":${json}}`, stop)).yaml)

/** yamls are two jobs to be compared. */
export const yamls = (was: string | undefined, is: string | undefined, stop?: AbortSignal): Promise<[string, string]> => Promise.all([yamlOf(was, stop), yamlOf(is, stop)])

/** look asks for a job as it stands, undefined where there is none. */
export async function look(name: string, stop?: AbortSignal): Promise<Stored | undefined> {
  try {
    return stored(await get<Job>('/jobs/' + encodeURIComponent(name), {}, stop))
  } catch (error) {
    if (error instanceof Refusal && error.problem.status === 404) return undefined
    throw error
  }
}

// A moment after the last key, so that not every one of them asks.
const quiet = 150
const shownFires = 10
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Tried is what the server would make of the job, or why it would not. */
export interface Tried {
  is?: Stored
  stands?: boolean // a job of this name is there
  error?: Error
}

export class Draft {
  readonly text = signal('')
  readonly value = signal<Value>({ members: [] })
  readonly wrong = signal<Wrong | undefined>(undefined)
  readonly lines = signal<Record<string, number>>({})
  readonly fires = signal<Shown | undefined>(undefined)
  readonly tried = signal<Tried>({})
  readonly unreadPayload = signal(false) // the form has one that is no JSON
  readonly busy = signal(false) // something that was written has not been read or tried
  readonly failed = signal<Error | undefined>(undefined) // the host does not read
  readonly base = signal<Stored | undefined>(undefined) // what is edited, as it was read
  readonly name = computed(() => this.edits ?? shown(at(this.value.value, ['name'])))
  readonly dirty = computed(() => this.text.value !== this.begun.value || this.unwritten.value)
  readonly comments = computed(() => /(^|\s)#/.test(this.text.value))
  private readonly begun = signal('')
  private readonly owner = session.peek()?.parent
  private ahead: ((v: Value) => Value)[] = [] // of the form, since the text was changed
  private readonly unwritten = signal(false) // the form has changed the value, and the text has not followed yet
  private unread = false
  private timer = 0
  private stop = new AbortController()

  /** edits is the name of the job that is edited, undefined for a new one. */
  constructor(readonly edits: string | undefined) {}

  /** ours tells whether the session is one of the token that the draft was begun under. */
  ours(): boolean {
    return session.value?.parent === this.owner
  }

  /** begin takes a value as what stands there. */
  async begin(json: string, base: Stored | undefined): Promise<void> {
    const read = await convert<Read>('write', `{"job":${json},"fires":${shownFires}}`)
    this.base.value = base
    this.begun.value = this.text.value = read.yaml
    this.take(read)
    if (base) this.check()
  }

  /** rebase goes on from what stands there by now. What was written stays. */
  rebase(base: Stored | undefined): void {
    this.base.value = base
    this.check()
  }

  private take(read: Read): void {
    this.wrong.value = undefined
    this.value.value = parse(read.job)
    this.lines.value = read.lines ?? {}
    this.fires.value = read.fires
  }

  /** type changes the text. */
  type(text: string): void {
    this.text.value = text
    if (!this.unread) this.ahead = []
    this.unread = true
    this.later(() => this.read())
  }

  /** change changes the value. */
  change(edit: (v: Value) => Value): void {
    this.value.value = edit(this.value.value)
    this.unwritten.value = true
    if (this.unread) {
      this.ahead.push(edit) // the text comes first
      return
    }
    this.later(() => this.write())
  }

  set(path: string[], to: Value | undefined): void {
    this.change((v) => set(v, path, to))
  }

  private later(what: () => Promise<void>): void {
    this.begins()
    this.timer = window.setTimeout(() => void this.goes(what), quiet)
  }

  private begins(): void {
    clearTimeout(this.timer)
    this.stop.abort()
    this.stop = new AbortController()
    this.busy.value = true
  }

  private async goes(what: () => Promise<void>): Promise<void> {
    const { signal: stop } = this.stop
    try {
      await what()
      this.failed.value = undefined
    } catch (error) {
      if (stop.aborted) return
      this.failed.value = error as Error
      this.busy.value = false
    }
  }

  /** open is why nobody has said yet whether it is right: no answer came, or the session had ended. undefined where somebody has. */
  readonly open = computed(() => [this.failed.value, this.tried.value.error].find(unanswered))

  /** again asks once more where nobody has said. */
  async again(): Promise<void> {
    if (this.busy.peek()) return // a key was pressed since
    this.begins()
    await this.goes(() => (!this.failed.peek() ? this.dry(this.stop.signal) : this.unread ? this.read() : this.write()))
  }

  private async read(): Promise<void> {
    const { signal: stop } = this.stop
    const answer = await convert<ReadAnswer>('read', JSON.stringify({ as: 'belfry', text: this.text.peek(), fires: shownFires }), stop)
    stop.throwIfAborted()
    const [read, second] = answer.jobs
    this.unread = false
    if (answer.wrong || !read || second) {
      this.wrong.value = answer.wrong ?? { line: second?.line ?? 1, what: second ? `the text has ${answer.jobs.length} jobs, and this page is about one. Import takes many.` : 'there is no job in it.' }
      this.ahead = []
      this.busy.value = false
      return
    }
    this.unwritten.value = false
    this.take(read)
    const { ahead } = this
    this.ahead = []
    if (ahead.length) return this.change((v) => ahead.reduce((of, edit) => edit(of), v))
    await this.dry(stop)
  }

  private async write(): Promise<void> {
    const { signal: stop } = this.stop
    const read = await convert<Read>('write', `{"job":${write(this.value.peek())},"over":${JSON.stringify(this.text.peek())},"fires":${shownFires}}`, stop)
    stop.throwIfAborted()
    this.text.value = read.yaml
    this.unwritten.value = false
    this.take(read)
    await this.dry(stop)
  }

  /** back takes the text back to the last one that could be read. */
  back(): void {
    this.unread = false
    this.wrong.value = undefined
    this.later(() => this.write())
  }

  /** check has the server say what it would make of the job. */
  check(): void {
    if (this.unread) return
    this.later(() => this.dry(this.stop.signal))
  }

  /** rest says that what is written was saved: nothing is held back any more. */
  rest(): void {
    this.begun.value = this.text.peek()
    this.unwritten.value = false
    this.unreadPayload.value = false
  }

  /** body is what a request sends. */
  body(): string {
    return write(this.value.peek())
  }

  private async dry(stop: AbortSignal): Promise<void> {
    const name = this.name.peek()
    const good = namePattern.test(name)
    if (mayTry()) {
      try {
        const sent = good || this.edits ? this.body() : write(set(this.value.peek(), ['name'], undefined))
        const answer = await tried<Job>('/jobs/' + encodeURIComponent(good ? name : 'unnamed'), sent, stop)
        this.tried.value = { is: stored(answer), stands: good && !this.edits && answer.headers.get('ETag') !== null }
      } catch (error) {
        if (stop.aborted) return
        this.tried.value = { error: error as Error }
      }
    }
    this.busy.value = false
  }

  /** problems are what is wrong with it, by field; of a job that has no name, the first one. */
  readonly problems = computed<{ field: string; message: string }[]>(() => {
    const { error, stands } = this.tried.value
    const told = error instanceof Refusal ? (error.problem.errors ?? []) : (this.fires.value?.wrong ?? [])
    const name = at(this.value.value, ['name'])
    const own: { field: string; message: string }[] = []
    if (!this.edits) {
      if (!namePattern.test(this.name.value) && (this.name.value || this.dirty.value)) own.push({ field: 'name', message: name && !isText(name) ? 'want text' : wantName(this.name.value) })
      else if (stands) own.push({ field: 'name', message: `there is a job ${this.name.value} already` })
    }
    return [...own, ...told.filter((t) => t.field !== 'name' || !own.length)]
  })

  /** lineOf is where a field stands in the text, or what holds it. */
  lineOf(field: string): number {
    const { value: lines } = this.lines
    for (let at = field; at; at = at.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[\]]+)$/, '')) if (Object.hasOwn(lines, at)) return lines[at] ?? 1
    return lines[''] ?? 1
  }
}

const wantName = (name: string) => (name ? 'want 1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit' : 'the job needs a name')

/** mayTry: the server tries a job only for who may write it. */
export const mayTry = (): boolean => session.value?.scopes.includes('write') ?? true

const kept = new Map<string, Draft>()

/** draftOf is the draft of a job, or of a new one, if it was begun. */
export const draftOf = (edits: string | undefined): Draft | undefined => kept.get(keyOf(edits))

const keyOf = (edits: string | undefined) => (edits === undefined ? 'new' : 'job ' + edits)

export function keep(draft: Draft): Draft {
  kept.set(keyOf(draft.edits), draft)
  return draft
}

export function forget(draft: Draft): void {
  const key = keyOf(draft.edits)
  if (kept.get(key) === draft) kept.delete(key)
  unsaved.value = ''
}
