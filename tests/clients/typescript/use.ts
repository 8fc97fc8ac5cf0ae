// use: calls a server with the types that openapi-typescript made of its document. ADDRESS and TOKEN are in the environment.
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { components, paths } from './belfry.js'

type Job = components['schemas']['Job']
type Target = components['schemas']['Target']

const api = createClient<paths>({ baseUrl: process.env.ADDRESS!, headers: { Authorization: 'Bearer ' + process.env.TOKEN! } })

const job: Job = {
  schedule: { cron: '30 9 * * 1-5', timezone: 'Europe/Berlin' },
  target: { exec: { argv: ['/bin/sh', '-c', 'echo done'] } },
  overlap: { policy: 'queue', limit: 2 },
  labels: { from: 'typescript' },
}
// @ts-expect-error A target has one way to be called.
const both: Target = { exec: { argv: ['a'] }, handler: { name: 'a' }, http: 1 }
assert(both)

const names = ['ts-a', 'ts-b', 'ts-c']
for (const name of names) {
  const put = await api.PUT('/v1/jobs/{job}', { params: { path: { job: name } }, body: job })
  assert.equal(put.response.status, 201)
  assert.equal(put.data?.name, name)
}

const stored = await api.GET('/v1/jobs/{job}', { params: { path: { job: 'ts-a' } } })
assert(stored.data)
assert('exec' in stored.data.target && stored.data.target.exec.argv.length === 3)
assert(stored.data.schedule && 'cron' in stored.data.schedule && stored.data.schedule.timezone === 'Europe/Berlin')
const again = await api.PUT('/v1/jobs/{job}', { params: { path: { job: 'ts-a' } }, body: stored.data })
assert.equal(again.response.status, 200)
assert.deepEqual(again.data, stored.data)

const listed: string[] = []
for (let cursor: string | undefined; ; ) {
  const page = await api.GET('/v1/jobs', { params: { query: { limit: 2, label: ['from=typescript'], ...(cursor ? { cursor } : {}) } } })
  assert(page.data && page.data.items.length <= 2)
  listed.push(...page.data.items.map((j) => j.name ?? ''))
  if (!(cursor = page.data.next)) break
}
assert.deepEqual(listed, names)

const asked = await api.POST('/v1/jobs/{job}/runs', { params: { path: { job: 'ts-a' } }, body: { payload: { a: 1 } } })
assert.equal(asked.response.status, 202)
const id = asked.data!.id
const until = Date.now() + 5 * 60_000
for (;;) {
  const { data: run } = await api.GET('/v1/runs/{run}', { params: { path: { run: id } } })
  assert(run && Date.now() < until)
  if (run.state === 'succeeded') {
    assert.match(String(run.result), /done/)
    break
  }
  assert(run.state === 'queued' || run.state === 'scheduled' || run.state === 'running', run.state)
  await setTimeout(100)
}
const runs = await api.GET('/v1/runs', { params: { query: { state: ['succeeded', 'failed'], job: 'ts-a' } } })
assert.deepEqual(runs.data?.items.map((r) => r.id), [id])

const wrong = await api.PUT('/v1/jobs/{job}', { params: { path: { job: 'ts-a' }, query: { dry_run: true } }, body: { ...job, name: 'other', timeout: '25h' } })
assert.equal(wrong.response.status, 422)
assert.equal(wrong.error?.code, 'invalid')
assert.deepEqual(wrong.error?.errors?.map((e) => e.field).sort(), ['name', 'timeout'])

const none = await api.GET('/v1/jobs/{job}', { params: { path: { job: 'none' } } })
assert.equal(none.response.status, 404)
assert.equal(none.error?.code, 'job_not_found')
console.log('TypeScript: jobs, pages, a run and refusals')
