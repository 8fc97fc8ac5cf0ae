// The definitions that a job has had, and how any two differ.
import '../app'
import { get } from '../api'
import { Diff } from '../diff'
import { elements, fieldText, pretty } from '../json'
import { useLive } from '../live'
import type { Page } from '../model'
import { filter, query } from '../router'
import { Ago, Command, Instant, pending, Refused, Waiting } from '../ui'
import { useState } from 'preact/hooks'

interface Generation {
  generation: number
  from: string
  to?: string
  deleted?: boolean
  definition?: Record<string, unknown>
}

interface Kept extends Generation {
  text: string // of the definition, as it was sent, laid out
}

export function JobHistory({ name, where }: { name: string; where: string | undefined }) {
  const [most, setMost] = useState(10)
  const live = useLive(`history ${name} ${most}`, async (stop) => {
    const { data, text } = await get<Page<Generation>>('/jobs/' + encodeURIComponent(name) + '/generations', { limit: most }, stop)
    const sent = elements(fieldText(text, 'items') ?? '[]')
    return { items: data.items.map((g, i): Kept => ({ ...g, text: pretty(fieldText(sent[i] ?? '', 'definition') ?? '') })), next: data.next }
  }, 10_000, ['job:' + name])
  const all = live.data?.items ?? []
  const q = query.value
  const chosen = (field: string) => all.find((g) => String(g.generation) === q.get(field))
  const is = chosen('is') ?? all[0]
  const was = chosen('was') ?? (is && all[all.indexOf(is) + 1])
  return (
    <section aria-labelledby="history">
      <header class="bar">
        <h2 id="history">Changes of the definition</h2>
        <span class="fine">kept for 400 days; who made them is not recorded</span>
      </header>
      <Refused error={live.error} small />
      {!live.data && pending(live.error) && <Waiting lines={2} />}
      {live.data && all.length < 2 && <p class="nothing">It has not been changed since it was made.</p>}
      {is && all.length > 1 && (
        <div class="columns">
          <div class="scroller" tabIndex={0} role="region" aria-label="Definitions">
            <table class="generations">
              <thead>
                <tr>
                  <th scope="col">Old</th>
                  <th scope="col">New</th>
                  <th scope="col">Made</th>
                  <th scope="col">Changed</th>
                </tr>
              </thead>
              <tbody>
                {all.map((g, i) => (
                  <tr key={g.generation} class={g === is || g === was ? 'at' : ''}>
                    {(['was', 'is'] as const).map((field) => (
                      <td key={field}>
                        <input type="radio" name={field} checked={g === (field === 'is' ? is : was)} aria-label={`${field === 'is' ? 'new' : 'old'}: generation ${g.generation}`}
                          onChange={() => filter({ was: was && String(was.generation), is: String(is.generation), [field]: String(g.generation) }, true)} />
                      </td>
                    ))}
                    <td>
                      <Instant at={g.from} where={where} /> <Ago at={g.from} />
                    </td>
                    <td class="said">{changed(g, all[i + 1], live.data?.next !== undefined)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {live.data?.next && (
              <button type="button" class="plain" onClick={() => setMost((n) => Math.min(1000, n * 4))}>
                Older ones
              </button>
            )}
          </div>
          <div class="one">
            {was && was !== is ? <Diff old={was.text} next={is.text} label="How the two definitions differ" /> : <p class="nothing">Choose two that differ.</p>}
            {was && <Command text={`belfry job history ${name} ${[was.generation, is.generation].sort((a, b) => a - b).join(' ')} --diff`} />}
          </div>
        </div>
      )}
    </section>
  )
}

// The fields that a generation changed of the one before it.
function changed(g: Generation, before: Generation | undefined, more: boolean): string {
  if (g.deleted) return 'deleted'
  if (!before) return more ? '' : 'the oldest that is kept'
  if (before.deleted) return 'made again'
  const is = g.definition ?? {}
  const was = before.definition ?? {}
  const names = [...new Set([...Object.keys(is), ...Object.keys(was)])].filter((n) => JSON.stringify(was[n]) !== JSON.stringify(is[n]))
  return names.join(', ') || 'nothing'
}
