// What an operator can do with many jobs: those that are selected, and those that match the filters.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { act, belfry, close, deep, done, exec, Server } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
})
after(async () => {
  await server.stop()
  await close()
})

const run = (...args) => promisify(execFile)(belfry, [...args, '--address', server.address])
const job = (name) => server.call('GET', '/v1/jobs/' + name)
const bodies = (v) => v.sent.map((r) => r.postDataJSON())
const problem = (status, code, headers = {}) => ({ status, headers: { 'Content-Type': 'application/problem+json', 'X-Request-Id': 'r-1', ...headers }, body: JSON.stringify({ type: 'about:blank', title: 'x', status, code, detail: 'Words of the server.' }) })

/** jobs makes some of a prefix, with a label. */
async function jobs(prefix, n, more = {}) {
  const names = Array.from({ length: n }, (_, i) => prefix + String(i).padStart(3, '0'))
  await server.call('POST', '/v1/jobs/batch', { jobs: names.map((name) => ({ name, target: exec('true'), labels: { team: prefix }, ...more })) })
  return names
}

test('selected jobs are paused, and the undo takes back that alone: who has changed one since is named', async () => {
  const names = await jobs('night-', 4)
  await server.call('POST', '/v1/jobs/night-001/pause', { reason: 'ask Ada' })
  const v = await act(server.console + '/jobs?q=night-')
  await v.page.getByRole('grid', { name: 'Jobs' }).waitFor()
  await v.press('Select', true)
  assert.equal(await v.page.getByRole('button', { name: 'Pause 0…' }).getAttribute('aria-disabled'), 'true')
  await v.press('All 4')
  await v.press('Pause 4…')
  await v.dialog.getByText('3 jobs', { exact: true }).waitFor()
  await v.dialog.getByText('night-000, night-002, night-003').waitFor()
  await v.dialog.getByLabel('Reason').fill("Ada's move, %24job")
  const commands = await v.dialog.locator('.command code').allTextContents()
  assert.match(commands[0], /^belfry job pause night-000 night-001 night-002 night-003 --reason='Ada'\\''s move, %24job' --address/)
  assert.match(commands[1], /^curl -X POST .*\/v1\/jobs\/batch\/pause$/)
  await v.press('Pause 3', true)
  await v.told('3 jobs were paused')
  assert.equal(v.sent.length, 1)
  assert.deepEqual(bodies(v)[0].jobs.map((j) => j.name), names)
  assert.equal((await job('night-001')).status.paused_reason, 'ask Ada')
  assert.equal((await job('night-002')).status.paused_reason, "Ada's move, %24job")

  await server.call('POST', '/v1/jobs/night-003/pause', { reason: 'by Bob' })
  await server.call('DELETE', '/v1/jobs/night-002')
  await v.press('Undo')
  await v.told('1 job is as before the pause. The others stay as somebody has made them since.')
  const left = v.page.locator('.notice.bad .refusals')
  await left.getByText(/precondition_failed: .*night-003/).waitFor()
  await left.getByText(/job_not_found: .*night-002/).waitFor()
  assert.ok(!(await job('night-000')).paused)
  assert.equal((await job('night-001')).status.paused_reason, 'ask Ada')
  assert.equal((await job('night-003')).status.paused_reason, 'by Bob')
  await done(v)
})

test('jobs that match are paused and resumed by their filter, and no other', async () => {
  await jobs('match-', 3)
  await jobs('other-', 1)
  await server.call('POST', '/v1/jobs/match-002/pause', { reason: 'old' })
  const v = await act(server.console + '/jobs')
  await v.page.getByRole('grid', { name: 'Jobs' }).waitFor()
  assert.equal(await v.page.getByRole('button', { name: /^Pause/ }).count(), 0)
  await v.page.goto(server.console + '/jobs?label=team%3Dmatch-&q=ATCH')
  await v.press('Pause matching…')
  await v.dialog.getByText('2 jobs', { exact: true }).waitFor()
  const filters = v.dialog.getByRole('list', { name: 'Jobs that match' })
  await filters.getByText('ATCH in the name').waitFor()
  await filters.getByText('label team=match-').waitFor()
  const [command] = await v.dialog.locator('.command code').allTextContents()
  assert.match(command, /^belfry job pause --contains=ATCH --label=team=match- --active --address/)
  await v.press('Pause 2')
  await v.told('2 jobs were paused')
  assert.deepEqual(bodies(v)[0].matching, { contains: 'ATCH', labels: { team: 'match-' }, paused: false })
  assert.ok(!(await job('other-000')).paused)
  await v.page.goto(server.console + '/jobs?q=match&paused=true')
  await v.press('Pause matching…')
  await v.dialog.getByText('All that match are paused already.').waitFor()
  await v.page.keyboard.press('Escape')
  await v.press('Resume matching…')
  await v.dialog.getByText('3 jobs', { exact: true }).waitFor()
  await v.press('Resume 3')
  await v.told('3 jobs were resumed')
  assert.ok(!(await job('match-002')).paused)
  await done(v)
})

test('the undo of a pause has what a request without an answer has paused, and says what is not known', async () => {
  const names = await jobs('lost-', 4)
  for (const by of ['filter', 'name']) {
    const v = await act(server.console + '/jobs?q=lost-')
    await v.page.getByRole('grid', { name: 'Jobs' }).waitFor()
    if (by === 'name') {
      await v.press('Select', true)
      await v.press('All 4')
    }
    await v.press(by === 'name' ? 'Pause 4…' : 'Pause matching…')
    await v.dialog.getByText('4 jobs', { exact: true }).waitFor()
    await v.dialog.getByLabel('Reason').fill('the move')
    await v.page.route('**/v1/jobs/batch/pause', async (route) => {
      if (route.request().postDataJSON().dry_run) return route.continue()
      await route.fetch()
      return route.abort()
    })
    await v.press('Pause 4', true)
    await v.said('No answer came. It may have been done.')
    for (const name of names) assert.equal((await job(name)).status.paused_reason, 'the move')
    await server.call('POST', '/v1/jobs/lost-002/pause', { reason: 'by Bob' })
    await v.page.keyboard.press('Escape')
    await v.told('whether its jobs were paused is not known')
    await v.press('Undo')
    await v.told('3 jobs are as before the pause. Of a part the answer was lost: 3 of them were paused with the same reason since the dialog counted, by it or by somebody else.')
    assert.deepEqual(await Promise.all(names.map(async (name) => (await job(name)).status.paused_reason)), [undefined, undefined, 'by Bob', undefined])
    await server.call('POST', '/v1/jobs/lost-002/resume', {})
    await v.end()
  }
})

test('many jobs are deleted by their number, as they were counted', async () => {
  await jobs('try-', 3)
  const v = await act(server.console + '/jobs?q=try-')
  await v.press('Delete matching…')
  await v.dialog.getByText('3 jobs', { exact: true }).waitFor()
  assert.match(await v.dialog.locator('.says').textContent(), /A deletion cannot be undone/)
  assert.doesNotMatch(await v.dialog.locator('.wont').textContent(), /undone/)
  const button = v.dialog.getByRole('button', { name: 'Delete 3' })
  assert.equal(await button.getAttribute('aria-disabled'), 'true')
  await v.dialog.getByLabel('Type 3').fill('2')
  await button.click({ force: true })
  await v.dialog.getByLabel('Type 3').fill('3')
  // Since it was counted one was made and one was changed.
  await jobs('try-9', 1)
  await server.call('POST', '/v1/jobs/try-001/pause', { reason: 'needed' })
  await button.click()
  await v.told('2 jobs were deleted')
  await v.page.locator('.notice.bad .refusals').getByText('2 are refused, precondition_failed: try-001, try-9000').waitFor()
  assert.equal(v.sent.length, 1)
  assert.equal((await job('try-001')).paused, true)
  await job('try-9000')
  await assert.rejects(job('try-000'), /job_not_found/)
  await v.end()
})

test('many jobs are labelled, and exported as belfry does it', async () => {
  await jobs('file-', 3, { payload: { text: 'a: b\n---\n# no', n: 1.5 } })
  const v = await act(server.console + '/jobs?q=file-')
  await v.press('Label matching…')
  await v.dialog.getByText('Say which labels').first().waitFor()
  await v.dialog.getByLabel('Labels to set').fill('tier')
  await v.dialog.getByText('“tier” is none').first().waitFor()
  await v.dialog.getByLabel('Labels to set').fill('tier=1, note=a,b')
  await v.dialog.getByLabel('Names of labels to take away').fill('team, none')
  await v.dialog.getByText('3 jobs', { exact: true }).waitFor()
  const [command] = await v.dialog.locator('.command code').allTextContents()
  assert.match(command, /^belfry job label --contains=file- --set=tier=1,note=a,b --remove=team,none --address/)
  await v.press('Label 3')
  await v.told('3 jobs were labelled')
  assert.deepEqual((await job('file-001')).labels, { tier: '1', note: 'a,b' })

  for (const [select, args] of [[false, ['export', '--prefix', 'file-']], [true, ['export', '--job', 'file-000,file-001,file-002']]]) {
    if (select) {
      await v.press('Select', true)
      await v.press('All 3')
    }
    await v.press(select ? 'Export 3…' : 'Export matching…')
      if (select) {
      await v.page.route('**/v1/jobs/batch/export', (route) => route.abort(), { times: 1 })
      await v.press('Download')
      await v.said('Not done: no answer came.')
    }
    const [saved] = await Promise.all([v.page.waitForEvent('download'), v.press('Download')])
    assert.equal(saved.suggestedFilename(), 'jobs.yaml')
    const { stdout } = await run(...args)
    assert.equal(await readFile(await saved.path(), 'utf8'), stdout)
    await v.told('3 jobs are in jobs.yaml')
    await v.page.locator('.notice', { hasText: 'jobs.yaml' }).getByRole('button', { name: 'Close this notice' }).click()
  }
  // A part that is put off is waited for, and those before it are kept; one that brings nothing ends it.
  const answers = [
    async (route) => {
      const asked = route.request().postDataJSON()
      const answer = await route.fetch({ postData: JSON.stringify({ jobs: asked.jobs.slice(0, 1) }) })
      return route.fulfill({ response: answer, json: { ...(await answer.json()), remaining: asked.jobs.slice(1) } })
    },
    (route) => route.fulfill(problem(429, 'rate_limited', { 'Retry-After': '0.01' })),
    (route) => route.continue(),
    (route) => route.fulfill({ json: { yaml: '', count: 0, remaining: route.request().postDataJSON().jobs } }),
  ]
  await v.page.route('**/v1/jobs/batch/export', (route) => answers.shift()(route))
  await v.press('Export 3…')
  const [saved] = await Promise.all([v.page.waitForEvent('download'), v.press('Download')])
  assert.equal(await readFile(await saved.path(), 'utf8'), (await run('export', '--job', 'file-000,file-001,file-002')).stdout)
  await v.press('Export 3…')
  await v.press('Download')
  await v.said('Not done: no answer came.')
  assert.deepEqual(answers, [])
  assert.deepEqual(v.errors.filter((e) => !/ERR_FAILED|status of 429/.test(e)), [])
  await v.end()
})

deep('many jobs go by parts: nothing is asked for twice, and who asks again has the others', async () => {
  await jobs('part-', 500)
  const v = await act(server.console + '/jobs?q=part-')
  await v.press('Pause matching…')
  await v.dialog.getByText('500 jobs', { exact: true }).waitFor()
  let parts = 0
  await v.page.route('**/v1/jobs/batch/pause', (route) => (route.request().postDataJSON().dry_run || ++parts !== 2 ? route.continue() : route.fulfill(problem(429, 'busy', { 'Retry-After': '3' }))))
  await v.press('Pause 500')
  await v.said('Stopped after 200 of 500: too many requests. Try again in 3 s.')
  assert.equal(await v.dialog.getByRole('button', { name: 'Stop' }).count(), 0)
  await v.press('Pause the other 300')
  await v.told('500 jobs were paused')
  // The undo has all parts.
  await v.press('Undo')
  await v.told('500 jobs are as before the pause')
  assert.equal((await server.call('POST', '/v1/jobs/batch/resume', { matching: { prefix: 'part-' }, dry_run: true })).count, 0)
  // Nobody knows what became of a part: it is counted anew, and what was done is not among the rest.
  await v.page.unroute('**/v1/jobs/batch/pause')
  parts = 0
  await v.page.route('**/v1/jobs/batch/pause', async (route) => {
    if (route.request().postDataJSON().dry_run || ++parts !== 2) return route.continue()
    await route.fetch()
    return route.abort()
  })
  await v.press('Pause matching…')
  await v.press('Pause 500')
  await v.said('Stopped after 200 of 500. No answer came. It may have been done.')
  await v.press('Pause 100')
  await v.told('100 jobs were paused')
  await v.page.locator('.notice', { hasText: '100 jobs were paused' }).getByRole('button', { name: 'Undo' }).click()
  await v.told('500 jobs are as before the pause. Of a part the answer was lost: 200 of them were paused')
  // Who leaves it at what was done can take that back.
  await v.page.unroute('**/v1/jobs/batch/pause')
  parts = 0
  await v.page.route('**/v1/jobs/batch/pause', (route) => (route.request().postDataJSON().dry_run || ++parts !== 2 ? route.continue() : route.fulfill(problem(503, 'throttled'))))
  await v.press('Pause matching…')
  await v.press('Pause 500')
  await v.said('Stopped after 200 of 500')
  await v.page.keyboard.press('Escape')
  await v.page.locator('.notice', { hasText: '200 jobs were paused, then it was stopped' }).getByRole('button', { name: 'Undo' }).click()
  await v.told('200 jobs are as before the pause')
  assert.equal((await server.call('POST', '/v1/jobs/batch/resume', { matching: { prefix: 'part-' }, dry_run: true })).count, 0)
  await v.end()
})
