// How a tab signs in: with a token, or with the key of belfry console. The address that this prints has one behind the #, where no request and
// no log gets to see it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { locked, overTLS, resume, session, signIn } from './api'
import { Command } from './ui'
import { unsaved } from './unsaved'

/** byKey tells whether these pages are opened with a key in place of a token. */
export const byKey = document.documentElement.dataset.key === 'yes'

const keyIn = (text: string): string => new URLSearchParams(text.slice(text.indexOf('#') + 1)).get('key') ?? ''

/** arrive signs in with the key that stands in the address, if one does, and takes it out of there first; else with the cookie that is there. */
export async function arrive(): Promise<void> {
  const key = keyIn(location.hash)
  if (!byKey || !key) return resume()
  history.replaceState(null, '', location.pathname + location.search)
  try {
    await signIn(key, false)
  } catch (error) {
    // An address that was opened again, in a tab that has its session, is no mistake.
    if (!session.peek()) locked.value = (error as Error).message
  }
}

// The same address with another key, opened in this tab, loads nothing.
addEventListener('hashchange', () => void arrive())

/** SignIn is shown instead of a page while the server wants a token, or belfry console a key. */
export function SignIn() {
  const [text, setText] = useState('')
  const [readOnly, setReadOnly] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const given = text.trim()
  return (
    <section class="page ask">
      <header class="bar">
        <h1>{byKey ? 'This tab needs an address from the terminal' : 'This server asks for a token'}</h1>
      </header>
      {locked.value && <p class="note">{locked.value}</p>}
      {unsaved.value && <p class="note">This tab keeps {unsaved.value}. Sign in to go on with it.</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (!given || busy) return
          setBusy(true)
          setError(undefined)
          void signIn(byKey ? keyIn(given) || given : given, readOnly)
            .catch(setError)
            .finally(() => setBusy(false))
        }}
      >
        <label>
          <span>{byKey ? 'Address' : 'Token'}</span>
          <input ref={field} type="password" name={byKey ? 'address' : 'token'} value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} placeholder={byKey ? 'http://…#key=…' : 'bel_…'} />
        </label>
        <button type="submit" class="main">
          Sign in
        </button>
        {!byKey && (
          <label class="tick">
            <input type="checkbox" name="read-only" checked={readOnly} onChange={(event) => setReadOnly(event.currentTarget.checked)} /> only look
          </label>
        )}
      </form>
      {error && <p class="refused" role="alert">{error.message}</p>}
      {byKey ? (
        <p class="fine">
          <code>belfry console</code> prints an address in its terminal. Each address opens one tab, and then another one is printed. Paste the last one here, or open it.
        </p>
      ) : (
        <>
          <p class="fine">
            The token needs the scope read to look, run to trigger, cancel and retry, and write to pause and delete. It is not kept: {overTLS ? 'this browser' : 'this tab'} gets a session, which has
            those of the three scopes that the token has, and ends after 12 hours at most. With “only look” it can change nothing. An admin makes a token with:
          </p>
          <Command text="belfry token create --scope read,run --name console" />
        </>
      )}
    </section>
  )
}
