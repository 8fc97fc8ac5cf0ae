// A text that somebody else wrote, as it was sent: JSON laid out, the rest as it is, so much at a time.
import { useMemo, useState } from 'preact/hooks'
import { pretty } from './json'
import { Copy } from './ui'

const step = 64 << 10

export function Raw({ text, label }: { text: string; label: string }) {
  const [most, setMost] = useState(step)
  // A JSON string is shown as the text that it is.
  const shown = useMemo(() => {
    if (text.startsWith('"')) {
      try {
        return JSON.parse(text) as string
      } catch {
        // as it is
      }
    }
    return pretty(text)
  }, [text])
  return (
    <figure class="raw">
      <figcaption>
        <span>{label}</span>
        <Copy text={shown} />
      </figcaption>
      <pre tabIndex={0} role="region" aria-label={label}>
        {shown.slice(0, most)}
      </pre>
      {shown.length > most && (
        <button type="button" class="plain" onClick={() => setMost((m) => m + step)}>
          Show {Math.round((shown.length - most) / 1024)} KB more
        </button>
      )}
    </figure>
  )
}
