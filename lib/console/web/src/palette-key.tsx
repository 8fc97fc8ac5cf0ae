// The key and the button of the palette, which itself is loaded when somebody wants it.
import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { locked } from './api'

export const paletteShown = signal(false)

function show(): void {
  if (locked.peek() === undefined && !document.querySelector('dialog[open]')) paletteShown.value = true
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.defaultPrevented) return
  event.preventDefault()
  show()
})

export function PaletteButton() {
  if (locked.value !== undefined) return null
  return (
    <button type="button" class="find" aria-haspopup="dialog" aria-keyshortcuts="Control+K" onClick={show}>
      Find <kbd>Ctrl K</kbd>
    </button>
  )
}

/** PaletteHere is where the palette is while it is shown. */
export function PaletteHere() {
  const [Loaded, setLoaded] = useState<ComponentType>()
  const wanted = paletteShown.value && locked.value === undefined
  useEffect(() => {
    if (!wanted || Loaded) return
    import('./palette').then(
      (m) => setLoaded(() => m.Palette),
      () => (paletteShown.value = false), // the server does not answer, which the page says
    )
  }, [wanted])
  return wanted && Loaded ? <Loaded /> : null
}
