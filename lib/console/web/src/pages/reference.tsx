// The reference of the API, made of the document that the server itself answers with. All is folded: a part is made when it is opened.
import '../app'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { bytes, getAt, outside } from '../api'
import { commands } from '../commands'
import { useLive } from '../live'
import { quoted } from '../quoted'
import { Raw } from '../raw'
import { filter, query } from '../router'
import { curl } from '../terminal'
import { Command, Line, pending, Refused, Waiting } from '../ui'

interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  oneOf?: Schema[]
  enum?: unknown[]
  format?: string
  pattern?: string
  examples?: unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  readOnly?: boolean
}

interface Content {
  schema?: Schema
  example?: unknown
}

interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
}

interface Operation {
  operationId: string
  summary?: string
  tags?: string[]
  security?: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, { description?: string; content?: Record<string, Content>; headers?: Record<string, { description?: string }> }>
}

interface Described {
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

interface Entry {
  id: string
  group: string
  method: string
  path: string
  summary: string
  scope: string
  of: Operation
}

const tagOf = (op: Operation): string => op.tags?.[0] ?? 'others'
const scopeOf = (op: Operation): string => op.security?.[0] ? (Object.values(op.security[0])[0]?.[0] ?? '') : ''

/** entries are the operations, by group and path. */
function entries(doc: Described): Entry[] {
  const all = Object.entries(doc.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, of]): Entry => ({ id: of.operationId, group: tagOf(of), method: method.toUpperCase(), path, summary: of.summary ?? '', scope: scopeOf(of), of })),
  )
  const first = ['jobs', 'runs', 'dead letters', 'workflows', 'gates', 'system']
  const rank = (group: string) => (first.indexOf(group) + 1 || first.length + 1) + group
  return all.sort((a, b) => (rank(a.group) < rank(b.group) ? -1 : rank(a.group) > rank(b.group) ? 1 : a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

export function Reference() {
  const live = useLive('reference', async (stop) => (await getAt<Described>(outside('/openapi.json'), stop)).data, 0)
  const q = query.value.get('q') ?? ''
  const at = query.value.get('at') ?? ''
  const doc = live.data
  const all = useMemo(() => (doc ? entries(doc) : []), [doc])
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const has = (text: string) => words.every((word) => text.toLowerCase().includes(word))
  const found = all.filter((e) => has([e.method, e.path, e.id, e.summary, e.group, e.scope, commands[e.id] ?? ''].join(' ')))
  const shapes = Object.entries(doc?.components.schemas ?? {}).filter(([name, schema]) => has([name, schema.description ?? '', ...Object.keys(schema.properties ?? {})].join(' ')))
  const groups = [...new Set(found.map((e) => e.group))]
  return (
    <section class="page reference">
      <header class="bar">
        <h1>API</h1>
        {doc && (
          <span class="count" role="status">
            {found.length === all.length ? `${all.length} operations` : `${found.length} of ${all.length} operations`}
          </span>
        )}
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span>Search</span>
          <input data-find type="search" value={q} onInput={(event) => filter({ q: event.currentTarget.value }, true)} placeholder="path, word, scope, command" spellcheck={false} />
        </label>
      </form>
      {!doc && (pending(live.error) ? <Waiting /> : <Refused error={live.error} />)}
      {doc && (
        <>
          <p class="fine">
            All that these pages do goes through this API. Errors are problem documents with a stable <code>code</code>. Clients are made of the document itself:
          </p>
          <Line text={curl({ method: 'GET', path: '' }, quoted(location.origin + outside('/openapi.json')))} />
          {groups.map((group) => (
            <section key={group} aria-label={group}>
              <h2>{group.charAt(0).toUpperCase() + group.slice(1)}</h2>
              {found.filter((e) => e.group === group).map((e) => (
                <Fold key={e.id} id={e.id} at={at} label={<OperationLine of={e} />}>
                  <OperationBody of={e} doc={doc} />
                </Fold>
              ))}
            </section>
          ))}
          {shapes.length > 0 && (
            <section aria-label="Shapes">
              <h2>Shapes</h2>
              {shapes.map(([name, schema]) => (
                <Fold key={name} id={name} at={at} label={<code>{name}</code>}>
                  {schema.description && <p class="lead">{schema.description}</p>}
                  <Shape of={schema} doc={doc} />
                </Fold>
              ))}
            </section>
          )}
          {!found.length && !shapes.length && <p class="nothing">Nothing has all of these words.</p>}
        </>
      )}
    </section>
  )
}

/** Fold makes what is in it when it is opened. One that the address names is open, and is where the page is. */
function Fold({ id, at, label, children }: { id: string; at: string; label: ComponentChildren; children: ComponentChildren }) {
  const [open, setOpen] = useState(at === id)
  const here = useRef<HTMLDetailsElement>(null)
  const own = useRef(false)
  useEffect(() => {
    if (at !== id || own.current) return
    setOpen(true)
    here.current?.scrollIntoView({ block: 'start' })
  }, [at])
  return (
    <details
      ref={here}
      id={id}
      class="fold"
      open={open}
      onToggle={(event) => {
        const is = event.currentTarget.open
        if (is === open) return
        setOpen(is)
        own.current = is // it was opened where it stands: nothing is to move
        if (is || at === id) filter({ at: is ? id : undefined }, true)
      }}
    >
      <summary>{label}</summary>
      {open && <div class="inside">{children}</div>}
    </details>
  )
}

function OperationLine({ of }: { of: Entry }) {
  return (
    <>
      <b class="method">{of.method}</b> <code>{of.path}</code>
      {of.scope && <span class="tag">{of.scope}</span>} <span class="says">{of.summary}</span>
    </>
  )
}

function OperationBody({ of, doc }: { of: Entry; doc: Described }) {
  const { parameters = [], requestBody, responses } = of.of
  const [media, body] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const example = body ? JSON.stringify(body.example ?? {}) : undefined
  const needed = parameters.filter((p) => p.in === 'query' && p.required).map((p) => `${p.name}=${encodeURIComponent(String(p.schema?.examples?.[0] ?? p.name.toUpperCase()))}`)
  const url = location.origin + outside(of.path.replace(/\{(\w+)\}/g, (_, name: string) => name.toUpperCase())) + (needed.length ? '?' + needed.join('&') : '')
  const answers = Object.entries(responses)
  const well = answers.filter(([status]) => status < '400')
  const refused = answers.filter(([status]) => status >= '400')
  return (
    <>
      <p class="fine">
        {of.scope ? (
          <>
            Asks for the scope <b>{of.scope}</b>.
          </>
        ) : (
          'Asks for no token.'
        )}{' '}
        Its ID is <code>{of.id}</code>.
      </p>
      <Line text={curl({ method: of.method, path: '', body: example, headers: media && media !== 'application/json' ? { 'Content-Type': media } : undefined }, quoted(url))} />
      {commands[of.id] ? <Command text={commands[of.id] ?? ''} /> : <p class="fine">No command of belfry does this alone.</p>}
      {parameters.length > 0 && (
        <>
          <h3>Parameters</h3>
          <ul class="fields">
            {parameters.map((p) => (
              <li key={p.in + p.name}>
                <code>{p.name}</code> <span class="type">{[p.in, p.required && 'required', kind(p.schema, doc)].filter(Boolean).join(' · ')}</span>
                {p.description && <p>{p.description}</p>}
              </li>
            ))}
          </ul>
        </>
      )}
      {body?.schema && (
        <>
          <h3>Body</h3>
          <Shape of={body.schema} doc={doc} />
        </>
      )}
      <h3>Answers</h3>
      <ul class="fields">
        {well.map(([status, answer]) => {
          const [type, content] = Object.entries(answer.content ?? {})[0] ?? []
          const headers = Object.keys(answer.headers ?? {})
          return (
            <li key={status}>
              <b>{status}</b> <span class="type">{[answer.description, type !== 'application/json' && type, headers.length > 0 && 'headers ' + headers.join(', ')].filter(Boolean).join(' · ')}</span>
              {content?.schema && kind(content.schema, doc) !== 'any' && <Nested of={content.schema} doc={doc} />}
            </li>
          )
        })}
        {refused.length > 0 && (
          <li>
            <b>{refused.map(([status]) => status).join(', ')}</b> <span class="type">refusals</span>
            <Nested of={{ $ref: '#/components/schemas/Problem' }} doc={doc} />
          </li>
        )}
      </ul>
      {of.method === 'GET' && well.some(([, answer]) => answer.content?.['application/json']) && <Try of={of} />}
    </>
  )
}

/** Try asks this server, with the session of the page. Only what changes nothing is tried so. */
function Try({ of }: { of: Entry }) {
  const given = useRef<Record<string, string>>({})
  const [shown, setShown] = useState<{ text?: string; error?: Error; busy?: boolean }>({})
  const fields = (of.of.parameters ?? []).filter((p) => p.in !== 'header')
  if (!of.path.startsWith('/v1/')) return null // nor is that of the API's own
  return (
    <form
      class="try"
      onSubmit={(event) => {
        event.preventDefault()
        const own: Record<string, string | undefined> = {}
        for (const p of fields) if (p.in === 'query') own[p.name] = given.current[p.name]
        const path = of.path.slice('/v1'.length).replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given.current[name] ?? ''))
        setShown({ busy: true })
        bytes(path, own)
          .then(({ data }) => setShown({ text: new TextDecoder().decode(data) }))
          .catch((error: unknown) => setShown({ error: error as Error }))
      }}
    >
      <h3>Try it</h3>
      <div class="filters">
        {fields.map((p) => (
          <label key={p.name}>
            <span>{p.name}</span>
            <input name={p.name} required={p.required} autocomplete="off" spellcheck={false} placeholder={String(p.schema?.examples?.[0] ?? '')} onInput={(event) => (given.current[p.name] = event.currentTarget.value)} />
          </label>
        ))}
        <button type="submit" disabled={shown.busy}>
          Ask
        </button>
      </div>
      <Refused error={shown.error} small />
      {shown.text !== undefined && <Raw text={shown.text} label={'Answer of ' + of.id} />}
    </form>
  )
}

const nameOf = (schema: Schema | undefined): string => schema?.$ref?.split('/').pop() ?? ''
const resolved = (schema: Schema, doc: Described): Schema => (schema.$ref ? (doc.components.schemas[nameOf(schema)] ?? {}) : schema)

/** kind says in a few words what a value is. */
function kind(schema: Schema | undefined, doc: Described): string {
  if (!schema) return 'any'
  if (schema.$ref) return resolved(schema, doc).enum ? kind(resolved(schema, doc), doc) : nameOf(schema)
  if (schema.enum) return schema.enum.map(String).join(' | ')
  const type = Array.isArray(schema.type) ? schema.type.join(' or ') : schema.type
  if (type === 'array') return 'list of ' + kind(schema.items, doc)
  if (schema.oneOf) return 'one of ' + schema.oneOf.map((one) => kind(one, doc)).join(', ')
  if (type === 'object' && typeof schema.additionalProperties === 'object') return 'map of ' + kind(schema.additionalProperties, doc)
  const least = schema.minimum ?? schema.minLength ?? schema.minItems
  const most = schema.maximum ?? schema.maxLength ?? schema.maxItems ?? schema.maxProperties
  const unit = schema.maxLength !== undefined || schema.minLength !== undefined ? ' characters' : ''
  const bounds = least !== undefined && most !== undefined ? `${least} to ${most}${unit}` : most !== undefined ? `at most ${most}${unit}` : least !== undefined ? `at least ${least}${unit}` : ''
  return [type ?? 'any', schema.format, bounds, schema.examples?.[0] !== undefined && 'such as ' + JSON.stringify(schema.examples[0])].filter(Boolean).join(', ')
}

/** below is the shape that a value has inside, if it has one: of a list or a map, that of what is in it. */
function below(schema: Schema, doc: Described): Schema | undefined {
  if (schema.items) return below(schema.items, doc)
  if (typeof schema.additionalProperties === 'object') return below(schema.additionalProperties, doc)
  const of = resolved(schema, doc)
  return of.properties || of.oneOf || (schema.$ref && (of.items || typeof of.additionalProperties === 'object')) ? schema : undefined
}

/** Shape lists the fields of a value, or the ways in which it may be given. */
function Shape({ of, doc }: { of: Schema; doc: Described }) {
  const schema = resolved(of, doc)
  if (schema.oneOf) {
    return (
      <ul class="fields">
        {schema.oneOf.map((one, i) => (
          <li key={i}>
            <span class="type">{i ? 'or' : 'one of'}</span> <code>{kind(one, doc)}</code>
            <Nested of={one} doc={doc} />
          </li>
        ))}
      </ul>
    )
  }
  if (!schema.properties) {
    const inside = below(schema, doc)
    return (
      <p class="fine">
        {kind(schema, doc)}
        {schema.pattern && (
          <>
            , as <code>{schema.pattern}</code>
          </>
        )}
        {inside && inside !== of && <Nested of={inside} doc={doc} />}
      </p>
    )
  }
  return (
    <ul class="fields">
      {Object.entries(schema.properties).map(([name, field]) => (
        <li key={name}>
          <code>{name}</code> <span class="type">{[schema.required?.includes(name) && 'required', field.readOnly && 'only in answers', kind(field, doc)].filter(Boolean).join(' · ')}</span>
          {field.description && <p>{field.description}</p>}
          <Nested of={field} doc={doc} />
        </li>
      ))}
    </ul>
  )
}

/** Nested is a shape inside another one, made when it is opened: some shapes hold themselves. */
function Nested({ of, doc }: { of: Schema; doc: Described }) {
  const [open, setOpen] = useState(false)
  const inside = below(of, doc)
  if (!inside) return null
  return (
    <details class="nested" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{nameOf(inside) || 'its fields'}</summary>
      {open && <Shape of={inside} doc={doc} />}
    </details>
  )
}
