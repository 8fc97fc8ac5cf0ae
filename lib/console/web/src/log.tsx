// The log of the newest attempt of a run, or of a step of a workflow's run. It follows while the attempt writes, by asking for what is behind what was read.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { bytes, Refusal } from './api'
import { Screen } from './ansi'
import { isOpen, type Step } from './model'
import { Refused } from './ui'

const tail = 64 << 10

interface Logged {
  run: string // its ID
  step?: string
  attempt: number
  state: Step['state']
}

export function Log(of: Logged) {
  const { run, step, state } = of
  const screen = useRef(new Screen())
  const offset = useRef(-1) // -1 until the tail has come
  const read = useRef<number>() // which attempt
  const [before, setBefore] = useState(0)
  const [drawn, setDrawn] = useState(0)
  const [error, setError] = useState<Error>()
  const [known, setKnown] = useState(false)
  const [follows, setFollows] = useState(true)
  const box = useRef<HTMLPreElement>(null)
  const going = isOpen(state)

  useEffect(() => {
    let timer = 0
    let ended = false
    const stop = new AbortController()
    const round = async () => {
      if (!document.hidden) {
        try {
          const got = await bytes(`/runs/${encodeURIComponent(run)}/logs`, { step, ...(offset.current < 0 ? { tail } : { offset: offset.current, attempt: read.current }) }, stop.signal)
          if (offset.current < 0) {
            offset.current = Number(got.headers.get('Belfry-Log-Offset') ?? 0)
            read.current = Number(got.headers.get('Belfry-Attempt') ?? 0) || undefined
            setBefore(offset.current)
          }
          // Where a log has a gap, more was written than is sent. An attempt that has only just ended has no log for a moment.
          offset.current = Math.max(offset.current, Number(got.headers.get('Belfry-Log-Next') ?? 0))
          if (got.data.length) {
            screen.current.write(got.data, !going)
            setDrawn((n) => n + 1)
          }
          setError(undefined)
        } catch (e) {
          if (ended) return
          // Before an attempt has written there is no log, which is no fault.
          setError(e instanceof Refusal && going && (e.problem.status === 404 || e.problem.status === 410) ? undefined : (e as Error))
        }
        setKnown(true)
      }
      if (!ended && going) timer = window.setTimeout(round, 500)
    }
    void round()
    return () => {
      ended = true
      stop.abort()
      clearTimeout(timer)
    }
  }, [run, step, going])

  useLayoutEffect(() => {
    const element = box.current
    if (element && follows) element.scrollTop = element.scrollHeight
  }, [drawn, follows])

  const { lines, dropped } = screen.current
  const empty = lines.length === 1 && !lines[0]?.pieces.length
  return (
    <figure class="raw log">
      <figcaption>
        <span>
          Log of attempt {Math.max(1, of.attempt)}
          {going && state === 'running' && <span class="live"> live</span>}
          {before > 0 && ` · without its first ${Math.round(before / 1024)} KB`}
          {dropped > 0 && ` · the first ${dropped.toLocaleString('en')} lines are left out here`}
        </span>
        <label class="follow">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} /> follow
        </label>
        {!empty && <Save run={run} step={step} />}
      </figcaption>
      <Refused error={error} small />
      {empty && !error && known && <p class="nothing">{going && state !== 'retrying' ? 'Nothing has been written yet.' : 'The attempt wrote nothing.'}</p>}
      {!empty && (
        <pre
          ref={box}
          tabIndex={0}
          role="region"
          aria-label="Log"
          onScroll={(event) => {
            const e = event.currentTarget
            const bottom = e.scrollHeight - e.scrollTop - e.clientHeight < 24
            if (bottom !== follows) setFollows(bottom)
          }}
        >
          {lines.map((line, i) => [
            ...line.pieces.map((piece) => (piece.style ? <span class={piece.style}>{piece.text}</span> : piece.text)),
            i < lines.length - 1 ? '\n' : '',
          ])}
        </pre>
      )}
    </figure>
  )
}

function Save({ run, step }: { run: string; step: string | undefined }) {
  const [failed, setFailed] = useState(false)
  const save = async () => {
    try {
      const { data } = await bytes(`/runs/${encodeURIComponent(run)}/logs`, { step, offset: 0 })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([data as BlobPart], { type: 'text/plain' }))
      link.download = (step ? run + '.' + step : run).replace(/[^A-Za-z0-9._-]/g, '-') + '.log'
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
      setFailed(false)
    } catch {
      setFailed(true)
    }
  }
  return (
    <button type="button" class="copy" onClick={() => void save()}>
      {failed ? 'Download failed' : 'Download'}
    </button>
  )
}

