// The palette, and the reference of the API.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { act, close, done, exec, once, Server, Visit } from './harness.mjs'

let server, run
before(async () => {
  server = await Server.start()
  for (const job of ['daily-report', 'weekly-report', 'clean-up', '0-first']) await server.put(job, { target: exec('true'), ...once })
  run = (await server.trigger('clean-up')).id
})
after(async () => {
  await server.stop()
  await close()
})

const field = (page) => page.getByRole('combobox', { name: 'Job, run ID, page or act' })
const option = (page, name) => page.getByRole('option', { name })

test('by keys alone the palette leads to a job by a part of its name, to a run by its ID, to a page, and does what the page can do', async () => {
  const v = await act(server.console + '/jobs')
  const { page } = v
  await page.getByRole('link', { name: 'clean-up', exact: true }).waitFor()
  const asked = (word) => page.waitForResponse((r) => r.url().includes('contains=' + word))
  await page.keyboard.press('Control+k')
  await field(page).waitFor()
  const answer = asked('REPORT')
  await page.keyboard.type('REPORT')
  await answer
  await option(page, 'daily-report').waitFor()
  assert.equal(await page.locator('[role=option]').count(), 2)
  await page.keyboard.press('ArrowDown')
  const active = await field(page).getAttribute('aria-activedescendant')
  assert.match(await page.locator(`[id="${active}"]`).innerText(), /weekly-report/)
  assert.equal(await page.locator(`[id="${active}"]`).getAttribute('aria-selected'), 'true')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Job weekly-report' }).waitFor()

  await page.getByRole('button', { name: 'Trigger…' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('pause')
  await option(page, /^Pause/).waitFor()
  await page.keyboard.press('Enter')
  await v.told('paused')
  assert.equal(v.sent.length, 1)
  assert.ok((await server.call('GET', '/v1/jobs/weekly-report')).paused)

  // What leads on is a link on the page, and New job and Import are there on each.
  await page.keyboard.press('Control+k')
  await page.keyboard.type('edit')
  await option(page, /^Edit/).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/jobs\/weekly-report\/edit$/)
  for (const [name, path] of [['import', /\/import$/], ['new job', /\/new$/]]) {
    await page.keyboard.press('Control+k')
    await page.keyboard.type(name)
    await option(page, new RegExp(name, 'i')).first().waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(path)
  }

  await page.keyboard.press('Control+k')
  await field(page).fill(run)
  await option(page, run).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => decodeURIComponent(url.pathname).endsWith('/runs/' + run))

  await page.keyboard.press('Control+k')
  await page.keyboard.type('queu')
  await option(page, /Queues/).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/queues$/)
  await done(v)
})

test('where there are more jobs than the palette looks through it says so, and leads to the list, which looks further', async () => {
  const v = await Visit.to(server.console + '/settings')
  const { page } = v
  await page.route(/\/v1\/jobs\?contains=far/, (route) => route.fulfill({ json: { items: [], next: 'x' } }))
  await page.getByRole('button', { name: 'Find' }).click()
  await field(page).fill('far')
  await page.getByText('Looked among the first 5,000 jobs by name.').waitFor()
  await option(page, /All jobs with far in the name/).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/jobs\?q=far$/)
  await page.getByText('No job of those that were looked at matches').waitFor()
  await page.unroute(/\/v1\/jobs\?contains=far/)
  await page.route(/\/v1\/jobs\?contains=far.*cursor=/, async (route) => route.fulfill({ json: { items: [await server.call('GET', '/v1/jobs/0-first')] } }))
  await page.getByRole('button', { name: 'Look further' }).click()
  await page.getByRole('link', { name: '0-first', exact: true }).waitFor()
  await done(v)
})

test('the palette opens by its button, ends by Escape, and is no single key', async () => {
  const v = await Visit.to(server.console + '/settings')
  const { page } = v
  await page.getByLabel('Single keys').uncheck()
  await page.getByRole('button', { name: 'Find' }).click()
  await field(page).waitFor()
  assert.ok(await field(page).evaluate((e) => e === document.activeElement))
  await page.keyboard.type('nothing-of-that-name')
  await page.getByText('Nothing is called so.').waitFor()
  await page.keyboard.press('Escape')
  await field(page).waitFor({ state: 'detached' })
  assert.ok(await page.getByRole('button', { name: 'Find' }).evaluate((e) => e === document.activeElement))
  await page.keyboard.press('Control+k')
  await field(page).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('k') // turned off
  assert.equal(await page.getByRole('dialog').count(), 0)
  await done(v)
})

test('the reference is that of the server: it is searched, linked to, and tried', async () => {
  const v = await Visit.to(server.address + '/docs')
  const { page } = v
  await page.getByRole('heading', { name: 'API', exact: true }).waitFor()
  assert.match(page.url(), /\/console\/docs$/)
  const { paths } = await server.call('GET', '/openapi.json')
  const ids = Object.values(paths).flatMap((of) => Object.values(of).map((op) => op.operationId))
  await page.getByText(`${ids.length} operations`).waitFor()
  for (const id of ids) assert.equal(await page.locator(`details[id="${id}"]`).count(), 1, id)
  assert.equal(await page.locator('.inside').count(), 0, 'what is folded is made')

  await page.getByLabel('Search').fill('dead-letters/redrive')
  await page.getByText(`1 of ${ids.length} operations`).waitFor()
  await page.locator('summary', { hasText: '/v1/dead-letters/redrive' }).click()
  await page.getByText('belfry dead-letter redrive RUN').waitFor()
  await page.getByText('/v1/dead-letters/redrive', { exact: false }).first().waitFor()
  assert.match(page.url(), /at=redrive/)

  await page.goto(server.console + '/docs?at=get-job')
  const opened = page.locator('details#get-job')
  await opened.getByText('Asks for the scope read').waitFor()
  await opened.getByText('belfry job get JOB').waitFor()
  await opened.getByRole('textbox', { name: 'job' }).fill('daily-report')
  await opened.getByRole('button', { name: 'Ask' }).click()
  await opened.getByRole('region', { name: 'Answer of get-job' }).getByText('daily-report').waitFor()
  await opened.getByRole('textbox', { name: 'job' }).fill('nobody')
  await opened.getByRole('button', { name: 'Ask' }).click()
  await opened.getByText('job_not_found').waitFor()
  assert.deepEqual(v.errors.filter((e) => !/status of 404/.test(e)), [])
  v.errors.length = 0
  await done(v)
})

test('each shape of the reference opens, whatever is in it', async () => {
  const v = await Visit.to(server.console + '/docs?q=workflow')
  const { page } = v
  await page.locator('.fold').first().waitFor()
  for (const shut of ['.fold:not([open]) > summary', '.nested:not([open]) > summary', '.nested:not([open]) > summary']) {
    await page.evaluate((shut) => (document.querySelectorAll(shut).forEach((summary) => summary.click()), new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))), shut)
  }
  assert.ok((await page.locator('.fields > li').count()) > 100)
  const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
  assert.equal(width[0], width[1])
  await done(v)
})
