import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, close, done, exec, fetched, once, Server, shell, Visit } from './harness.mjs'

after(close)

test('from the first visit of an empty server to the first run, without a reload', async () => {
  const server = await Server.start()
  const v = await Visit.to(server.address + '/', { permissions: ['clipboard-read', 'clipboard-write'] })
  try {
    assert.equal(v.page.url(), server.console)
    await v.page.getByText('there is no job yet').waitFor()
    await v.page.getByRole('button', { name: 'Copy' }).click()
    const command = await v.page.evaluate(() => navigator.clipboard.readText())
    assert.match(command, /belfry job apply hello/)
    await promisify(execFile)('sh', ['-c', command], { env: { ...process.env, PATH: path.dirname(belfry) + ':' + process.env.PATH, HOME: server.folder } })
    await v.ask()
    const next = v.page.locator('.next').getByRole('link', { name: 'hello', exact: true })
    await next.waitFor()
    await next.click()
    await v.page.getByText('Every 2 seconds').waitFor()
    await server.ended('hello')
    await v.ask()
    const run = v.page.getByRole('grid', { name: 'Last runs' }).getByRole('row').filter({ hasText: 'succeeded' }).first().getByRole('link')
    await run.click()
    await v.page.locator('pre', { hasText: 'hello' }).waitFor()
    await v.page.getByText('It succeeded').waitFor()
    assert.deepEqual(v.errors, [])
    assert.deepEqual(await v.violations(), [])
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a log is followed while it is written, and to its end', async () => {
  const server = await Server.start()
  const gate = path.join(server.folder, 'gate')
  await server.put('long', { target: shell(`echo began; until [ -e ${gate} ]; do sleep 0.1; done; for i in $(seq 300); do echo "line $i"; done; printf '\\033[1;31mred\\033[0m end'`), timeout: '1h' })
  const { id } = await server.trigger('long')
  await server.until(id, 'running')
  const v = await Visit.to(server.console + '/runs/' + id)
  try {
    const log = v.page.getByRole('region', { name: 'Log' })
    await log.getByText('began').waitFor()
    await v.page.locator('h1 + .s-running').waitFor()
    assert.equal(await log.getByText('line 1').count(), 0)
    await promisify(execFile)('touch', [gate])
    await log.getByText('line 300').waitFor()
    await log.locator('.ansi-red.ansi-bold', { hasText: 'red' }).waitFor()
    await v.page.getByText('It succeeded').waitFor()
    assert.ok(await log.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 24), 'it does not stand at its end')
    const text = await log.innerText()
    assert.equal(text.match(/began/g).length, 1)
    assert.equal(text.match(/line \d+/g).length, 300)
    assert.ok(!text.includes('\x1b') && !text.includes('[1;31m'))
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a workflow shows its steps, and the attempts and the log of each', async () => {
  const server = await Server.start()
  const gate = path.join(server.folder, 'gate')
  await server.put('etl', { target: { workflow: { steps: {
    extract: shell('echo "from the first"'),
    parts: { needs: ['extract'], steps: { index: { ...shell(`echo "attempt began"; until [ -e ${gate} ]; do sleep 0.1; done; echo "at its end"; exit 3`), ...once } } },
    load: { needs: ['parts'], ...exec('true') },
  } } } })
  const { id } = await server.trigger('etl')
  const v = await Visit.to(server.console + '/runs/' + id)
  try {
    const steps = v.page.getByRole('region', { name: 'Steps' })
    const row = (name) => steps.getByRole('row').filter({ has: v.page.getByRole('link', { name, exact: true }) })
    await row('extract').locator('.s-succeeded').waitFor()
    await row('parts/index').locator('.s-running').waitFor()
    await row('load').locator('.s-pending').waitFor()
    await v.page.getByText('Choose a step').waitFor()
    await steps.getByRole('link', { name: 'load', exact: true }).click()
    await v.page.getByText('It waits for other steps.').waitFor()
    await steps.getByRole('link', { name: 'parts/index' }).click()
    assert.match(v.page.url(), /[?]step=parts%2Findex$/)
    const log = v.page.getByRole('region', { name: 'Log' })
    await log.getByText('attempt began').waitFor()
    assert.equal(await log.getByText('from the first').count(), 0)
    await promisify(execFile)('touch', [gate])
    await log.getByText('at its end').waitFor()
    await v.page.getByText('It failed: step parts/index is').waitFor()
    await row('parts/index').getByText('exit code 3').waitFor()
    await row('load').locator('.s-upstream_failed').waitFor()
    await v.page.getByRole('region', { name: 'Attempts' }).getByText('exit code 3').waitFor()
    // What is shown is a link, and each step has its own log.
    await v.page.reload()
    await log.getByText('at its end').waitFor()
    await steps.getByRole('link', { name: 'extract', exact: true }).click()
    await log.getByText('from the first').waitFor()
    assert.equal(await log.getByText('at its end').count(), 0)
    await steps.getByRole('link', { name: 'load', exact: true }).click()
    await v.page.getByText('It never started, so it has no log.').waitFor()
    assert.equal(await v.page.getByRole('link', { name: 'log', exact: true }).count(), 0, 'the run itself has no log')
    await server.put('trial', { target: { workflow: { steps: { calm: { timeout: '2d', steps: { pause: { wait: { until: '2040-01-01T00:00:00Z' } } } } } } } })
    await v.page.goto(server.console + '/runs/' + (await server.trigger('trial')).id)
    const pause = steps.getByRole('row').filter({ hasText: 'pause' })
    await pause.locator('.s-suspended').waitFor()
    await pause.getByText('waits until').locator('time[datetime="2040-01-01T00:00:00Z"]').waitFor()
    await steps.getByRole('row').filter({ hasText: 'calm' }).getByText('times out').waitFor()
    assert.deepEqual(v.errors, [])
    assert.deepEqual(await v.violations(), [])
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a server that starts again under an open page is told, and its page goes on', async () => {
  const server = await Server.start()
  await server.put('steady', { target: exec('true'), ...once })
  const first = (await server.trigger('steady')).id
  await server.until(first, 'succeeded')
  const v = await Visit.to(server.console + '/runs')
  try {
    await v.page.getByRole('link', { name: first }).waitFor()
    await server.kill()
    await v.ask()
    await v.page.getByText('No answer for').waitFor()
    assert.ok(await v.page.getByRole('link', { name: first }).isVisible(), 'what was there is gone')
    await server.again()
    await v.page.locator('.link', { hasText: /^live$/ }).waitFor()
    const second = (await server.trigger('steady')).id
    await v.ask()
    await v.page.getByRole('link', { name: second }).waitFor()
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a link on a page of another site leads to a run, and nothing else of that site gets in', async () => {
  const server = await Server.start()
  await server.put('linked', { target: exec('true'), ...once })
  const { id } = await server.trigger('linked')
  await server.until(id, 'succeeded')
  const elsewhere = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/html')
    answer.end(`<a href="${server.console}/runs/${id}">the run that failed</a><iframe src="${server.console}"></iframe><script src="${server.address}/v1/jobs"></script>`)
  })
  await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  // By another name it is another site, not only another origin.
  const v = await Visit.to(`http://localhost:${elsewhere.address().port}/`)
  try {
    const asked = await v.page.evaluate((at) => fetch(at, { mode: 'no-cors' }).then((a) => a.type), server.address + '/v1/jobs').catch(() => 'failed')
    assert.notEqual(asked, 'basic')
    const framed = v.page.frames().find((f) => f !== v.page.mainFrame())
    assert.ok(!framed || !(await framed.content()).includes('data-prefix'), 'it can be framed')
    await v.page.getByRole('link').click()
    await v.page.getByText('It succeeded').waitFor()
    assert.equal(v.page.url(), `${server.console}/runs/${id}`)
  } finally {
    await v.end()
    elsewhere.close()
    await server.stop()
  }
})

test('pages that are mounted below another path stay there, and ask for what they show where the API is', async () => {
  const server = await Server.start()
  await server.put('mounted', { target: exec('true'), ...once })
  const v = await Visit.to(undefined)
  const { page } = v
  try {
    // As a program serves them that has them at /ops/belfry, and the API below /api.
    await page.route(server.address + '/**', async (route) => {
      const url = route.request().url()
      const at = (from, to) => url.replace(server.address + from, server.address + to)
      if (url.startsWith(server.address + '/api/')) return route.continue({ url: at('/api', '') })
      if (!url.startsWith(server.console.replace('/console', '/ops/belfry'))) return route.fulfill({ status: 404 })
      if (route.request().resourceType() !== 'document') return route.continue({ url: at('/ops/belfry', '/console') })
      const answer = await route.fetch({ url: at('/ops/belfry', '/console') })
      await route.fulfill({ response: answer, body: (await answer.text()).replaceAll('/console', '/ops/belfry').replace('data-api=""', 'data-api="/api"') })
    })
    await page.goto(server.address + '/ops/belfry')
    await page.getByRole('link', { name: 'Jobs', exact: true }).first().click()
    await page.getByRole('link', { name: 'mounted', exact: true }).click()
    await page.waitForURL('**/ops/belfry/jobs/mounted')
    await page.getByRole('button', { name: 'Trigger…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Trigger' }).click()
    await page.locator('.notice').getByRole('link', { name: 'mounted~' }).click()
    await page.getByText('It succeeded').waitFor()
    await page.reload()
    await page.getByText('It succeeded').waitFor()
    assert.match(page.url(), /\/ops\/belfry\/runs\/mounted~/)
    assert.ok(v.requests.every((url) => /^\/(ops\/belfry|api\/)/.test(new URL(url).pathname)), v.requests.join(' '))
    await done(v)
  } finally {
    await server.stop()
  }
})

test('keys lead through lists and pages, and can be turned off', async () => {
  const server = await Server.start()
  await server.put('a', { target: exec('true'), ...once })
  await server.put('b', { target: exec('true'), ...once })
  const v = await Visit.to(server.console)
  const { page } = v
  try {
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await v.lead('j', '/jobs')
    await page.getByRole('grid', { name: 'Jobs' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.locator('[role=row].at', { hasText: 'b' }).waitFor()
    await page.keyboard.press('k')
    await page.locator('[role=row].at', { hasText: 'a' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/jobs/a')
    await page.goBack()
    await page.keyboard.press('/')
    await page.keyboard.type('b')
    await page.waitForURL('**/jobs?q=b')
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await v.lead('s', '/settings')
    await page.getByLabel('Single keys').click()
    await page.getByRole('heading', { name: 'Settings' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await page.keyboard.press('?')
    assert.ok(page.url().endsWith('/settings'))
    assert.equal(await page.getByRole('dialog').count(), 0)
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a clock of the browser that is an hour off changes no age', async () => {
  const server = await Server.start()
  await server.put('timely', { target: exec('true'), ...once })
  const { id } = await server.trigger('timely')
  await server.until(id, 'succeeded')
  const v = await Visit.to(undefined)
  try {
    await v.page.clock.install({ time: Date.now() + 3_600_000 })
    await v.page.goto(server.console + '/runs/' + id)
    await v.page.getByText('It succeeded').waitFor()
    await v.page.clock.runFor(1500)
    assert.match(await v.page.locator('.verdict .ago').innerText(), /^(now|\d+ s ago|\d m ago)$/)
    await v.page.goto(server.console + '/settings')
    await v.page.getByText(/ahead of the server/).waitFor()
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a run that is skipped for overlap leads to those in its way, and one that is paced says when it starts', async () => {
  const server = await Server.start()
  await server.put('exports', { target: exec('true'), overlap: { policy: 'skip', limit: 3 } })
  await server.put('export', { target: exec('sleep', '600'), timeout: '20m', overlap: 'skip' })
  await server.put('plain', { target: exec('true') })
  const first = (await server.trigger('export')).id
  await server.until(first, 'running')
  const second = (await server.trigger('export')).id
  await server.until(second, 'skipped')
  const v = await Visit.to(server.console + '/runs?state=skipped')
  const { page } = v
  try {
    await page.getByText(first + ' was in progress (overlap: skip)').waitFor()
    await page.getByRole('link', { name: second, exact: true }).click()
    await page.getByText('It was skipped: ' + first + ' was in progress (overlap: skip).').waitFor()
    await page.getByText('It never started, so it has no log.').waitFor()
    assert.equal(await page.getByText('Started late by').count(), 0, 'it never started')
    await page.getByRole('list', { name: 'In progress when it was due' }).getByRole('link', { name: first, exact: true }).click()
    await page.waitForURL('**/runs/' + encodeURIComponent(first).replaceAll('%7E', '~'))
    await page.getByText('Attempt 1 is under way.').waitFor()

    await server.call('POST', '/v1/jobs/plain/pause', { reason: '<i>moved</i>, ask Ada' })
    await page.goto(server.console + '/jobs')
    await page.getByRole('row').filter({ hasText: 'plain' }).getByText('<i>moved</i>, ask Ada').waitFor()
    for (const [job, says] of [['export', 'skipped while a run is in progress'], ['exports', 'skipped while 3 runs are in progress'], ['plain', 'allowed']]) {
      await page.goto(server.console + '/jobs/' + job)
      assert.equal(await page.locator('dt', { hasText: 'Overlap' }).locator('+ dd').innerText(), says)
    }

    // What is made up for waits for its place after an outage alone, and an expired run has waited for minutes; the answers are put in here.
    const until = new Date(Date.now() + 3_600_000).toISOString()
    let other = { state: 'queued', reason: 'catch-up of a missed fire', waiting: [{ code: 'paced', text: 'It makes up for a missed fire.', until }] }
    await page.route('**/v1/runs/' + first, async (route) => {
      const answer = await fetched(route)
      const run = await answer.json()
      await route.fulfill({ json: { ...run, attempt: 0, attempts: [], waiting: undefined, ...other } })
    })
    await page.goto(server.console + '/runs/' + first)
    const waits = page.getByRole('list', { name: 'Why it has not ended' })
    await waits.getByText('It makes up for a missed fire.').waitFor()
    assert.equal(await waits.locator('time').getAttribute('datetime'), until)
    assert.match(await waits.locator('.ago').innerText(), /^in (\d+ m|1 h)$/)

    other = { state: 'scheduled', waiting: [{ code: 'tick_behind', text: 'Its time has come. The ticks are behind.', who: 'whoever runs the server' }] }
    await page.reload()
    await waits.getByText('Its time has come. The ticks are behind.').waitFor()
    await waits.getByText('whoever runs the server').waitFor()
    other = { state: 'skipped', ended_at: until, why: { code: 'expired', gate: '', policy: '', in_the_way: [], text: 'it had not started in time (expires_after)' } }
    await page.reload()
    await page.getByText('It was skipped: it had not started in time (expires_after).').waitFor()
    assert.equal(await page.locator('.in-the-way').count(), 0, 'nothing was in its way')
    assert.deepEqual(v.errors, [])
    assert.deepEqual(await v.violations(), [])
  } finally {
    await v.end()
    await server.stop()
  }
})

test('a job of every second stays in what comes next while answers are old, and nothing is called well without a server', async () => {
  const server = await Server.start()
  await server.put('second', { schedule: { every: '1s' }, target: exec('true'), ...once })
  await server.put('afterwards', { schedule: { every: '48h' }, target: exec('true') })
  const v = await Visit.to(undefined)
  const next = v.page.getByRole('region', { name: 'Next' })
  try {
    await v.page.clock.install()
    await v.page.goto(server.console)
    await next.getByRole('link', { name: 'second', exact: true }).waitFor()
    await v.page.locator('.health').waitFor()
    await server.kill()
    await v.ask()
    await v.page.getByText('No answer for').waitFor()
    assert.equal(await v.page.locator('.health').count(), 0, 'checks of a server that does not answer')
    await v.page.clock.fastForward(20_000) // beyond all fires that it had told
    await v.page.getByText(/No answer for [2-9]\d s|No answer for \d+ m/).waitFor()
    await next.getByRole('link', { name: 'second', exact: true }).waitFor()
  } finally {
    await v.end()
    await server.stop()
  }
})
