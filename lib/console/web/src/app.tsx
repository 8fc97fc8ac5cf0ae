// The frame around the pages, and which of them is shown.
import { useEffect, useRef, useState } from 'preact/hooks'
import { locked, signIn } from './api'
import { Dialogs, Notices } from './dialog'
import { AskKey, byKey } from './key'
import { helpShown, pages } from './keys'
import { lazy } from './lazy'
import { lost, useTick } from './live'
import { followed, parts, to } from './router'
import { singleKeys } from './settings'
import { span } from './time'
import { DeadLetters } from './pages/deadletters'
import { Job } from './pages/job'
import { Jobs } from './pages/jobs'
import { Overview } from './pages/overview'
import { Queues } from './pages/queues'
import { Run } from './pages/run'
import { Runs } from './pages/runs'
import { Command, Empty } from './ui'
import { unsaved } from './unsaved'

const Schedule = lazy(() => import('./pages/schedule').then((m) => m.Schedule))
const Settings = lazy(() => import('./pages/settings').then((m) => m.Settings))
const Edit = lazy(() => import('./pages/edit').then((m) => m.Edit))
const Import = lazy(() => import('./pages/import').then((m) => m.Import))

function Shown() {
  const [first, second, ...rest] = parts.value
  if (first === 'jobs' && second !== undefined && rest.length === 1 && rest[0] === 'edit') return <Edit key={second} name={second} />
  if (rest.length === 0) {
    if (second !== undefined) {
      if (first === 'jobs') return <Job key={second} name={second} />
      if (first === 'runs') return <Run key={second} id={second} />
    } else {
      switch (first) {
        case undefined:
          return <Overview />
        case 'jobs':
          return <Jobs />
        case 'runs':
          return <Runs />
        case 'dead-letters':
          return <DeadLetters />
        case 'queues':
        case 'workers':
          return <Queues />
        case 'schedule':
          return <Schedule />
        case 'settings':
          return <Settings />
        case 'new':
          return <Edit key="" />
        case 'import':
          return <Import />
      }
    }
  }
  return (
    <section class="page">
      <header class="bar">
        <h1>Not found</h1>
      </header>
      <Empty>
        There is no page here. The <a href={to()}>overview</a> leads to all that there are.
      </Empty>
    </section>
  )
}

export function App() {
  const [first, second] = parts.value
  const here = first === 'workers' ? 'queues' : first === 'new' || first === 'import' ? 'jobs' : first
  const title = [second ?? { new: 'New job', import: 'Import' }[first ?? ''] ?? pages.find((p) => p.segments[0] === first)?.name ?? 'Not found', 'Belfry'].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (menu.current) menu.current.open = false
  }, [first, second])
  const links = pages.map((p) => (
    <li key={p.name}>
      <a href={to(...p.segments)} aria-current={here === p.segments[0] ? 'page' : undefined}>
        {p.name}
      </a>
    </li>
  ))
  return (
    // Clicks on links come up to here; a link is what takes the focus and the keys.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events
    <div class="frame" onClick={followed}>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        To the page
      </a>
      <header class="side">
        <a class="brand" href={to()} aria-label="Belfry, overview">
          <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
            <path d="M16 2a3 3 0 0 0-3 3v.6A9 9 0 0 0 7 14v6l-3 4v2h24v-2l-3-4v-6a9 9 0 0 0-6-8.4V5a3 3 0 0 0-3-3zm-4 26a4 4 0 0 0 8 0z" />
          </svg>
          Belfry
        </a>
        <nav class="wide" aria-label="Pages">
          <ul>{links}</ul>
        </nav>
        <details class="narrow" ref={menu}>
          <summary>
            <span class="hidden">Pages: </span>
            {pages.find((p) => p.segments[0] === here)?.name ?? 'Pages'}
          </summary>
          <nav aria-label="Pages, narrow">
            <ul>{links}</ul>
          </nav>
        </details>
        <Live />
      </header>
      <main id="main" tabIndex={-1}>
        {locked.value === undefined ? <Shown /> : byKey ? <AskKey /> : <SignIn />}
      </main>
      {locked.value === undefined && <Dialogs />}
      <Notices />
      <Help />
    </div>
  )
}

/** Live says whether what is shown is of now. */
function Live() {
  useTick(1000, lost.value > 0)
  if (lost.value) {
    return (
      <p class="link lost" role="status">
        No answer for {span(Date.now() - lost.value)}: what is shown may be old. Retrying.
      </p>
    )
  }
  return locked.value === undefined ? <p class="link">live</p> : null
}

/** SignIn is shown instead of a page while the server wants a token. */
function SignIn() {
  const [text, setText] = useState('')
  const [readOnly, setReadOnly] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  return (
    <section class="page ask">
      <header class="bar">
        <h1>This server asks for a token</h1>
      </header>
      {locked.value && <p class="note">{locked.value}</p>}
      {unsaved.value && <p class="note">This tab keeps {unsaved.value}. Sign in to go on with it.</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (!text.trim() || busy) return
          setBusy(true)
          setError(undefined)
          void signIn(text.trim(), readOnly)
            .catch(setError)
            .finally(() => setBusy(false))
        }}
      >
        <label>
          <span>Token</span>
          <input ref={field} type="password" name="token" value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} placeholder="bel_…" />
        </label>
        <button type="submit" class="main">
          Sign in
        </button>
        <label class="tick">
          <input type="checkbox" name="read-only" checked={readOnly} onChange={(event) => setReadOnly(event.currentTarget.checked)} /> only look
        </label>
      </form>
      {error && <p class="refused" role="alert">{error.message}</p>}
      <p class="fine">
        The token needs the scope read to look, run to trigger, cancel and retry, and write to pause and delete. It is not kept: this tab gets a session, which has those of the three scopes that the
        token has, and ends after 12 hours at most. With “only look” it can change nothing. An admin makes a token with:
      </p>
      <Command text="belfry token create --scope read,run --name console" />
    </section>
  )
}

const keys: [string, string][] = [
  ['j, k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['t', 'trigger the job'],
  ['p', 'pause or resume the job'],
  ['u', 'undo what a notice tells of'],
  ['r', 'retry the run'],
  ['/', 'filter'],
  ...pages.map((p): [string, string] => ['g ' + p.key, p.name]),
  ['?', 'these keys'],
]

function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (helpShown.value) dialog.current?.showModal()
    else dialog.current?.close()
  }, [helpShown.value])
  return (
    <dialog ref={dialog} aria-labelledby="keys" onClose={() => (helpShown.value = false)}>
      <h2 id="keys">Keys</h2>
      <dl class="keys">
        {helpShown.value && keys.map(([key, does]) => (
          <div key={key}>
            <dt>
              {key.split(/(?<=,) | /).map((k) => (
                <>
                  <kbd>{k.replace(',', '')}</kbd>{' '}
                </>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p class="fine">{singleKeys.value ? 'Settings turn single keys off.' : 'Single keys are turned off in the settings.'}</p>
      <form method="dialog">
        <button type="submit" class="main">
          Close
        </button>
      </form>
    </dialog>
  )
}
