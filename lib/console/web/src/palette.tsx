// The palette: whatever can be gone to or done, by typing a part of its name.
import './app'
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get } from './api'
import { pages } from './keys'
import type { Job, Page } from './model'
import { paletteShown } from './palette-key'
import { go, to, withQuery } from './router'

interface Choice {
  kind: string
  name: string
  act: () => unknown
}

const runID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$/
const most = 10 // jobs that are shown
const looks = 5 // pages of 1,000 jobs that are looked through for one word

const nameOf = (button: HTMLElement): string => (button.getAttribute('aria-label') ?? button.innerText).trim()

const anywhere = [...pages, { name: 'New job', segments: ['new'] }, { name: 'Import', segments: ['import'] }]

/** onPage are the buttons of the page that can be pressed: what is done to what is shown. */
function onPage(): Choice[] {
  return [...document.querySelectorAll<HTMLElement>('#main button, #main a.act')]
    .filter((button) => !button.matches(':disabled') && button.getAttribute('aria-disabled') !== 'true' && !button.matches('.copy, .fresh') && button.offsetParent !== null)
    .map((button) => {
      const name = nameOf(button)
      // The page lives on: a button that was Pause may be Resume by now.
      return { kind: 'here', name, act: () => nameOf(button) === name && button.click() }
    })
    .filter((choice, i, all) => choice.name && !anywhere.some((p) => p.name === choice.name) && all.findIndex((c) => c.name === choice.name) === i)
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const here = useMemo(onPage, [])
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [jobs, setJobs] = useState<{ word: string; names: string[]; looked?: number; error?: Error }>({ word: '', names: [] })
  const id = useId()
  const word = text.trim()
  // With what is drawn: what is typed next is for it.
  const there = useRef(true)
  useLayoutEffect(() => {
    dialog.current?.showModal()
    return () => (there.current = false)
  }, [])
  // A browser tells that a dialog was closed when its key may have been pressed again: it would end the next one.
  const end = () => {
    if (there.current) paletteShown.value = false
  }
  useEffect(() => {
    setAt(0)
    if (!/^[A-Za-z0-9._-]{1,128}$/.test(word)) return setJobs({ word, names: [] })
    const stop = new AbortController()
    const timer = setTimeout(() => {
      const ask = async () => {
        const names: string[] = []
        let cursor: string | undefined
        let i = 0
        for (; i < looks && names.length < most; i++) {
          const { data } = await get<Page<Job>>('/jobs', { contains: word, limit: most, cursor }, stop.signal)
          names.push(...data.items.map((job) => job.name))
          cursor = data.next
          if (!cursor) break
        }
        setJobs({ word, names: names.slice(0, most), looked: cursor ? i * 1000 : undefined })
      }
      ask().catch((error: unknown) => stop.signal.aborted || setJobs({ word, names: [], error: error as Error }))
    }, 150)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [word])

  const looked = word === jobs.word ? jobs.looked : undefined
  const has = (name: string) => name.toLowerCase().includes(word.toLowerCase())
  const choices: Choice[] = [
    ...(runID.test(word) ? [{ kind: 'run', name: word, act: () => go(to('runs', word)) }] : []),
    ...here.filter((c) => has(c.name)),
    ...(word ? jobs.names.map((name) => ({ kind: 'job', name, act: () => go(to('jobs', name)) })) : []),
    ...(looked ? [{ kind: 'page', name: `All jobs with ${word} in the name`, act: () => go(withQuery(to('jobs'), { q: word })) }] : []),
    ...anywhere.filter((p) => has(p.name)).map((p) => ({ kind: 'page', name: p.name, act: () => go(to(...p.segments)) })),
  ]
  const chosen = Math.min(at, choices.length - 1)
  const take = (choice: Choice | undefined) => {
    if (!choice) return
    dialog.current?.close()
    end()
    choice.act()
  }
  const move = (to: number) => {
    setAt(to)
    document.getElementById(id + to)?.scrollIntoView({ block: 'nearest' })
  }
  const searching = word !== jobs.word && /^[A-Za-z0-9._-]+$/.test(word)
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to or do" onClose={end}>
      <input
        type="text"
        role="combobox"
        aria-label="Job, run ID, page or act"
        aria-expanded="true"
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={chosen >= 0 ? id + chosen : undefined}
        placeholder="Job, run ID, page or act"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 }[event.key]
          if (event.key === 'Enter' && !event.isComposing) take(choices[chosen])
          else if (to !== undefined && choices.length) move(event.key.startsWith('Page') ? Math.max(0, Math.min(choices.length - 1, to)) : (to + choices.length) % choices.length)
          else return
          event.preventDefault()
        }}
      />
      <div id={id} role="listbox" aria-label="Found" class="choices">
        {choices.map((choice, i) => (
          // The keys are those of the field, which keeps the focus.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <div key={choice.kind + choice.name} id={id + i} role="option" tabIndex={-1} aria-selected={i === chosen} onClick={() => take(choice)}>
            <span>{choice.name}</span> <i>{choice.kind}</i>
          </div>
        ))}
      </div>
      <p class="fine" role="status">
        {jobs.error && word === jobs.word ? 'Jobs cannot be looked for: ' + jobs.error.message : searching ? 'Looking for jobs …' : looked && jobs.names.length < most ? `Looked among the first ${looked.toLocaleString('en')} jobs by name.` : choices.length ? '' : 'Nothing is called so.'}
      </p>
    </dialog>
  )
}
