// What can be done with many jobs: those that are selected, or those that match the filters of their list.
import './app'
import { useState } from 'preact/hooks'
import { get, patiently, post, Unreachable } from './api'
import { Bulk, Field, namesOf, Refused, some, type Lost } from './bulk'
import { Ask, Failed, teller } from './dialog'
import { labelsOf } from './labels'
import { inRequest } from './limits'
import { carryAll, start, type Many, type Matching, type Seen } from './many'
import type { Job, Page } from './model'
import { to } from './router'
import { belfry } from './terminal'
import { parse } from './time'

/** ChosenJobs are the jobs that a list's buttons are about. */
export interface ChosenJobs {
  jobs?: Seen[] // that are selected, as they are shown
  contains?: string // a part of the name
  label?: string
  paused?: boolean
}

const list = { href: to('jobs'), text: 'jobs' }
const which = (of: ChosenJobs) => (of.jobs ? 'selected jobs' : 'jobs that match')

/** matching is the filter of the list, as the API has it. */
function matching({ contains, label, paused }: ChosenJobs): Matching {
  return { contains: contains || undefined, labels: label ? labelsOf(label) : undefined, paused }
}

/** asked is what a request is about: seen says that of selected jobs those that somebody has changed since they were shown are refused. */
function asked(of: ChosenJobs, seen: boolean): Many['body'] {
  return of.jobs ? { jobs: seen ? of.jobs : of.jobs.map(({ name }) => ({ name })) } : { matching: matching(of) }
}

function command(verb: string, of: ChosenJobs, flags: Parameters<typeof belfry>[1]): string {
  const filters = of.jobs ? {} : { contains: of.contains, label: of.label, paused: of.paused === true, active: of.paused === false }
  return belfry(['job', verb, ...(of.jobs ?? []).map((j) => j.name)], { ...filters, ...flags })
}

const stays = 'A job that somebody changes meanwhile stays as it is, and is named.'

export function PauseMany({ of }: { of: ChosenJobs }) {
  const [text, setText] = useState('')
  const reason = text.trim()
  const about = { ...of, paused: of.jobs ? undefined : false }
  return (
    <Bulk
      title={`Pause ${which(of)}`}
      many={{ path: '/jobs/batch/pause', body: { ...asked(about, false), reason: reason || undefined } }}
      none={of.paused ? 'All that match are paused already.' : undefined}
      verb="Pause"
      done="paused"
      says="will make no runs until they are resumed. Those that are paused already are not among them, and keep their reason."
      wont="What has started goes on, with its retries. Fires of the pause are not made up."
      command={command('pause', about, { reason })}
      look={list}
      undo={(changed, lost) => (changed.length || lost.length ? () => void unpause(changed, lost, of) : undefined)}
    >
      <Field name="Reason" value={text} set={setText} most={500} />
    </Bulk>
  )
}

/** mayHave gives the jobs that requests without an answer may have paused: those that are paused with their reason, and were changed since they were counted. */
async function mayHave(lost: Lost[], { contains, label }: ChosenJobs, known: Seen[]): Promise<Seen[]> {
  const found = new Map<string, Seen>()
  const settled = new Set(known.map((j) => j.name))
  for (const { body, since } of lost) {
    const named = body.jobs && new Set(body.jobs.map((j) => j.name))
    for (let cursor: string | undefined, first = true; first || cursor; first = false) {
      const { data }: { data: Page<Job> } = await get<Page<Job>>('/jobs', { ...(named ? {} : { contains, label }), paused: 'true', limit: 1000, cursor })
      for (const { name, status } of data.items) {
        const its = (status.paused_reason ?? '') === (body.reason ?? '') && parse(status.updated_at) >= parse(since)
        if (its && !settled.has(name) && (!named || named.has(name))) found.set(name, { name, etag: status.etag })
      }
      cursor = data.next
    }
  }
  return [...found.values()]
}

/** unpause takes back a pause of many: of those that it has paused, or may have, those that nobody has changed since. */
async function unpause(changed: Seen[], lost: Lost[], of: ChosenJobs): Promise<void> {
  const tell = teller()
  const many: Many = { path: '/jobs/batch/resume', body: {} }
  let so = start(many)
  try {
    const maybe = await mayHave(lost, of, changed)
    const jobs = [...changed, ...maybe]
    many.body.jobs = jobs
    so = start(many)
    if (jobs.length) await carryAll(many, jobs.length, so, () => {}, () => false)
    const left = so.refusals.size > 0
    tell(
      <>
        {some(so.done, 'job is', 'jobs are')} as before the pause.{' '}
        {lost.length > 0 && (
          <>
            Of a part the answer was lost: {maybe.length ? <>{some(maybe.length, 'of them was', 'of them were')} paused with the same reason since the dialog counted, by it or by somebody else</> : 'no job was paused with its reason since the dialog counted'}.
            If the server is still at it, it pauses more: look at the list again.{' '}
          </>
        )}
        {left && <>The others stay as somebody has made them since. <Refused of={so.refusals} jobs /></>}
      </>,
      { bad: left },
    )
  } catch (error) {
    tell(<Failed error={error} what={so.done ? '' : 'The undo failed.'} look={list} />, { bad: true })
  }
}

export function ResumeMany({ of }: { of: ChosenJobs }) {
  const about = { ...of, paused: of.jobs ? undefined : true }
  return (
    <Bulk
      title={`Resume ${which(of)}`}
      many={{ path: '/jobs/batch/resume', body: asked(about, true) }}
      none={of.paused === false ? 'None that match are paused.' : undefined}
      verb="Resume"
      done="resumed"
      says="will make runs again from then on, and their runs on demand that were held start. Their reasons are not kept."
      wont={`Fires of the pause are not made up. Jobs that are not paused stay as they are. ${stays}`}
      command={command('resume', about, {})}
      look={list}
    />
  )
}

export function DeleteMany({ of }: { of: ChosenJobs }) {
  return (
    <Bulk
      title={`Delete ${which(of)}`}
      many={{ path: '/jobs/batch/delete', body: asked(of, true) }}
      verb="Delete"
      done="deleted"
      says="will be deleted, and make no more runs. Attempts under way go on to their end and are not tried again; all other runs of them that have not ended are cancelled. A deletion cannot be undone: export the jobs first if you may want them back."
      wont={`Runs that have ended stay until they expire. ${stays}`}
      command={command('delete', of, {})}
      look={list}
      grave
      asks
    />
  )
}

const labelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export function LabelMany({ of }: { of: ChosenJobs }) {
  const [sets, setSets] = useState('')
  const [removes, setRemoves] = useState('')
  const given = sets.trim().replace(/,\s+(?=[A-Za-z0-9][A-Za-z0-9._-]*=)/g, ',')
  const set = given ? labelsOf(given) : undefined
  const remove = removes.split(',').map((name) => name.trim()).filter(Boolean)
  const wrong = Object.keys(set ?? {}).find((name) => !labelName.test(name)) ?? (given && !given.includes('=') ? given : undefined)
  const both = remove.find((name) => set && name in set)
  const missing =
    wrong !== undefined
      ? `A label is NAME=VALUE, such as team=billing: “${wrong}” is none.`
      : both
        ? `${both} is set and taken away.`
        : !set && !remove.length
          ? 'Say which labels the jobs are to have, or not to have.'
          : undefined
  return (
    <Bulk
      title={`Label ${which(of)}`}
      missing={missing}
      many={{ path: '/jobs/batch/label', body: { ...asked(of, false), set, remove: remove.length ? remove : undefined } }}
      verb="Label"
      done="labelled"
      says="will have these labels, in a new generation of each. Those that have them already are not among them."
      wont={`Other labels stay. Runs keep the labels of the definition that they have. There is no undo. ${stays}`}
      command={command('label', of, { set: given, remove: remove.join(',') })}
      look={list}
    >
      <Field name="Labels to set, as team=billing, tier=1" value={sets} set={setSets} most={2000} />
      <Field name="Names of labels to take away" value={removes} set={setRemoves} most={2000} />
    </Bulk>
  )
}

interface Exported {
  yaml: string
  count: number
  missing?: string[]
  next?: string
  remaining?: string[]
}

/** ExportMany writes the definitions of jobs into a file. */
export function ExportMany({ of }: { of: ChosenJobs }) {
  const names = of.jobs?.map((j) => j.name)
  const body = names ? { jobs: names } : { matching: matching(of) }
  const [progress, setProgress] = useState(0)
  return (
    <Ask
      title={`Export ${which(of)}`}
      says={
        <>
          {names ? <b>{some(names.length, 'job is', 'jobs are')}</b> : 'All jobs that match are'} written to <code>{file}</code>, a document each with every default. <code>belfry job apply -f {file}</code> takes them in, here or on another server.
        </>
      }
      wont="Nothing is changed. Runs, reasons of pauses and what secrets hold are not in the file; what headers and environments say in plain text is."
      button="Download"
      reads
      doing={progress ? `${progress.toLocaleString('en')} …` : 'Asking …'}
      act={async () => {
        const { texts, count, missing } = await exported(body, setProgress)
        save(texts)
        return (
          <>
            {some(count, 'job is', 'jobs are')} in {file}. {missing.length > 0 && <>Not there any more: {namesOf(missing.slice(0, 20), missing.length)}.</>}
          </>
        )
      }}
      look={list}
      terminal={{
        command: names ? belfry(['export', file], { job: names.join(',') }) : belfry(['export', file], { contains: of.contains, label: of.label, paused: of.paused === true, active: of.paused === false }),
        change: { method: 'POST', path: '/jobs/batch/export', body: JSON.stringify(body) },
      }}
    />
  )
}

const file = 'jobs.yaml'

async function exported(body: { jobs?: string[]; matching?: Matching }, tell: (count: number) => void): Promise<{ texts: string[]; count: number; missing: string[] }> {
  const texts: string[] = []
  const missing: string[] = []
  let count = 0
  let { jobs } = body
  for (let cursor: string | undefined; ; ) {
    const asked = { ...body, jobs: jobs?.slice(0, inRequest), cursor }
    const part = await patiently(() => post<Exported>('/jobs/batch/export', asked))
    // What the server does not come to now it does not come to by being asked again.
    if (jobs ? !part.count && !part.missing?.length : part.next && part.next === cursor) throw new Unreachable('The server came to no further job in its time.')
    if (part.count) texts.push(part.yaml)
    missing.push(...(part.missing ?? []))
    tell((count += part.count))
    jobs = jobs && [...(part.remaining ?? []), ...jobs.slice(inRequest)]
    cursor = part.next
    if (jobs ? !jobs.length : !cursor) return { texts, count, missing }
  }
}

function save(texts: string[]): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([texts.join('---\n')], { type: 'application/yaml' }))
  link.download = file
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
