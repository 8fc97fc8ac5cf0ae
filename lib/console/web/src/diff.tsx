// How two texts differ, shown with signs and words, so that nothing hangs on colour.
import { counted, differ, type Edit } from './lines'

const around = 3 // lines that stay, beside those that change

const words = { ' ': '', '-': 'removed: ', '+': 'added: ' }

/** Diff shows how a text becomes another. label names it for those who hear it; whole shows all lines that stay, else three beside each change. */
export function Diff({ old, next, label, whole }: { old: string; next: string; label: string; whole?: boolean }) {
  const edits = differ(old, next)
  const told = counted(edits)
  if (!told) return <p class="nothing">The two do not differ.</p>
  const near = (n: number) => whole || edits.slice(Math.max(0, n - around), n + around + 1).some((e) => e.sign !== ' ')
  const shown: (Edit | number)[] = [] // a number stands for so many lines that stay
  edits.forEach((edit, n) => {
    const last = shown[shown.length - 1]
    if (near(n)) shown.push(edit)
    else if (typeof last === 'number') shown[shown.length - 1] = last + 1
    else shown.push(1)
  })
  return (
    <figure class="diff">
      <figcaption class="fine">
        <b class="d-minus">−</b> goes, <b class="d-plus">+</b> comes: {told}.
      </figcaption>
      <div class="scroller" tabIndex={0} role="region" aria-label={label}>
        <ol>
          {shown.map((edit, n) =>
            typeof edit === 'number' ? (
              <li key={n} class="d-skip">
                {edit} {edit === 1 ? 'line stays' : 'lines stay'}
              </li>
            ) : (
              <li key={n} class={edit.sign === '-' ? 'd-minus' : edit.sign === '+' ? 'd-plus' : ''}>
                <i aria-hidden="true">{edit.sign === '-' ? '−' : edit.sign}</i>
                <span class="hidden">{words[edit.sign]}</span>
                <code>{edit.line}</code>
              </li>
            ),
          )}
        </ol>
      </div>
    </figure>
  )
}
