// Dialogs that ask before something is changed, notices of what was done, and the buttons that lead to both.
import { effect, signal } from '@preact/signals'
import { Fragment, type ComponentChildren, type VNode } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { lacks, outcome, type Scope } from './acts'
import { session, type Change } from './api'
import { bind } from './keys'
import { askAgain } from './live'
import { Stopped } from './many'
import { path } from './router'
import { byKey } from './key'
import { curl } from './terminal'
import { Command, Line, sentence } from './ui'

const shown = signal<{ node: VNode; from: string; key: number } | undefined>(undefined)

let count = 0

/** open shows a dialog over the page, in place of the one before. It goes with the page. */
export function open(node: VNode): void {
  shown.value = { node, from: path.peek(), key: ++count }
}

function close(): void {
  shown.value = undefined
}

/**
 * useEnd gives what closes the dialog that calls it, and no later one. A browser tells a frame later that a dialog was closed, when the next one may
 * be open.
 */
export function useEnd(): () => void {
  const own = useRef(shown.peek())
  return () => {
    if (shown.peek() === own.current) close()
  }
}

/** Dialogs has the dialog that is open, if there is one. */
export function Dialogs() {
  const now = shown.value
  const there = now !== undefined && now.from === path.value
  useEffect(() => {
    if (now && !there) close()
  }, [there, now])
  useEffect(() => close, [session.value?.id]) // a session that has ended, or has become another one, takes it along
  return there ? <Fragment key={now.key}>{now.node}</Fragment> : null
}

/** Look is where to see whether something was done. */
export interface Look {
  href: string
  text: string
}

interface Asked {
  title: string
  says: ComponentChildren // what will happen
  wont: ComponentChildren // what will not
  button: string
  act: () => Promise<ComponentChildren> // what to tell of it when it was done, if it has not told
  terminal: { command: string; change?: Change | string; loose?: boolean } // what is sent, or how curl sends it, where one request does it; loose: the command goes by no etag
  look: Look
  children?: ComponentChildren
  ready?: boolean
  missing?: string // what is to be given first: until then there is no request, and no command of it
  grave?: boolean
  doing?: string // on the button, while it is done
  reads?: boolean // it changes nothing
}

/** Ask is a dialog about one change. Its button is disabled while the request runs; where it is closed meanwhile, a notice tells the outcome. */
export function Ask({ title, says, wont, button, act, terminal, look, children, missing, ready = true, grave = false, doing = 'Asking …', reads }: Asked) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const there = useRef(true)
  const end = useEnd()
  const able = ready && !missing
  const asking = useRef(false) // set at once, as what is drawn is not
  const id = useId()
  // With what is drawn: what is typed next is for it.
  useLayoutEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    const first = dialog.current?.querySelector<HTMLElement>('input:not([type=radio]), textarea') ?? dialog.current?.querySelector<HTMLElement>('.no')
    first?.focus()
    return () => {
      there.current = false
      const back = before instanceof HTMLElement && before.isConnected ? before : document.getElementById('main')
      back?.focus()
    }
  }, [])
  const submit = async () => {
    if (asking.current || !able) return
    asking.current = true
    setBusy(true)
    setError(undefined)
    const tell = teller()
    try {
      const text = await act()
      if (text) tell(text)
      end()
    } catch (failed) {
      if (there.current) setError(failed)
      else tell(<Failed error={failed} look={look} reads={reads} />, { bad: true })
    }
    asking.current = false
    if (there.current) setBusy(false)
  }
  return (
    <dialog ref={dialog} class="act" aria-labelledby={id + 'title'} aria-describedby={id + 'says'} onClose={end}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h2 id={id + 'title'}>{title}</h2>
        <p id={id + 'says'} class="says">
          {says}
        </p>
        {children}
        <p class="wont">
          <b>What will not happen:</b> {wont}
        </p>
        {error !== undefined && <Failed error={error} look={look} reads={reads} />}
        <p class="buttons">
          <button type="submit" class={grave ? 'main grave' : 'main'} aria-disabled={busy || !able ? 'true' : undefined} aria-describedby={missing ? id + 'missing' : undefined}>
            {busy ? doing : button}
          </button>
          <button type="button" class="no" onClick={() => dialog.current?.close()}>
            {busy || error !== undefined ? 'Close' : 'Do nothing'}
          </button>
          <span id={id + 'missing'} class="fine" aria-live="polite">
            {missing}
          </span>
        </p>
        <details class="cli">
          <summary>The same in a terminal</summary>
          {missing ? (
            <p class="fine">{missing}</p>
          ) : (
            <>
              <Command text={terminal.command} />
              {!byKey && terminal.change && <Line text={typeof terminal.change === 'string' ? terminal.change : curl(terminal.change)} />}
              {terminal.loose && <p class="fine">The command of belfry does it whoever has made changes since, the dialog only as you saw it.</p>}
            </>
          )}
        </details>
      </form>
    </dialog>
  )
}

/** Failed says what is known of a change that was not answered with a yes. */
export function Failed({ error, look, what = '', reads }: { error: unknown; look?: Look; what?: string; reads?: boolean }) {
  const stopped = error instanceof Stopped
  const told = outcome(stopped ? error.why : error, reads)
  return (
    <div class="refused" role="alert">
      <strong>
        {what && what + ' '}
        {stopped ? error.after + told.title.replace(/^Not done(?=[:.])|^/, (done) => (done ? '' : '. ')) : told.title}
      </strong> {sentence(told.detail)}
      {told.fields.map((e) => (
        <p key={e.field}>
          <code>{e.field}</code> {e.message}
        </p>
      ))}
      {look && (told.maybe || told.code.startsWith('precondition')) && (
        <p>
          <a
            href={look.href}
            onClick={() => {
              askAgain()
              close()
            }}
          >
            Look again: {look.text}
          </a>
        </p>
      )}
      {told.code && <span class="fine">{told.code}</span>}
    </div>
  )
}

interface Notice {
  id: number
  text: ComponentChildren
  bad: boolean
  undo: (() => void) | undefined
}

const notices = signal<Notice[]>([])
const most = 3

/** tell shows a notice for some seconds, or until it is closed where it is bad. It has a button that takes back what was done, if that can be. */
export function tell(text: ComponentChildren, { bad = false, undo }: { bad?: boolean; undo?: () => void } = {}): void {
  notices.value = [...notices.peek().filter((n) => n.text !== text), { id: ++count, text, bad, undo }].slice(-most)
}

/** teller tells of what is under way, unless another session has come to be that of the tab: its owner may be of another tenant. */
export function teller(): typeof tell {
  const held = session.peek()
  return (...what) => {
    if (session.peek() === held) tell(...what)
  }
}

effect(() => {
  void session.value
  notices.value = []
})

const drop = (id: number) => {
  notices.value = notices.peek().filter((n) => n.id !== id)
}

// A button that has gone leaves the focus nowhere.
const dropped = (id: number) => {
  if (document.activeElement?.closest('.notice')) document.getElementById('main')?.focus({ preventScroll: true })
  drop(id)
}

/** takeBack presses Undo of a notice, once. */
const takeBack = ({ id, undo }: Notice) => {
  if (notices.peek().some((n) => n.id === id)) undo?.()
  dropped(id)
}

const lasting = 12_000

/** Notices are read out when they come. */
export function Notices() {
  useLayoutEffect(
    () =>
      bind('u', () => {
        const newest = notices.peek().findLast((n) => n.undo)
        if (newest) takeBack(newest)
      }),
    [],
  )
  return (
    <div class="notices" role="status">
      {notices.value.map((n) => (
        <One key={n.id} of={n} />
      ))}
    </div>
  )
}

function One({ of }: { of: Notice }) {
  const { id, text, bad, undo } = of
  const [held, setHeld] = useState(false)
  useEffect(() => {
    if (bad || held) return
    const timer = setTimeout(() => drop(id), lasting)
    return () => clearTimeout(timer)
  }, [bad, held])
  const over = useRef(new Set<string>())
  const hold = (what: string, is: boolean) => () => {
    if (is) over.current.add(what)
    else over.current.delete(what)
    setHeld(over.current.size > 0)
  }
  return (
    <div class={bad ? 'notice bad' : 'notice'} onPointerEnter={hold('pointer', true)} onPointerLeave={hold('pointer', false)} onFocusIn={hold('focus', true)} onFocusOut={hold('focus', false)}>
      <div>{text}</div>
      {undo && (
        <button type="button" class="plain" aria-keyshortcuts="u" onClick={() => takeBack(of)}>
          Undo
        </button>
      )}
      <button type="button" class="plain" aria-label="Close this notice" onClick={() => dropped(id)}>
        ✕
      </button>
    </div>
  )
}

// As long as a second press may have been meant for what stood there before.
const settling = 1000

/** useSettling is true for a moment after a button has become another one, and after settle: nobody has read it by then. */
function useSettling(face: string | undefined): [boolean, () => void] {
  const [from, setFrom] = useState(0)
  const before = useRef(face)
  const settle = () => setFrom((n) => n + 1)
  useLayoutEffect(() => {
    if (before.current !== face) settle()
    before.current = face
  }, [face])
  const [until, setUntil] = useState(0)
  useEffect(() => {
    if (!from) return
    const timer = setTimeout(() => setUntil(from), settling)
    return () => clearTimeout(timer)
  }, [from])
  return [from !== until, settle]
}

/** Button asks for a change, or for something that only reads where it has no scope. Where the session may not, or why says what stands against it, it is there, disabled, and says so. face names what
 * it does where that changes under the hand: for a moment after a change, and after a press, it takes no other. */
export function Button({ scope, why, act, letter, face, children }: { scope?: Scope; why?: string; act: () => void | Promise<void>; letter?: string; face?: string; children: ComponentChildren }) {
  const [busy, setBusy] = useState(false)
  const [held, settle] = useSettling(face)
  const id = useId()
  const against = (scope && lacks(scope)) ?? why
  const asking = useRef(false)
  const press = async () => {
    if (against) return tell(against)
    if (asking.current || held) return
    asking.current = true
    setBusy(true)
    await act()
    if (face) settle()
    asking.current = false
    setBusy(false)
  }
  const latest = useRef(press)
  latest.current = press
  // With the button, not a moment after it: whoever sees it may press its key.
  useLayoutEffect(() => (letter ? bind(letter, () => void latest.current()) : undefined), [letter])
  return (
    <>
      <button type="button" class="act" aria-disabled={against || busy || held ? 'true' : undefined} aria-describedby={against ? id : undefined} aria-keyshortcuts={letter} title={against} onClick={(event) => event.detail < 2 && void press()}>
        {children}
      </button>
      {against && (
        <span class="hidden" id={id}>
          {against}
        </span>
      )}
    </>
  )
}

/** atOnce makes a change that can be taken back, without asking first; undo makes the change that takes it back. */
export async function atOnce<T>(make: () => Promise<T>, done: (made: T) => ComponentChildren, look: Look, undo?: { make: (made: T) => Promise<unknown>; done: ComponentChildren }): Promise<void> {
  const tell = teller()
  const refused = (what: string) => (error: unknown) => tell(<Failed error={error} what={what} look={look} />, { bad: true })
  try {
    const made = await make()
    const back = undo && (() => void undo.make(made).then(() => tell(undo.done), refused('The undo failed.')))
    tell(done(made), { undo: back })
  } catch (error) {
    refused('')(error)
  }
}
