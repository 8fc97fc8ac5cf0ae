// A job is saved: what changes is shown first, it is asked for once, and what came of it is told.
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { carry, outcome } from './acts'
import { Refusal, type Change } from './api'
import { Failed, tell, useEnd } from './dialog'
import { Diff } from './diff'
import { forget, look, yamls, type Draft, type Stored } from './draft'
import { byKey } from './key'
import { now } from './clock'
import type { Job } from './model'
import { quoted } from './quoted'
import { go, to } from './router'
import { curl } from './terminal'
import { parse as instant } from './time'
import { Command, Instant, Line, Waiting, Ago } from './ui'
import { parse, set, write } from './value'

/** put asks for a job to be made where there is none, or replaced as it was read. */
export const put = (name: string, body: string, etag: string | undefined): Change => ({
  method: 'PUT', path: '/jobs/' + encodeURIComponent(name), body, headers: etag === undefined ? { 'If-None-Match': '*' } : { 'If-Match': etag },
})

/** applied is a job in a terminal. */
export const applied = (json: string): string => `printf '%s' ${quoted(json)} | belfry job apply -f -`

interface Saves {
  draft: Draft
  over?: boolean // what somebody else has made of it is taken back knowingly
  conflict: (theirs: Stored | undefined) => void
}

export function Save({ draft, over = false, conflict }: Saves) {
  const dialog = useRef<HTMLDialogElement>(null)
  const end = useEnd()
  const id = useId()
  const name = draft.name.peek()
  const base = draft.base.peek()
  // What is looked at is what is sent, whatever is written meanwhile.
  const [body] = useState(() => draft.body())
  const [is] = useState(() => draft.tried.peek().is)
  const change = put(name, body, base?.job.status.etag)
  const [texts, setTexts] = useState<[string, string]>()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [seen, setSeen] = useState('')
  const asking = useRef(false)
  useLayoutEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    const stop = new AbortController()
    yamls(base?.json, is?.json ?? body, stop.signal).then(setTexts, (failed: Error) => {
      if (!stop.signal.aborted) setError(failed)
    })
    return () => {
      stop.abort()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const saved = () => {
    forget(draft)
    draft.rest()
    end()
    tell(
      <>
        The job {name} is {base ? 'saved' : 'created'}.
      </>,
    )
    go(to('jobs', name))
  }
  const submit = async () => {
    if (asking.current || !texts) return
    if (!draft.ours()) return end() // another token has signed in meanwhile, in another tab
    asking.current = true
    setBusy(true)
    setError(undefined)
    setSeen('')
    try {
      await carry<Job>(change)
      saved()
    } catch (failed) {
      if (failed instanceof Refusal && failed.problem.status === 412) {
        const theirs = await look(name).catch(() => undefined)
        end()
        conflict(theirs)
      } else setError(failed)
    }
    asking.current = false
    setBusy(false)
  }
  // Nobody knows what became of it: what stands there tells.
  const again = async () => {
    setSeen('Looking …')
    try {
      const stands = await look(name)
      if (stands && is && stands.json === is.json && stands.job.status.etag !== base?.job.status.etag) return saved()
      if (stands?.job.status.etag === base?.job.status.etag) {
        setError(undefined)
        return setSeen('It was not done: ' + (base ? 'the job is as it was.' : 'there is no such job.'))
      }
      end()
      conflict(stands)
    } catch {
      setSeen('It cannot be seen now. Look again later.')
    }
  }
  const maybe = error !== undefined && outcome(error).maybe
  return (
    <dialog ref={dialog} class="act wide" aria-labelledby={id + 't'} onClose={end}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h2 id={id + 't'}>{base ? (over ? `Overwrite ${name}` : `Save ${name}`) : `Create ${name}`}</h2>
        {over && <p class="note bad">What somebody else has made of it since you began goes, where this differs.</p>}
        {texts ? <Diff old={texts[0]} next={texts[1]} label={base ? 'The job as it stands, and as it will be' : 'The new job'} /> : error === undefined && <Waiting lines={6} />}
        {is && <Meaning was={base?.job} is={is.job} />}
        <p class="wont">
          <b>What will not happen:</b> {base ? 'No run starts by this, and those that have started are not stopped.' : 'No run starts before its first fire.'}
        </p>
        {error !== undefined && <Failed error={error} />}
        {seen && <p class="note">{seen}</p>}
        <p class="buttons">
          {maybe ? (
            <button type="button" class="main" onClick={() => void again()}>
              Look again
            </button>
          ) : (
            <button type="submit" class={over ? 'main grave' : 'main'} aria-disabled={busy || !texts ? 'true' : undefined}>
              {busy ? 'Asking …' : base ? (over ? 'Overwrite' : 'Save') : 'Create'}
            </button>
          )}
          <button type="button" class="no" onClick={() => dialog.current?.close()}>
            {busy || error !== undefined ? 'Close' : 'Go on writing'}
          </button>
        </p>
        <details class="cli">
          <summary>The same in a terminal</summary>
          <Command text={applied(write(set(parse(body), ['name'], { raw: JSON.stringify(name) })))} />
          {!byKey && <Line text={curl(change)} />}
          {base && <p class="fine">The first replaces the job whoever has changed it since; the second only as you saw it.</p>}
        </details>
      </form>
    </dialog>
  )
}

/** Meaning says what a change means for the fires of a job. */
function Meaning({ was, is }: { was: Job | undefined; is: Job }) {
  const before = was?.status.next_runs ?? []
  const after = is.status.next_runs ?? []
  const zone = is.schedule?.timezone
  // Those of one list that come before the other one ends can be compared.
  const upto = after.length < 5 ? Infinity : instant(after.at(-1))
  const gone = before.filter((at) => instant(at) > now.value && instant(at) <= upto && !after.includes(at))
  return (
    <ul class="meaning">
      {was && before[0] !== after[0] && (
        <li>
          Next fire: {before[0] ? <Instant at={before[0]} where={was.schedule?.timezone} /> : 'none'} → {after[0] ? <><Instant at={after[0]} where={zone} /> <Ago at={after[0]} /></> : nothing(is)}
        </li>
      )}
      {was && before[0] === after[0] && after[0] && (
        <li>
          Next fire: <Instant at={after[0]} where={zone} />, as before
        </li>
      )}
      {!was && (
        <li>
          Next fire: {after[0] ? <><Instant at={after[0]} where={zone} /> <Ago at={after[0]} /></> : nothing(is)}
        </li>
      )}
      {gone.length > 0 && (
        <li>
          {gone.length === 1 ? 'A fire falls away: ' : `${gone.length} of the next fires fall away: `}
          {gone.map((at, i) => (
            <span key={at}>
              {i > 0 && ', '}
              <Instant at={at} where={was?.schedule?.timezone} />
            </span>
          ))}
        </li>
      )}
      {is.status.tries && was?.status.tries !== is.status.tries && <li>If a run fails, Belfry {is.status.tries}</li>}
    </ul>
  )
}

const nothing = (job: Job) => (job.paused ? 'none while it is paused' : job.schedule ? 'never again' : 'only when somebody asks for it')

interface Conflicts {
  draft: Draft
  theirs: Stored | undefined // undefined: deleted
  on: () => void
  over: () => void
}

/** Conflict says that somebody else has changed the job, and lets choose: look, go on, overwrite. */
export function Conflict({ draft, theirs, on, over }: Conflicts) {
  const name = draft.name.peek()
  const base = draft.base.value
  const [texts, setTexts] = useState<[string, string]>()
  const [looks, setLooks] = useState(false)
  useEffect(() => {
    setTexts(undefined)
    if (!looks) return
    const stop = new AbortController()
    yamls(base?.json, theirs?.json, stop.signal).then(setTexts, () => undefined)
    return () => stop.abort()
  }, [looks, theirs?.json, base?.json])
  return (
    <div class="note bad conflict" role="alert">
      <p>
        {!base ? (
          <>
            <b>There is a job {name} already.</b> Nothing was done.
          </>
        ) : theirs ? (
          <>
            <b>Somebody has changed {name} since you began</b>, <Ago at={theirs.job.status.updated_at} />. What you write is not saved, and theirs stands.
          </>
        ) : (
          <>
            <b>Somebody has deleted {name} since you began.</b> What you write is not saved.
          </>
        )}
      </p>
      <p class="buttons">
        {theirs && (
          <button type="button" class="act" aria-expanded={looks} onClick={() => setLooks(!looks)}>
            Look at theirs
          </button>
        )}
        <button type="button" class="act" onClick={on}>
          Keep editing
        </button>
        <button type="button" class="act" onClick={over}>
          {theirs ? 'Overwrite theirs…' : 'Make it anew…'}
        </button>
      </p>
      {looks && texts && <Diff old={texts[0]} next={texts[1]} label={base ? 'What they have changed' : 'The job that there is'} />}
    </div>
  )
}

