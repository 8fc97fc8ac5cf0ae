// A cron expression: in words, field by field, its next fires, and what other schedulers make of it.
import '../app'
import { useState } from 'preact/hooks'
import { get } from '../api'
import { FireList } from '../firelist'
import { quoted } from '../quoted'
import { to, withQuery } from '../router'
import { field, known, typed } from '../time'
import { asked, Field, say, useAsked } from '../tool'
import { Command, Copy, pending, Refused, Waiting } from '../ui'
import { zones } from '../zones'
import type { Fire } from './job'

interface Answer {
  description: string
  fires: Fire[]
  fields: { field: string; text: string; begin: number; end: number; means: string }[]
  elsewhere: { system: string; expressions: string[]; notes: string[] }[]
}

const usual = '30 9 * * 1-5'

export function Cron() {
  const expr = asked('expr', usual)
  const timezone = asked('timezone', 'UTC')
  const from = asked('from', '')
  const clock = known(timezone) ? timezone : 'UTC' // while a zone is typed, and where the server alone knows it
  const at = from && typed(from, clock)
  const got = useAsked(`cron ${expr} ${timezone} ${from}`, async (stop) =>
    (await get<Answer>('/cron', { expr, timezone, count: 10, ...(at ? { from: new Date(at).toISOString() } : {}) }, stop)).data)
  const [caret, setCaret] = useState(-1)
  const under = got.data?.fields.findIndex((f) => caret >= f.begin && caret <= f.end) ?? -1
  const follow = (event: { currentTarget: HTMLInputElement }) => setCaret(event.currentTarget.selectionStart ?? -1)
  const shown = got.error ? undefined : got.data
  const part = shown?.fields[under]
  return (
    <>
      <div class="filters">
        <Field name="expr" label="Expression" usual={usual} class="mono" size={24} maxLength={640} follow={follow} />
        <Field name="timezone" label="Time zone" usual="UTC" list="zones" size={20} />
        <datalist id="zones">
          {zones.map((z) => (
            <option key={z} value={z} />
          ))}
        </datalist>
        <label>
          <span>{clock === timezone ? 'After' : 'After, by UTC'}</span>
          <input type="datetime-local" step="1" name="from" value={from && at ? field(at, clock) : ''} onInput={(event) => say('from', event.currentTarget.value, '')} />
        </label>
        {shown && (
          <a class="make" href={withQuery(to('new'), { cron: expr, timezone })}>
            Make a job of it
          </a>
        )}
      </div>
      <p class="fine said-of" aria-live="polite">
        {part ? `${part.field} ${part.text}: ${part.means}` : 'Put the caret into a field to see what it means.'}
      </p>
      <Refused error={got.error} />
      {!got.data && pending(got.error) && <Waiting lines={8} />}
      {shown && (
        <div class="page" aria-busy={got.old}>
          <p>
            <strong>{shown.description}</strong>
          </p>
          <div class="columns">
            <section aria-labelledby="cron-next">
              <h2 id="cron-next">Next fires</h2>
              <FireList of={{ ...shown, timezone }} />
            </section>
            <section aria-labelledby="cron-fields">
              <h2 id="cron-fields">Fields</h2>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Field</th>
                    <th scope="col">Text</th>
                    <th scope="col">Means</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.fields.map((f, i) => (
                    <tr key={f.field} class={i === under ? 'picked' : undefined}>
                      <th scope="row">{f.field}</th>
                      <td>
                        <code>{f.text}</code>
                      </td>
                      <td>{f.means}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </div>
          <section aria-labelledby="cron-elsewhere">
            <h2 id="cron-elsewhere">In other schedulers</h2>
            <table>
              <thead>
                <tr>
                  <th scope="col">Scheduler</th>
                  <th scope="col">The same, and what differs</th>
                </tr>
              </thead>
              <tbody>
                {shown.elsewhere.map((e) => (
                  <tr key={e.system}>
                    <th scope="row">{e.system}</th>
                    <td>
                      {e.expressions.map((x) => (
                        <div key={x}>
                          <code>{x}</code> <Copy text={x} />
                        </div>
                      ))}
                      {!e.expressions.length && <div>It cannot say this.</div>}
                      {e.notes.map((n) => (
                        <div class="fine" key={n}>
                          {n}
                        </div>
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
          <details class="cli">
            <summary>In a terminal</summary>
            <Command text={`belfry cron next ${quoted(expr)}${timezone === 'UTC' ? '' : ' --timezone ' + quoted(timezone)} -n 10 --marks`} />
            <Command text={`belfry cron explain ${quoted(expr)}${timezone === 'UTC' ? '' : ' --timezone ' + quoted(timezone)}`} />
          </details>
        </div>
      )}
    </>
  )
}
