// The form of a job: the fields that most jobs have. All others stand in the text beside it, untouched.
import type { ComponentChildren } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import type { Draft } from './draft'
import { said } from './firelist'
import { pretty } from './json'
import { civil, dayIn, field, known, mine, typed, zoneFor } from './time'
import { at, fields, isText, kinds, number, parse, set, shown, text, write, type Value } from './value'
import { Ago, Instant } from './ui'
import { zones } from './zones'

interface Of {
  draft: Draft
}

type Path = string[]

const problemsOf = (draft: Draft, path: Path) => {
  const field = path.join('.')
  return draft.problems.value.filter((p) => p.field === field || p.field.startsWith(field + '.') || p.field.startsWith(field + '['))
}

/** Row is a field with its name, one line of help, and what the server says of it. */
function Row({ draft, path, label, help, wrong, children }: Of & { path: Path; label: string; help?: ComponentChildren; wrong?: string; children: (ids: { id: string; 'aria-describedby': string; 'aria-invalid': 'true' | undefined }) => ComponentChildren }) {
  const id = useId()
  const problems = wrong ? [{ field: path.join('.'), message: wrong }] : problemsOf(draft, path)
  return (
    <div class="f-row">
      <label for={id}>{label}</label>
      <div>
        {children({ id, 'aria-describedby': `${id}h ${id}p`, 'aria-invalid': problems.length ? 'true' : undefined })}
        <p class="fine" id={id + 'h'}>
          {help}
        </p>
        <Problems of={problems} id={id + 'p'} at={path.join('.')} />
      </div>
    </div>
  )
}

function Problems({ of, id, at }: { of: { field: string; message: string }[]; id?: string; at: string }) {
  return (
    <div id={id} aria-live="polite">
      {of.map((p) => (
        <p class="wrong" key={p.field + p.message}>
          {p.field !== at && <code>{p.field.slice(at.length + 1)} </code>}
          {p.message}
        </p>
      ))}
    </div>
  )
}

interface TextOf extends Of {
  path: Path
  label: string
  help?: ComponentChildren
  placeholder?: string
  numeric?: boolean
  list?: string
  wide?: boolean
}

function Text({ draft, path, label, help, placeholder, numeric, list, wide }: TextOf) {
  const value = shown(at(draft.value.value, path))
  return (
    <Row draft={draft} path={path} label={label} help={help}>
      {(ids) => (
        <input
          {...ids}
          type="text"
          class={wide ? 'long' : 'short'}
          value={value}
          placeholder={placeholder}
          list={list}
          inputMode={numeric ? 'decimal' : undefined}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            const typed = event.currentTarget.value
            draft.set(path, typed === '' ? undefined : numeric ? number(typed) : text(typed))
          }}
        />
      )}
    </Row>
  )
}

function Choice({ draft, path, label, help, options, usual }: Of & { path: Path; label: string; help?: ComponentChildren; options: Record<string, string>; usual: string }) {
  const value = shown(at(draft.value.value, path))
  return (
    <Row draft={draft} path={path} label={label} help={help}>
      {(ids) => (
        <select {...ids} value={value || usual} onChange={(event) => draft.set(path, text(event.currentTarget.value))}>
          {value && !Object.hasOwn(options, value) && <option value={value}>{value}</option>}
          {Object.entries(options).map(([name, says]) => (
            <option key={name} value={name}>
              {says}
            </option>
          ))}
        </select>
      )}
    </Row>
  )
}

function Group({ title, children, open }: { title: string; children: ComponentChildren; open?: boolean }) {
  const id = useId()
  if (open === undefined) {
    return (
      <section class="f-group" aria-labelledby={id}>
        <h2 id={id}>{title}</h2>
        {children}
      </section>
    )
  }
  return (
    <details class="f-group" open={open}>
      <summary>
        <h2>{title}</h2>
      </summary>
      {children}
    </details>
  )
}

/** Items is a list of texts, each with lines of its own. */
function Items({ draft, path, label, one, help, placeholder }: Of & { path: Path; label: string; one: string; help: ComponentChildren; placeholder?: string }) {
  const value = at(draft.value.value, path)
  const items = value && 'items' in value ? value.items.map(shown) : []
  const rows = items.length ? items : ['']
  const root = useRef<HTMLDivElement>(null)
  const put = (next: string[]) => draft.set(path, { items: next.map(text) })
  const add = () => {
    put([...rows, ''])
    setTimeout(() => root.current?.querySelector<HTMLTextAreaElement>('.f-item:last-of-type textarea')?.focus())
  }
  return (
    <Row draft={draft} path={path} label={label} help={help}>
      {(ids) => (
        <div ref={root}>
          {rows.map((item, i) => (
            <div class="f-item" key={i}>
              <textarea
                {...(i === 0 ? ids : { 'aria-invalid': ids['aria-invalid'] })}
                aria-label={i === 0 ? undefined : `${one} ${i + 1}`}
                rows={Math.min(12, item.split('\n').length)}
                value={item}
                placeholder={i === 0 ? placeholder : undefined}
                spellcheck={false}
                onInput={(event) => put(rows.map((r, k) => (k === i ? event.currentTarget.value : r)))}
              />
              <button type="button" class="plain" aria-label={`Remove ${one.toLowerCase()} ${i + 1}`} disabled={rows.length === 1} onClick={() => put(rows.filter((_, k) => k !== i))}>
                ✕
              </button>
            </div>
          ))}
          <button type="button" class="plain" onClick={add}>
            Add: {one.toLowerCase()}
          </button>
        </div>
      )}
    </Row>
  )
}

interface Pair {
  name: string
  value: string
  secret: boolean
}

const pairsOf = (v: Value | undefined): Pair[] => fields(v).map(([name, of]) => ('members' in of ? { name, value: shown(at(of, ['secret'])), secret: true } : { name, value: shown(of), secret: false }))

const pairsTo = (pairs: Pair[]): Value | undefined => {
  const named = new Map(pairs.filter((p) => p.name !== '').map((p) => [p.name, p]))
  if (!named.size) return undefined
  return { members: [...named.values()].map((p) => [p.name, p.secret ? { members: [['secret', text(p.value)]] } : text(p.value)]) }
}

/** Pairs are names with values. A row that has no name yet is no part of the job. */
function Pairs({ draft, path, label, help, one, secrets = false }: Of & { path: Path; label: string; help: ComponentChildren; one: string; secrets?: boolean }) {
  const outer = at(draft.value.value, path)
  const told = outer ? write(outer) : ''
  const [rows, setRows] = useState(() => pairsOf(outer))
  const sent = useRef(told)
  let now = rows
  if (told !== sent.current) {
    sent.current = told
    now = pairsOf(outer)
    setRows(now)
  }
  const put = (next: Pair[]) => {
    setRows(next)
    const to = pairsTo(next)
    sent.current = to ? write(to) : ''
    draft.set(path, to)
  }
  const change = (i: number, by: Partial<Pair>) => put(now.map((r, k) => (k === i ? { ...r, ...by } : r)))
  const id = useId()
  return (
    <div class="f-row" role="group" aria-labelledby={id}>
      <span id={id} class="f-label">
        {label}
      </span>
      <div>
        {now.map((row, i) => (
          <div class="f-item" key={i}>
            <input type="text" aria-label={`${one} ${i + 1}, name`} value={row.name} placeholder="name" autocomplete="off" spellcheck={false} onInput={(event) => change(i, { name: event.currentTarget.value })} />
            {secrets && (
              <select aria-label={`${one} ${i + 1}, what it holds`} value={row.secret ? 'secret' : 'text'} onChange={(event) => change(i, { secret: event.currentTarget.value === 'secret' })}>
                <option value="text">=</option>
                <option value="secret">secret</option>
              </select>
            )}
            <input type="text" aria-label={`${one} ${i + 1}, ${row.secret ? 'name of the secret' : 'value'}`} value={row.value} placeholder={row.secret ? 'name of a secret' : 'value'} autocomplete="off" spellcheck={false} onInput={(event) => change(i, { value: event.currentTarget.value })} />
            <button type="button" class="plain" aria-label={`Remove ${one.toLowerCase()} ${i + 1}`} onClick={() => put(now.filter((_, k) => k !== i))}>
              ✕
            </button>
          </div>
        ))}
        <button type="button" class="plain" onClick={() => setRows([...now, { name: '', value: '', secret: false }])}>
          Add: {one.toLowerCase()}
        </button>
        <p class="fine">{help}</p>
        <Problems of={problemsOf(draft, path)} at={path.join('.')} />
      </div>
    </div>
  )
}

const schedules: Record<string, string> = { cron: 'by cron', every: 'at an interval', at: 'once', none: 'on demand' }

const repeats = (kind: string): boolean => kind === 'cron' || kind === 'every'

function scheduleKind(v: Value): string {
  const s = at(v, ['schedule'])
  if (!s || !('members' in s)) return 'none'
  return Object.keys(schedules).find((k) => at(s, [k]) !== undefined) ?? 'cron'
}

// What was typed for one kind is there again when somebody comes back to it.
const before = new WeakMap<Draft, Map<string, Value>>()
function remembered(draft: Draft): Map<string, Value> {
  let found = before.get(draft)
  if (!found) before.set(draft, (found = new Map()))
  return found
}

function toSchedule(draft: Draft, kind: string): void {
  const now = at(draft.value.value, ['schedule'])
  const held = remembered(draft)
  const was = scheduleKind(draft.value.value)
  if (now) held.set('schedule ' + was, now)
  const zone = at(now, ['timezone']) ?? text(mine)
  const fresh: Record<string, Value> = {
    cron: { members: [['cron', text('0 9 * * *')], ['timezone', zone]] },
    every: { members: [['every', text('1h')]] },
    at: { members: [['at', text(new Date(Math.ceil(Date.now() / 3_600_000 + 1) * 3_600_000).toISOString().replace('.000', ''))]] },
  }
  draft.change((v) => {
    v = set(v, ['schedule'], kind === 'none' ? undefined : (held.get('schedule ' + kind) ?? fresh[kind]))
    const count = at(v, ['max_runs']) // it is of what fires again and again
    if (repeats(kind)) return repeats(was) ? v : set(v, ['max_runs'], count ?? held.get('max_runs'))
    if (count) held.set('max_runs', count)
    else if (repeats(was)) held.delete('max_runs')
    return set(v, ['max_runs'], undefined)
  })
}

function Schedule({ draft }: Of) {
  const kind = scheduleKind(draft.value.value)
  const list = useId()
  const zone = shown(at(draft.value.value, ['schedule', 'timezone']))
  return (
    <Group title="When">
      <fieldset class="f-row">
        <legend class="f-label">It runs</legend>
        <div class="chips">
          {Object.entries(schedules).map(([name, says]) => (
            <label key={name} class="chip">
              <input type="radio" name="schedule" checked={kind === name} onChange={() => toSchedule(draft, name)} /> {says}
            </label>
          ))}
        </div>
      </fieldset>
      {kind === 'cron' && (
        <>
          <Text draft={draft} path={['schedule', 'cron']} label="Cron" placeholder="30 9 * * 1-5" help="Minute, hour, day of the month, month, day of the week; or a macro such as @daily. Six fields begin with seconds." />
          <Text draft={draft} path={['schedule', 'timezone']} label="Time zone" placeholder="UTC" list={list} help={zone && !known(zone) ? 'This browser does not know the zone; the server may.' : 'IANA name of the zone by whose clock it fires; UTC if none is given.'} />
          <datalist id={list}>
            {zones.map((z) => (
              <option key={z} value={z} />
            ))}
          </datalist>
        </>
      )}
      {kind === 'every' && <Text draft={draft} path={['schedule', 'every']} label="Every" placeholder="15m" help="Such as 30s, 15m, 1h30m or 1d. Counted from 1970, so an edit shifts nothing." />}
      {kind === 'at' && <Moment draft={draft} path={['schedule', 'at']} label="At" help="It runs once, then never again." />}
      <Next draft={draft} />
      {kind !== 'none' && (
        <Text draft={draft} path={['schedule', 'jitter']} label="Jitter" placeholder="0s" help="How much later than its fire a run may start, up to 10m: spreads jobs that fire together." />
      )}
      {repeats(kind) && (
        <Group title="First and last fire" open={[['schedule', 'start'], ['schedule', 'end'], ['max_runs']].some((path) => at(draft.value.value, path) !== undefined)}>
          <Moment draft={draft} path={['schedule', 'start']} label="Not before" help="No fire before this time." />
          <Moment draft={draft} path={['schedule', 'end']} label="Not after" help="No fire at this time or later." />
          <Text draft={draft} path={['max_runs']} label="So many fires" numeric placeholder="any number" help="The schedule ends after so many, whatever becomes of them, counted from when it or this number was last changed." />
        </Group>
      )}
    </Group>
  )
}

/** Next stands beside the schedule where the list of fires is far below. */
function Next({ draft }: Of) {
  const fires = draft.fires.value
  if (!fires?.fires.length) return null
  return (
    <p class="f-next">
      {said(fires)}. Next: <Instant at={fires.fires[0]?.at} where={fires.timezone} /> <Ago at={fires.fires[0]?.at} />
    </p>
  )
}

/** Moment is an instant, typed as clocks show it in the zone of the job, where it has one, or which the settings name. */
function Moment({ draft, path, label, help }: Of & { path: Path; label: string; help: string }) {
  const value = shown(at(draft.value.value, path))
  const ms = Date.parse(value)
  const zone = zoneFor(shown(at(draft.value.value, ['schedule', 'timezone'])))
  const here = zone !== mine && !Number.isNaN(ms) && <>, which is {dayIn(ms, mine)} {civil(ms, mine).clock} {mine}</>
  return (
    <Row draft={draft} path={path} label={label} help={<>{help} By the clock of {zone}{here}{value && <>; the job has <code>{value}</code></>}.</>}>
      {(ids) => (
        <input
          {...ids}
          type="datetime-local"
          step={1}
          value={Number.isNaN(ms) ? '' : field(ms, zone)}
          onInput={(event) => {
            const at = typed(event.currentTarget.value, zone)
            draft.set(path, Number.isNaN(at) ? undefined : text(new Date(at).toISOString().replace('.000', '')))
          }}
        />
      )}
    </Row>
  )
}

const does: Record<string, string> = { exec: 'runs a program', http: 'calls a URL', handler: 'calls a handler of your worker', email: 'sends a mail', aws: 'calls a resource of AWS', workflow: 'runs the steps of a workflow' }

// It is shown, never loaded from.
const example = ['https:', '', 'example.org', ''].join('/')

const fresh: Record<string, string> = {
  exec: '{"argv":[""]}',
  http: '{"url":""}',
  handler: '{"name":""}',
  email: '{"to":[""]}',
  aws: '{"arn":""}',
  workflow: '{"steps":{"first":{"exec":{"argv":["echo","first"]}},"second":{"needs":["first"],"exec":{"argv":["echo","second"]}}}}',
}

const targetKind = (v: Value): string => fields(at(v, ['target']))[0]?.[0] ?? 'exec'

function toTarget(draft: Draft, kind: string): void {
  const held = remembered(draft)
  const now = targetKind(draft.value.value)
  const spec = at(draft.value.value, ['target', now])
  if (spec) held.set('target ' + now, spec)
  draft.change((v) => {
    v = set(v, ['target'], { members: [[kind, held.get('target ' + kind) ?? parse(fresh[kind] ?? '{}')]] })
    for (const field of ofAttempts) {
      const stands = at(v, [field])
      if (kind !== 'workflow') v = set(v, [field], stands ?? held.get(field))
      else if (stands) {
        held.set(field, stands)
        v = set(v, [field], undefined)
      }
    }
    return v
  })
}

// A workflow has no attempts: its steps have.
const ofAttempts = ['timeout', 'guarantee', 'retry']

function Target({ draft }: Of) {
  const kind = targetKind(draft.value.value)
  const t = (...path: string[]) => ['target', kind, ...path]
  const steps = fields(at(draft.value.value, t('steps'))).map(([name]) => name)
  return (
    <Group title="What it does">
      <div class="f-row">
        <span class="f-label">It</span>
        <div>
          <select aria-label="What it does" value={kind} onChange={(event) => toTarget(draft, event.currentTarget.value)}>
            {!kinds.includes(kind) && <option value={kind}>{kind}</option>}
            {kinds.map((k) => (
              <option key={k} value={k}>
                {does[k]}
              </option>
            ))}
          </select>
          <Problems of={draft.problems.value.filter((p) => p.field === 'target' || (p.field.startsWith('target.') && !p.field.startsWith(`target.${kind}.`)))} at="target" />
        </div>
      </div>
      {kind === 'exec' && (
        <>
          <Items draft={draft} path={t('argv')} label="Program" one="Argument" placeholder="/usr/local/bin/report" help="The program, then its arguments, one a box. No shell reads them: for one, begin with sh, -c and the script." />
          <Text draft={draft} path={t('dir')} label="Folder" wide placeholder="/srv/reports" help="Where it runs on the worker; the worker's own folder if none is given." />
          <Pairs draft={draft} path={t('env')} label="Environment" one="Variable" secrets help="Added to what the worker lets its programs inherit." />
        </>
      )}
      {kind === 'http' && (
        <>
          <Text draft={draft} path={t('url')} label="URL" wide placeholder={example + 'report'} help="An absolute http or https address." />
          <Choice draft={draft} path={t('method')} label="Method" usual="POST" options={Object.fromEntries(['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD'].map((m) => [m, m]))} help="The payload is sent as its body." />
          <Pairs draft={draft} path={t('headers')} label="Headers" one="Header" secrets help="Sent beside Belfry's own." />
        </>
      )}
      {kind === 'handler' && <Text draft={draft} path={t('name')} label="Handler" wide placeholder="resize" help="As your worker registers it." />}
      {kind === 'email' && (
        <>
          <Items draft={draft} path={t('to')} label="To" one="Address" placeholder="ops@example.org" help="Addresses, all in one mail." />
          <Text draft={draft} path={t('subject')} label="Subject" wide help="If none is given it names the job, or what has happened." />
        </>
      )}
      {kind === 'aws' && (
        <>
          <Text draft={draft} path={t('arn')} label="ARN" wide placeholder="arn:aws:lambda:eu-west-1:123456789012:function:report" help="Of a Lambda function, an SQS queue, an SNS topic, an EventBridge bus or a Step Functions state machine." />
          <Text draft={draft} path={t('role_arn')} label="Role" wide help="The role to do it as; the worker's own if none is given." />
        </>
      )}
      {kind === 'workflow' && (
        <p class="note">
          {steps.length === 1 ? 'Its step stands' : `Its ${steps.length} steps stand`} in the YAML{steps.length > 0 && <>: {steps.slice(0, 12).join(', ')}{steps.length > 12 && ', …'}</>}.
        </p>
      )}
      <Payload draft={draft} />
    </Group>
  )
}

function Payload({ draft }: Of) {
  const value = at(draft.value.value, ['payload'])
  const told = value ? write(value) : ''
  const asText = isText(value)
  const [plain, setPlain] = useState(asText)
  const [typed, setTyped] = useState(asText ? shown(value) : pretty(told))
  const sent = useRef(told)
  let now = typed
  if (told !== sent.current) {
    sent.current = told
    now = asText ? shown(value) : pretty(told)
    setPlain(asText)
    setTyped(now)
  }
  const put = (next: string, as: boolean) => {
    setTyped(next)
    setPlain(as)
    draft.unreadPayload.value = !as && next.trim() !== '' && !isJSON(next)
    if (draft.unreadPayload.value) return
    const to = next.trim() === '' ? undefined : as ? text(next) : parse(next)
    sent.current = to ? write(to) : ''
    draft.set(['payload'], to)
  }
  const wrong = draft.unreadPayload.value ? 'This is not JSON. The job keeps the payload that it had. To send text, choose “text”.' : undefined
  return (
    <Row draft={draft} path={['payload']} label="Payload" wrong={wrong} help="Handed to what it calls, up to 8 KB.">
      {(ids) => (
        <>
          <textarea {...ids} rows={Math.max(2, Math.min(12, now.split('\n').length))} value={now} spellcheck={false} onInput={(event) => put(event.currentTarget.value, plain)} />
          <div class="chips" role="radiogroup" aria-label="The payload is">
            <label class="chip">
              <input type="radio" name="payload" checked={!plain} onChange={() => put(now, false)} /> JSON
            </label>
            <label class="chip">
              <input type="radio" name="payload" checked={plain} onChange={() => put(now, true)} /> text
            </label>
          </div>
        </>
      )}
    </Row>
  )
}

function Overlap({ draft }: Of) {
  const value = at(draft.value.value, ['overlap'])
  const object = value !== undefined && 'members' in value
  const policy = object ? shown(at(value, ['policy'])) : shown(value)
  const limit = object ? shown(at(value, ['limit'])) : ''
  const key = object ? shown(at(value, ['key'])) : ''
  const options: Record<string, string> = {
    allow: 'start it all the same', skip: 'skip it', queue: 'let it wait its turn', queue_one: 'let one wait, skip the others', queue_latest: 'let the latest wait',
    cancel: 'have the earliest stop, then start it', replace: 'end the earliest, and start it', strict: 'let it wait its turn, and none start after one that ended badly',
  }
  const put = (nextPolicy: string, nextLimit: string, nextKey: string) =>
    draft.change((v) => {
      const p = nextPolicy || 'allow'
      const members: [string, Value][] = []
      if (nextKey) members.push(['key', text(nextKey)])
      if (nextLimit) members.push(['limit', number(nextLimit)])
      if (object) members.push(...fields(value).filter(([n]) => n !== 'policy' && n !== 'limit' && n !== 'key'))
      if (!members.length) return withOverlap(v, p === 'allow' ? undefined : text(p))
      return withOverlap(v, { members: [['policy', text(p)], ...members] })
    })
  return (
    <Row draft={draft} path={['overlap']} label="If one is due while another goes on" help="How many may go on at once: 1 unless you say so, any number where it starts all the same. And for each value of what: then runs of other values are in nobody's way.">
      {(ids) => (
        <div class="f-item">
          <select {...ids} value={policy || 'allow'} onChange={(event) => put(event.currentTarget.value, limit, key)}>
            {policy && !Object.hasOwn(options, policy) && <option value={policy}>{policy}</option>}
            {Object.entries(options).map(([name, says]) => (
              <option key={name} value={name}>
                {says}
              </option>
            ))}
          </select>
          <input type="text" inputMode="numeric" class="tiny" aria-label="How many may go on at once" value={limit} placeholder={policy && policy !== 'allow' ? '1' : 'any'} onInput={(event) => put(policy, event.currentTarget.value, key)} />
          <input type="text" aria-label="For each value of" value={key} placeholder="${ .payload.customer }" onInput={(event) => put(policy, limit, event.currentTarget.value)} />
        </div>
      )}
    </Row>
  )
}

const withOverlap = (v: Value, to: Value | undefined): Value => set(v, ['overlap'], to)

/** JobForm edits parts of a job. While its text cannot be read it stands still. */
export function JobForm({ draft }: Of) {
  const still = draft.wrong.value !== undefined
  const workflow = targetKind(draft.value.value) === 'workflow'
  return (
    <fieldset class="jobform" disabled={still}>
      <legend class="hidden">Form</legend>
      <Group title="Job">
        {draft.edits === undefined ? (
          <Text draft={draft} path={['name']} label="Name" wide placeholder="daily-report" help="Letters, digits, dots, underscores and hyphens. It stays: a job has one name." />
        ) : (
          <div class="f-row">
            <span class="f-label">Name</span>
            <div>
              <b>{draft.edits}</b>
              <Problems of={problemsOf(draft, ['name'])} at="name" />
            </div>
          </div>
        )}
        <Text draft={draft} path={['description']} label="Description" wide help="For people." />
      </Group>
      <Schedule draft={draft} />
      <Target draft={draft} />
      <Group title="Queue">
        <Text draft={draft} path={['queue']} label="Queue" placeholder="default" help="The pool of workers." />
        <Choice draft={draft} path={['priority']} label="Priority" usual="normal" options={{ high: 'high', normal: 'normal', low: 'low' }} help="High goes first in its queue." />
        {!workflow && <Text draft={draft} path={['timeout']} label="Timeout" placeholder="30s" help="The longest time of one attempt." />}
      </Group>
      {!workflow && (
        <Group title="If it fails">
          <Choice
            draft={draft}
            path={['guarantee']}
            label="Guarantee"
            usual="at_least_once"
            options={{ at_least_once: 'at least once: try again if nobody knows', at_most_once: 'at most once: never start it twice' }}
            help="What happens if nobody can know whether an attempt had its effect."
          />
          <Text draft={draft} path={['retry', 'max_attempts']} label="Attempts" numeric placeholder="15" help="Tries in all, the first included." />
          <Text draft={draft} path={['retry', 'initial']} label="First wait" placeholder="1s" help="The wait before the second attempt is one to two times as long." />
          <Text draft={draft} path={['retry', 'factor']} label="Factor" numeric placeholder="2" help="How many times longer each further wait is." />
          <Text draft={draft} path={['retry', 'max']} label="Longest wait" placeholder="1h" help="No wait is longer." />
        </Group>
      )}
      <Group title="If it is late, or goes on">
        <Choice draft={draft} path={['catch_up', 'mode']} label="Missed fires" usual="one" options={{ one: 'the latest runs', all: 'all run', none: 'none runs' }} help="What becomes of fires that were missed, as while no server ran." />
        <Text draft={draft} path={['expires_after']} label="Skip after" placeholder="never" help="A run that has not started so long after its time is skipped." />
        <Text draft={draft} path={['deadline']} label="Stop after" placeholder="never" help="A run that has not ended so long after its time is stopped, over all its attempts." />
        <Overlap draft={draft} />
      </Group>
      <Group title="Labels">
        <Pairs draft={draft} path={['labels']} label="Labels" one="Label" help="For finding jobs." />
        <div class="f-row">
          <span class="f-label">Paused</span>
          <div>
            <label>
              <input type="checkbox" checked={shown(at(draft.value.value, ['paused'])) === 'true'} onChange={(event) => draft.set(['paused'], event.currentTarget.checked ? { raw: 'true' } : undefined)} /> It makes no runs by itself until it is resumed.
            </label>
          </div>
        </div>
        <Text draft={draft} path={['pause_after']} label="Pause after" numeric placeholder="never" help="So many runs in a row that end badly pause it." />
      </Group>
      <p class="fine">Other fields, such as the jobs that it calls at its end, stand in the YAML. The form leaves them as they are.</p>
    </fieldset>
  )
}

const isJSON = (s: string): boolean => {
  try {
    JSON.parse(s)
    return true
  } catch {
    return false
  }
}
