// The key of belfry console. The address that it prints has one behind the #, where no request and no log gets to see it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { locked, session, signIn } from './api'
import { unsaved } from './unsaved'

/** byKey tells whether these pages are opened with a key in place of a token. */
export const byKey = document.documentElement.dataset.key === 'yes'

const keyIn = (text: string): string => new URLSearchParams(text.slice(text.indexOf('#') + 1)).get('key') ?? ''

/** arrive signs in with the key that stands in the address, if one does, and takes it out of there first. */
export async function arrive(): Promise<void> {
  const key = keyIn(location.hash)
  if (!byKey || !key) return
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

/** AskKey is shown instead of a page while this tab has no session. */
export function AskKey() {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  return (
    <section class="page ask">
      <header class="bar">
        <h1>This tab needs an address from the terminal</h1>
      </header>
      {locked.value && <p class="note">{locked.value}</p>}
      {unsaved.value && <p class="note">This tab keeps {unsaved.value}. Sign in to go on with it.</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const key = keyIn(text.trim()) || text.trim()
          if (!key || busy) return
          setBusy(true)
          setError(undefined)
          void signIn(key, false)
            .catch(setError)
            .finally(() => setBusy(false))
        }}
      >
        <label>
          <span>Address</span>
          <input ref={field} type="password" name="address" value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} placeholder="http://…#key=…" />
        </label>
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
      {error && <p class="refused" role="alert">{error.message}</p>}
      <p class="fine">
        <code>belfry console</code> prints an address in its terminal. Each address opens one tab, and then another one is printed. Paste the last one here, or open it.
      </p>
    </section>
  )
}
