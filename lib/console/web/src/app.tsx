// The frame around the pages, and which of them is shown.
import { useEffect, useRef, useState } from 'preact/hooks'
import { locked } from './api'
import { Dialogs, Notices } from './dialog'
import { SignIn } from './key'
import { helpShown, pages } from './keys'
import { lazy } from './lazy'
import { way } from './changes'
import { lost, useTick } from './live'
import { PaletteButton, PaletteHere } from './palette-key'
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
import { Empty } from './ui'

const Schedule = lazy(() => import('./pages/schedule').then((m) => m.Schedule))
const Reference = lazy(() => import('./pages/reference').then((m) => m.Reference))
const Settings = lazy(() => import('./pages/settings').then((m) => m.Settings))
const Edit = lazy(() => import('./pages/edit').then((m) => m.Edit))
const Tools = lazy(() => import('./pages/tools').then((m) => m.Tools))
const Import = lazy(() => import('./pages/import').then((m) => m.Import))

function Shown() {
  const [first, second, ...rest] = parts.value
  if (first === 'jobs' && second !== undefined && rest.length === 1 && rest[0] === 'edit') return <Edit key={second} name={second} />
  if (rest.length === 0) {
    if (second !== undefined) {
      if (first === 'jobs') return <Job key={second} name={second} />
      if (first === 'runs') return <Run key={second} id={second} />
      if (first === 'tools') return <Tools of={second} />
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
        case 'tools':
          return <Tools of="" />
        case 'docs':
          return <Reference />
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
  const [unfolded, setUnfolded] = useState(false)
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
        <PaletteButton />
        <nav class="wide" aria-label="Pages">
          <ul>{links}</ul>
        </nav>
        <details class="narrow" ref={menu} onToggle={(event) => setUnfolded(event.currentTarget.open)}>
          <summary>
            <span class="hidden">Pages: </span>
            {pages.find((p) => p.segments[0] === here)?.name ?? 'Pages'}
          </summary>
          {unfolded && (
            <nav aria-label="Pages, narrow">
              <ul>{links}</ul>
            </nav>
          )}
        </details>
        <Live />
      </header>
      <main id="main" tabIndex={-1}>
        {locked.value === undefined ? <Shown /> : <SignIn />}
      </main>
      {locked.value === undefined && <Dialogs />}
      <Notices />
      <PaletteHere />
      <Help />
    </div>
  )
}

const ways = {
  unknown: ['', undefined],
  stream: ['live', 'The server tells when something changes.'],
  poll: ['every 2 s', 'This page asks every two seconds whether something has changed.'],
  slow: ['every 10 s', 'This page asks every ten seconds whether something has changed.'],
} as const

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
  const [word, says] = ways[way.value ?? 'unknown']
  return locked.value === undefined ? <p class="link" title={says}>{word}</p> : null
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
  ['Ctrl K', 'find a job, a run, a page or an act'],
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
