// What a viewer chooses, kept in this browser.
import '../app'
import { useState } from 'preact/hooks'
import { byCookie, outside, getAt, session, signOut, skew } from '../api'
import { now } from '../clock'
import { byKey } from '../key'
import { useLive } from '../live'
import { scheme, singleKeys, zone, type Scheme, type Zone } from '../settings'
import { instant, mine, span } from '../time'
import { Instant } from '../ui'

export function Settings() {
  const health = useLive('health', async (stop) => (await getAt<{ version?: string }>(outside('/healthz'), stop)).data, 60_000)
  const [error, setError] = useState<Error>()
  return (
    <section class="page settings">
      <header class="bar">
        <h1>Settings</h1>
      </header>
      <fieldset>
        <legend>Time zone</legend>
        <Choice name="zone" value="job" is={zone.value} set={(v) => (zone.value = v as Zone)}>
          time zone of the job; UTC if it has none
        </Choice>
        <Choice name="zone" value="utc" is={zone.value} set={(v) => (zone.value = v as Zone)}>
          UTC – {instant(now.value, now.value, 'UTC')}
        </Choice>
        <Choice name="zone" value="mine" is={zone.value} set={(v) => (zone.value = v as Zone)}>
          time zone of this browser, {mine} – {instant(now.value, now.value, mine)}
        </Choice>
        <p class="fine">Point at a time to see it in all of them.</p>
      </fieldset>
      <fieldset>
        <legend>Colours</legend>
        {(['auto', 'light', 'dark'] as Scheme[]).map((s) => (
          <Choice key={s} name="scheme" value={s} is={scheme.value} set={(v) => (scheme.value = v as Scheme)}>
            {{ auto: 'same as the system', light: 'light', dark: 'dark' }[s]}
          </Choice>
        ))}
      </fieldset>
      <fieldset>
        <legend>Keys</legend>
        <label>
          <input type="checkbox" checked={singleKeys.value} onChange={(event) => (singleKeys.value = event.currentTarget.checked)} /> Single keys, such as <kbd>j</kbd> and <kbd>?</kbd>
        </label>
      </fieldset>
      {session.value && (
        <fieldset>
          <legend>Session</legend>
          <p>
            This {byCookie() ? 'browser' : 'tab'} has the session <code>{session.value.id}</code> of {byKey ? '' : 'the token '}<code>{session.value.parent}</code>, with {session.value.scopes.length > 1 ? 'the scopes' : 'the scope'} {session.value.scopes.join(', ')}, until <Instant at={session.value.expires_at} />{byCookie() ? ', in all its tabs' : ' or until it is closed'}.{' '}
            <button type="button" class="plain" onClick={() => void signOut().catch(setError)}>
              Sign out
            </button>
          </p>
          {error && <p class="refused" role="alert">You are still signed in: {error.message}</p>}
        </fieldset>
      )}
      <h2>About</h2>
      <dl class="facts">
        <div>
          <dt>Belfry</dt>
          <dd>{health.data ? (health.data.version ?? 'unknown version') : '–'}</dd>
        </div>
        <div>
          <dt>Clock of this browser</dt>
          <dd>{Math.abs(skew.value) < 1500 ? 'as the server’s' : `${span(Math.abs(skew.value))} ${skew.value > 0 ? 'behind' : 'ahead of'} the server’s; ages are by the server’s`}</dd>
        </div>
        <div>
          <dt>Open source in these pages</dt>
          <dd>
            <a href={licences()}>licences</a>
          </dd>
        </div>
      </dl>
    </section>
  )
}

const licences = () => (document.querySelector<HTMLScriptElement>('script[src]')?.src ?? '').replace(/app\.js$/, 'licences.txt')

function Choice({ name, value, is, set, children }: { name: string; value: string; is: string; set: (value: string) => void; children: preact.ComponentChildren }) {
  return (
    <label>
      <input type="radio" name={name} checked={value === is} onChange={() => set(value)} /> {children}
    </label>
  )
}
