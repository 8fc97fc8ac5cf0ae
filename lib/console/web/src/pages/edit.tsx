// A job that is written: by a form and as YAML side by side, with what it would do.
import '../app'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { lacks } from '../acts'
import { open, useEnd } from '../dialog'
import { draftOf, Draft, forget, keep, look, mayTry, type Stored } from '../draft'
import { FireList, said } from '../firelist'
import { JobForm } from '../jobform'
import { useAgain, useLive } from '../live'
import { hold, query, to, withQuery } from '../router'
import { Conflict, Save } from '../saving'
import { pending, Refused, sentence, Waiting } from '../ui'
import { unsaved } from '../unsaved'
import { mine } from '../time'

// The address may bring the expression, as from the page that tries one.
const template = () => {
  const q = query.peek()
  const cron = q.get('cron')
  return `{"schedule":{"cron":${JSON.stringify(cron ?? '0 9 * * *')},"timezone":${JSON.stringify(cron === null ? mine : (q.get('timezone') ?? 'UTC'))}},"target":{"exec":{"argv":["echo","hello"]}}}`
}

/** began is what somebody has begun to write. A new job in which nothing was written yet makes room for what the address brings. */
function began(name: string | undefined): Draft | undefined {
  const draft = draftOf(name)
  return name === undefined && query.peek().has('cron') && draft && !draft.dirty.peek() ? undefined : draft
}

const views = { both: 'Side by side', form: 'Form', yaml: 'YAML' }
type View = keyof typeof views

/** Edit is the page of a new job, or of one that there is. */
export function Edit({ name }: { name?: string }) {
  const [draft, setDraft] = useState(() => began(name))
  const { error } = useLive(
    draft ? '' : 'begin ' + (name ?? ''),
    async (stop) => {
      const base = name === undefined ? undefined : await look(name, stop)
      if (name !== undefined && !base) throw new Error(`There is no job ${name}. It may have been deleted.`)
      const fresh = new Draft(name)
      await fresh.begin(base?.json ?? template(), base)
      stop.throwIfAborted()
      setDraft(keep(fresh))
    },
    5000,
  )
  const [agreed, setAgreed] = useState(false)
  if (draft && !agreed && !draft.ours()) return <Kept draft={draft} on={() => setAgreed(true)} drop={() => (forget(draft), setDraft(undefined))} />
  return (
    <section class="page edit">
      {draft ? (
        <Editing draft={draft} />
      ) : (
        <>
          <Title name={name} />
          {error && !('problem' in error) && (
            <p class="refused" role="alert">
              <strong>It cannot be edited.</strong> {error.message}
            </p>
          )}
          <Refused error={error} />
          {pending(error) && <Waiting lines={10} />}
        </>
      )}
    </section>
  )
}

function Title({ name, children }: { name: string | undefined; children?: preact.ComponentChildren }) {
  return (
    <header class="bar">
      <h1>
        {name === undefined ? (
          'New job'
        ) : (
          <>
            <span class="kind">Edit job</span> {name}
          </>
        )}
      </h1>
      {children}
    </header>
  )
}

/** Kept is shown when another token has signed in than the one under which the draft was begun. */
function Kept({ draft, on, drop }: { draft: Draft; on: () => void; drop: () => void }) {
  return (
    <section class="page">
      <Title name={draft.edits} />
      <p class="note">What was written here before is kept in this tab. It was begun under another token than the one that has signed in now.</p>
      <p class="buttons">
        <button type="button" class="main" onClick={on}>
          Go on with it
        </button>
        <button type="button" class="no" onClick={drop}>
          Drop it
        </button>
      </p>
    </section>
  )
}

function Editing({ draft }: { draft: Draft }) {
  const asked = query.value.get('view') ?? ''
  const view = (Object.hasOwn(views, asked) ? asked : 'both') as View
  const here = draft.edits === undefined ? to('new') : to('jobs', draft.edits, 'edit')
  const dirty = draft.dirty.value || draft.unreadPayload.value
  useHeld(draft, dirty)
  // Somebody else may change it meanwhile.
  const live = useLive(draft.edits === undefined ? '' : 'edit ' + draft.edits, async (stop) => ({ stands: await look(draft.edits ?? '', stop) }), 5000)
  const stands = live.data?.stands
  useAgain(draft)
  const base = draft.base.value
  const moved = live.data !== undefined && base !== undefined && stands?.job.status.etag !== base.job.status.etag
  const [quiet, setQuiet] = useState<string>() // the etag of theirs of which somebody wants to hear no more
  const [conflict, setConflict] = useState<{ theirs: Stored | undefined }>()
  const theirs = conflict ?? (moved && quiet !== etagOf(stands) ? { theirs: stands } : undefined)
  const against = lacks('write')
  const problems = draft.problems.value
  const why = against ?? cannot(draft, dirty)
  const save = () => open(<Save draft={draft} conflict={(found) => (setQuiet(undefined), setConflict({ theirs: found }))} />)
  return (
    <>
      <Title name={draft.edits}>
        <nav class="chips views" aria-label="How to write it">
          {(Object.keys(views) as View[]).map((v) => (
            <a key={v} class="chip" href={withQuery(here, { view: v === 'both' ? undefined : v })} aria-current={v === view ? 'page' : undefined}>
              {views[v]}
            </a>
          ))}
        </nav>
        <div class="acts">
          <a class="act" href={draft.edits === undefined ? to('jobs') : to('jobs', draft.edits)}>
            Cancel
          </a>
          <button type="button" class="main" aria-disabled={why ? 'true' : undefined} aria-describedby="why" onClick={(event) => event.detail < 2 && !why && save()}>
            {draft.edits === undefined ? 'Create…' : 'Save…'}
          </button>
        </div>
      </Title>
      <p id="why" class={against ? 'note' : 'fine'} aria-live="polite">
        {why ?? (dirty ? 'Not saved yet. You see what changes before it is saved.' : '')}
      </p>
      {theirs && (
        <Conflict
          draft={draft}
          theirs={theirs.theirs}
          on={() => {
            setQuiet(etagOf(theirs.theirs))
            setConflict(undefined)
          }}
          over={() => {
            draft.rebase(theirs.theirs)
            setConflict(undefined)
            open(<Save draft={draft} over conflict={(found) => setConflict({ theirs: found })} />)
          }}
        />
      )}
      <Refused error={draft.failed.value} />
      <div class={'beside v-' + view}>
        {view !== 'yaml' && <JobForm draft={draft} />}
        <div class="told">
          {view !== 'form' && <Yaml draft={draft} alone={view === 'yaml'} />}
          <Preview draft={draft} problems={problems} />
        </div>
      </div>
    </>
  )
}

const etagOf = (s: Stored | undefined) => s?.job.status.etag ?? 'gone'

/** cannot is why there is nothing to be saved. */
function cannot(draft: Draft, dirty: boolean): string | undefined {
  if (draft.wrong.value) return 'The YAML cannot be read.'
  if (draft.unreadPayload.value) return 'The payload is not JSON.'
  if (draft.edits !== undefined && !dirty) return 'Nothing is changed.'
  if (draft.edits === undefined && !dirty && !draft.name.value) return 'Begin with a name.'
  if (draft.busy.value) return 'It is being checked …'
  if (draft.problems.value.length) return draft.problems.value.length === 1 ? 'One field is wrong.' : `${draft.problems.value.length} fields are wrong.`
  if (draft.tried.value.error || !draft.tried.value.is) return draft.tried.value.error ? 'The server has not checked it.' : 'It is to be checked first.'
  return undefined
}

/** useHeld asks before what is written is left. It holds as soon as something can be seen to be written, not a frame later. */
function useHeld(draft: Draft, dirty: boolean): void {
  useLayoutEffect(() => {
    unsaved.value = ''
    if (!dirty) return
    unsaved.value = draft.edits === undefined ? 'the new job' : `your changes of ${draft.edits}`
    const letGo = hold((on) => (draft.dirty.peek() || draft.unreadPayload.peek() ? open(<Leave on={() => (forget(draft), on())} />) : on()))
    const unload = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', unload)
    return () => {
      letGo()
      removeEventListener('beforeunload', unload)
    }
  }, [dirty, draft])
  useEffect(
    () => () => {
      if (!draft.dirty.peek()) forget(draft)
    },
    [draft],
  )
}

/** Leave asks whether what is written may go. */
function Leave({ on }: { on: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const end = useEnd()
  useLayoutEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} class="act" aria-labelledby="leave" onClose={end}>
      <h2 id="leave">Leave without saving?</h2>
      <p class="says">What you have written is not saved. If you leave, it is gone.</p>
      <p class="buttons">
        <button
          type="button"
          class="main grave"
          onClick={() => {
            end()
            on()
          }}
        >
          Leave
        </button>
        <button type="button" class="no" onClick={() => dialog.current?.close()}>
          Stay here
        </button>
      </p>
    </dialog>
  )
}

function Yaml({ draft, alone }: { draft: Draft; alone: boolean }) {
  const area = useRef<HTMLTextAreaElement>(null)
  const wrong = draft.wrong.value
  const text = draft.text.value
  // Beside the form the fires are to be seen too.
  const rows = alone ? Math.max(14, Math.min(40, text.split('\n').length + 1)) : 16
  const goTo = (line: number, column = 0) => {
    const at = text.split('\n').slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0)
    const end = text.indexOf('\n', at)
    area.current?.focus()
    area.current?.setSelectionRange(at + Math.max(0, column - 1), end < 0 ? text.length : end)
  }
  const problems = draft.problems.value
  return (
    <section class="yaml" aria-labelledby="yaml">
      <h2 id="yaml">YAML</h2>
      <textarea
        aria-label="YAML of the job"
        ref={area}
        rows={rows}
        value={text}
        spellcheck={false}
        autocapitalize="off"
        wrap="off"
        aria-invalid={wrong || problems.length ? 'true' : undefined}
        aria-describedby="yamlwrong"
        onInput={(event) => draft.type(event.currentTarget.value)}
      />
      <div id="yamlwrong" aria-live="polite">
        {wrong && (
          <div class="refused">
            <strong>
              {wrong.line ? `Line ${wrong.line}${wrong.column ? `, column ${wrong.column}` : ''}` : 'It cannot be read'}:
            </strong>{' '}
            {wrong.what}{' '}
            <span class="fine">The form stays as it was until the text can be read.</span>
            {wrong.line !== undefined && (
              <button type="button" class="plain" onClick={() => goTo(wrong.line ?? 1, wrong.column)}>
                Show the line
              </button>
            )}
            <button type="button" class="plain" onClick={() => draft.back()}>
              Back to the last that could be read
            </button>
          </div>
        )}
        {!wrong && problems.length > 0 && (
          <ul class="refusals">
            {problems.map((p) => (
              <li key={p.field + p.message}>
                <button type="button" class="plain" onClick={() => goTo(draft.lineOf(p.field))}>
                  Line {draft.lineOf(p.field)}
                </button>{' '}
                {p.field && <code>{p.field}</code>} {p.message}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  )
}

function Preview({ draft, problems }: { draft: Draft; problems: { field: string }[] }) {
  const fires = draft.fires.value
  const { is, error } = draft.tried.value
  const told = error && !(error.name === 'Refusal') ? error : undefined
  const faulty = problems.some((p) => p.field.startsWith('schedule'))
  return (
    <section class="preview" aria-labelledby="preview">
      <h2 id="preview">Next fires</h2>
      {fires && !faulty && (
        <>
          {fires.description && <p class="verdict">{said(fires)}</p>}
          {fires.idle === 'paused' && <p class="note">It is paused: these are the fires that it would have.</p>}
          <FireList of={fires} />
        </>
      )}
      {faulty && <p class="nothing">The schedule cannot be read.</p>}
      {is?.job.status.tries && !problems.length && <p class="fine">If a run fails, Belfry {is.job.status.tries}.</p>}
      {error && problems.length === 0 && <Refused error={error} small />}
      {told && problems.length === 0 && <p class="nothing">{sentence(told.message)}</p>}
      {!mayTry() && <p class="fine">The server checks a job for those who may write it. Here only its schedule is checked.</p>}
    </section>
  )
}
