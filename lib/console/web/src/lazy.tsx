// Pages that are loaded when somebody goes to them, so that the first page is light.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/**
 * lazy gives a component that loads its module when it is first shown. load is `() => import('./pages/x').then((m) => m.X)`: the name of the
 * module becomes that of its file. Until it is there nothing is shown, and words only after a moment, since it mostly comes at once. A module begins with
 * `import '../app'`, which keeps all that pages share in one file.
 */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined
  return function Lazy(props: P) {
    const [, setReady] = useState(loaded !== undefined)
    const [slow, setSlow] = useState(false)
    const [failed, setFailed] = useState(false)
    useEffect(() => {
      if (loaded) return
      let here = true
      const timer = setTimeout(() => setSlow(true), 150)
      load()
        .then((component) => {
          loaded = component
          if (here) setReady(true)
        })
        .catch(() => {
          if (here) setFailed(true)
        })
        .finally(() => clearTimeout(timer))
      return () => {
        here = false
        clearTimeout(timer)
      }
    }, [])
    if (loaded) {
      const Loaded = loaded
      return <Loaded {...props} />
    }
    if (failed) {
      return (
        <section class="page">
          <p class="refused" role="alert">
            This page could not be loaded: the server does not answer, or has another version since. <button onClick={() => location.reload()}>Load again</button>
          </p>
        </section>
      )
    }
    return <section class="page" aria-busy="true">{slow && <p class="note">Loading…</p>}</section>
  }
}
