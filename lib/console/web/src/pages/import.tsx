// Jobs are taken over from a text of another scheduler, or one of Belfry's own.
import '../app'
import { useEffect, useId, useMemo } from 'preact/hooks'
import { lacks } from '../acts'
import { session } from '../api'
import { Failed } from '../dialog'
import { FireList, said } from '../firelist'
import { useAgain } from '../live'
import type { Job } from '../model'
import { quoted } from '../quoted'
import { filter, query, to } from '../router'
import { able, Taking, type Row, type Source } from '../taking'
import { belfry } from '../terminal'
import { known, mine } from '../time'
import { Command, Refused, sentence } from '../ui'
import { calls, when } from '../words'

const forms: Record<string, { name: string; how: string }> = {
  crontab: { name: 'crontab', how: 'What “crontab -l” prints, or a file such as /etc/crontab.' },
  kubernetes: { name: 'CronJobs of Kubernetes', how: 'YAML or JSON: manifests, or what “kubectl get cronjobs -A -o yaml” prints.' },
  eventbridge: { name: 'schedules of EventBridge', how: 'JSON: what “aws scheduler get-schedule --name NAME” prints, one after the other.' },
  belfry: { name: 'jobs of Belfry', how: 'YAML or JSON: what “belfry export” writes.' },
}

// It is shown, never loaded from.
const example = ['https:', '', 'example.org', ''].join('/')

// It stays while another page is shown, or the session has ended: with the token that had it.
let taking: { of: Taking; owner: string | undefined } | undefined

function current(): Taking {
  const owner = session.peek()?.parent
  if (!taking || taking.owner !== owner) taking = { of: new Taking(), owner }
  return taking.of
}

export function Import() {
  const of = useMemo(current, [session.value?.parent]) // another session may be of another tenant
  const given = (name: string) => query.value.get(name) ?? ''
  const source: Source = {
    as: Object.hasOwn(forms, given('as')) ? given('as') : '', zone: given('zone'), local: mine, user: given('user'), home: given('home'), system: given('system') === '1', way: given('way'), url: given('url'),
    prefix: given('prefix'), paused: given('paused') === '1',
  }
  const key = JSON.stringify(source)
  const text = of.text.value
  useEffect(() => of.read(source), [key, text])
  useAgain(of)
  const answer = of.answer.value
  const form = source.as || answer?.as || ''
  const against = lacks('write')
  const rows = of.rows.value
  const chosen = rows.filter((r) => of.chosen.value.has(r.name) && able(r))
  const all = rows.filter(able)
  const done = of.done.value
  const making = of.busy.value === 'Creating …'
  const why = against ?? (of.busy.value && !making ? of.busy.value : chosen.length === 0 ? (all.length ? 'Choose jobs first.' : rows.length ? 'There is nothing to be created.' : undefined) : undefined)
  const replaced = chosen.filter((r) => r.is === 'changed').length
  return (
    <section class="page importing">
      <header class="bar">
        <h1>Import jobs</h1>
      </header>
      <fieldset class="beside" disabled={making}>
        <legend class="hidden">What to import</legend>
        <div class="source">
          <label class="field">
            <span>Paste a crontab, a CronJob of Kubernetes, a schedule of EventBridge, or jobs of Belfry</span>
            <textarea rows={Math.max(14, Math.min(24, text.split('\n').length + 1))} value={text} spellcheck={false} wrap="off" placeholder={'30 9 * * 1-5  /usr/local/bin/report\n@daily         /usr/local/bin/clean-up'} onInput={(event) => (of.text.value = event.currentTarget.value)} />
          </label>
        </div>
        <div class="options">
          <label class="field">
            <span>It is</span>
            <select value={source.as} onChange={(event) => filter({ as: event.currentTarget.value }, true)}>
              <option value="">{answer?.as && !source.as ? `what it looks like: ${forms[answer.as]?.name}` : 'what it looks like'}</option>
              {Object.entries(forms).map(([name, f]) => (
                <option key={name} value={name}>
                  {f.name}
                </option>
              ))}
            </select>
          </label>
          {form && <p class="fine">{forms[form]?.how}</p>}
          {form !== 'belfry' && <Option name="zone" label={{ crontab: 'Time zone of its host', kubernetes: 'Time zone of its cluster, for CronJobs without one', eventbridge: 'Time zone, for schedules whose own is not known' }[form] ?? 'Time zone'} value={source.zone} placeholder={{ crontab: mine, kubernetes: 'UTC' }[form]} zones wrong={!source.zone || known(source.zone) ? undefined : 'This browser does not know the zone.'} />}
          {form === 'crontab' && (
            <>
              <Option name="user" label="User whose jobs they are" value={source.user} placeholder="as whom the worker runs" />
              <Option name="home" label="Home folder of the user" value={source.home} placeholder="/home/ada" />
              <label>
                <input type="checkbox" checked={source.system} onChange={(event) => filter({ system: event.currentTarget.checked ? '1' : '' }, true)} /> Lines name a user before the command, as in /etc/crontab
              </label>
            </>
          )}
          {form === 'kubernetes' && (
            <label class="field">
              <span>What a run does</span>
              <select value={source.way} onChange={(event) => filter({ way: event.currentTarget.value, url: '' }, true)}>
                <option value="">starts a Job of the CronJob, by kubectl</option>
                <option value="exec">runs the container's command, without its image</option>
              </select>
            </label>
          )}
          {(form === 'kubernetes' || form === 'eventbridge') && (
            <Option name="url" label="Or a URL that it calls instead" value={source.url} placeholder={example + (form === 'kubernetes' ? '{namespace}/{name}' : '{group}/{name}')} />
          )}
          {form !== 'belfry' && (
            <>
              <Option name="prefix" label="Begin their names with" value={source.prefix} placeholder="web1." />
              <label>
                <input type="checkbox" checked={source.paused} onChange={(event) => filter({ paused: event.currentTarget.checked ? '1' : '' }, true)} /> Create them paused
              </label>
            </>
          )}
        </div>
      </fieldset>
      {answer?.wrong && (
        <p class="refused" role="alert">
          <strong>{answer.wrong.line ? `Line ${answer.wrong.line}${answer.wrong.column ? `, column ${answer.wrong.column}` : ''}:` : 'It cannot be read:'}</strong> {sentence(answer.wrong.what)}
        </p>
      )}
      <Refused error={of.unread.value} />
      {of.failed.value && <Failed error={of.failed.value} />}
      {rows.length > 0 && (
        <>
          <header class="bar">
            <h2>
              {rows.length} {rows.length === 1 ? 'job' : 'jobs'}
            </h2>
            <span class="count" role="status">
              {of.busy.value || summary(rows)}
            </span>
            <div class="acts">
              {all.length > 0 && !making && (
                <>
                  <button type="button" class="act" onClick={() => of.choose(all.map((r) => r.name), true)}>
                    All {all.length}
                  </button>
                  <button type="button" class="act" onClick={() => of.choose(rows.map((r) => r.name), false)}>
                    None
                  </button>
                </>
              )}
              {rows.some((r) => r.is === 'unknown' || r.is === 'refused' || r.is === 'unchecked') && !making && !of.busy.value && (
                <button type="button" class="act" onClick={() => of.look()}>
                  Look again
                </button>
              )}
              {(all.length > 0 || making || against) && <button type="button" class="main" aria-disabled={why || making ? 'true' : undefined} aria-describedby="cannot" onClick={(event) => event.detail < 2 && !why && !making && void of.make()}>
                {making ? 'Creating …' : replaced === chosen.length && replaced > 0 ? `Replace ${replaced}` : `Create ${chosen.length}`}
                {replaced > 0 && replaced < chosen.length && `, ${replaced} of them in place of one`}
              </button>}
            </div>
          </header>
          {why && (
            <p id="cannot" class={against ? 'note' : 'fine'}>
              {why}
            </p>
          )}
          {done && (
            <p class="progress" role="status">
              <progress max={done.of} value={done.count} aria-label="Done so far" /> {done.count} of {done.of} {done.of === 1 ? 'job' : 'jobs'} done.{' '}
              {making ? (
                <button type="button" class="plain" onClick={() => of.halt()}>
                  Stop
                </button>
              ) : (
                <a href={to('jobs')}>All jobs</a>
              )}
            </p>
          )}
          <ul class="taken">
            {rows.map((row, i) => (
              <One key={i} of={of} row={row} stands={making} />
            ))}
          </ul>
          <details class="cli">
            <summary>The same in a terminal</summary>
            <Command text={inTerminal(form, text, source)} />
            <p class="fine">
              It takes all jobs of the text, and replaces those that exist and are others.
              {form === 'crontab' && ' The user and their home folder are those of the host where it runs: its jobs have the same names as here if both are named here.'}
            </p>
          </details>
        </>
      )}
      {answer && <Notes of={answer} />}
      {!text.trim() && (
        <p class="fine">
          Nothing is created before you have seen it: each job is shown with its next fires, and what is not as it was. In a terminal <code>belfry import</code> does the same.
        </p>
      )}
    </section>
  )
}

const inLine = 20_000 // letters: a longer text is named as a file

/** inTerminal is the command that takes over the whole text. */
function inTerminal(form: string, text: string, { zone, user, system, way, url, prefix, paused }: Source): string {
  const [file, before] = text.length > inLine ? ['FILE', ''] : ['-', `printf '%s' ${quoted(text)} | `]
  if (form === 'belfry') return before + 'belfry job apply -f ' + file
  const its: Record<string, Parameters<typeof belfry>[1]> = {
    crontab: { timezone: zone || mine, user, system }, kubernetes: { timezone: zone, as: way, 'target-url': url }, eventbridge: { timezone: zone, 'target-url': url },
  }
  return before + belfry(['import', form, file], { ...its[form], prefix, paused })
}

function Option({ name, label, value, placeholder, zones, wrong }: { name: string; label: string; value: string; placeholder?: string; zones?: boolean; wrong?: string }) {
  const id = useId()
  return (
    <label class="field">
      <span>{label}</span>
      <input type="text" value={value} placeholder={placeholder} autocomplete="off" spellcheck={false} list={zones ? id : undefined} aria-invalid={wrong ? 'true' : undefined} onInput={(event) => filter({ [name]: event.currentTarget.value }, true)} />
      {zones && (
        <datalist id={id}>
          {['UTC', ...Intl.supportedValuesOf('timeZone')].map((z) => (
            <option key={z} value={z} />
          ))}
        </datalist>
      )}
      {wrong && <span class="wrong">{wrong}</span>}
    </label>
  )
}

const words: Record<Row['is'], string> = {
  unchecked: 'not checked', new: 'new', changed: 'exists, and is another', same: 'exists, unchanged', refused: 'refused', going: 'is being created', created: 'created', replaced: 'replaced', unknown: 'may have been done',
}

const shapes: Record<Row['is'], string> = {
  unchecked: 'pending', new: 'scheduled', changed: 'attention', same: 'ok', refused: 'failing', going: 'running', created: 'succeeded', replaced: 'succeeded', unknown: 'unknown',
}

function summary(rows: Row[]): string {
  return Object.entries(words)
    .map(([is, word]) => [rows.filter((r) => r.is === is).length, word] as const)
    .filter(([n]) => n > 0)
    .map(([n, word]) => `${n} ${word}`)
    .join(', ')
}

function One({ of, row, stands }: { of: Taking; row: Row; stands: boolean }) {
  const id = useId()
  const job = JSON.parse(row.job) as Job
  const call = calls({ ...job, target: job.target ?? {} })
  const there = ['created', 'replaced', 'same', 'changed', 'unknown'].includes(row.is)
  return (
    <li>
      <input type="checkbox" id={id} checked={of.chosen.value.has(row.name) && able(row)} disabled={!able(row) || stands} onChange={(event) => of.choose([row.name], event.currentTarget.checked)} />
      <div>
        <p class="bar">
          <label for={id}>
            <b>{row.name || 'a job without a name'}</b>
          </label>
          <span class={'state s-' + shapes[row.is]}>{words[row.is]}</span>
          {there && <a href={to('jobs', row.name)}>Job {row.name}</a>}
          <span class="fine">line {row.line}</span>
        </p>
        <p class="said">
          {call.kind} {call.what}
        </p>
        {job.description && <p class="fine">{job.description}</p>}
        {row.said && (
          <p class="wrong">
            {row.said.title} {sentence(row.said.detail)}
            {row.said.fields.map((f) => (
              <span key={f.field}>
                {' '}
                <code>{f.field}</code> {f.message}
              </span>
            ))}
          </p>
        )}
        <details class="cli">
          <summary>YAML</summary>
          <pre class="yamlof" tabIndex={0} role="region" aria-label={'YAML of ' + row.name}>
            {row.yaml}
          </pre>
        </details>
      </div>
      <div>
        <p>{row.fires?.description ? said(row.fires) : when(job.schedule)}</p>
        {row.fires && row.fires.fires.length > 0 && <FireList of={row.fires} most={3} />}
        {row.fires?.idle === 'paused' && <p class="fine">It is paused.</p>}
      </div>
    </li>
  )
}

function Notes({ of }: { of: NonNullable<Taking['answer']['value']> }) {
  const notes = of.notes ?? []
  const lost = notes.filter((n) => n.lost)
  const other = notes.filter((n) => !n.lost)
  return (
    <>
      {lost.length > 0 && (
        <section aria-labelledby="lost">
          <h2 id="lost">Not kept: {lost.length}</h2>
          <List of={lost} />
        </section>
      )}
      {other.length > 0 && (
        <section aria-labelledby="notes">
          <h2 id="notes">What is not as it was</h2>
          <List of={other} />
        </section>
      )}
      {of.settings && of.settings.length > 0 && (
        <details class="cli">
          <summary>Settings of the crontab: {of.settings.length}</summary>
          <List of={of.settings.map((s) => ({ ...s, why: '' }))} />
        </details>
      )}
    </>
  )
}

function List({ of }: { of: { line: number; text: string; why: string; lost?: boolean }[] }) {
  return (
    <ul class="notes">
      {of.map((n, i) => (
        <li key={i} class={n.lost ? 'lost' : undefined}>
          <span class="fine">line {n.line}</span> {n.text && <code>{n.text}</code>} {n.why}
        </li>
      ))}
    </ul>
  )
}
