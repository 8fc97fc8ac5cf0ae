import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { close, exec, once, Server, Visit } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
  for (const from of [0, 1000]) {
    const jobs = Array.from({ length: 1000 }, (_, i) => ({
      name: `job-${String(from + i).padStart(4, '0')}`, target: exec('true'), schedule: { cron: '30 9 1 1 *', timezone: 'Europe/Berlin' }, labels: { team: i % 2 ? 'odd' : 'even' }, ...once,
    }))
    await server.call('POST', '/v1/jobs/batch', { jobs })
  }
  // They wait for a time that does not come here: to start so many processes would take longer than all that is looked at.
  for (let i = 0; i < 10; i++) await server.call('POST', '/v1/runs/batch', { runs: Array.from({ length: 1000 }, (_, n) => ({ job: `job-000${n % 10}`, delay: `${100 + i}h` })) })
  const { id } = await server.trigger('job-0000')
  await server.until(id, 'succeeded')
})
after(async () => {
  await server.stop()
  await close()
})

const elements = (page) => page.evaluate(() => document.querySelectorAll('*').length)

test('10,000 runs are a list of at most 400 elements, to its end', async (t) => {
  const v = await Visit.to(undefined)
  const began = performance.now()
  await v.page.goto(server.console + '/runs?state=scheduled')
  const grid = v.page.getByRole('grid', { name: 'Runs' })
  await grid.waitFor()
  const first = performance.now()
  let most = 0
  const box = await grid.boundingBox()
  await v.page.mouse.move(box.x + 200, box.y + 200)
  for (let known = 0; known < 10_000; ) {
    most = Math.max(most, await elements(v.page))
    await grid.evaluate((e) => (e.scrollTop = e.scrollHeight))
    await v.page.waitForFunction((n) => Math.round(document.querySelector('.rows').clientHeight / 32) > n, known)
    known = await v.page.evaluate(() => Math.round(document.querySelector('.rows').clientHeight / 32))
  }
  const all = performance.now()
  most = Math.max(most, await elements(v.page))
  t.diagnostic(`first rows after ${Math.round(first - began)} ms, the last of 10,000 after ${Math.round(all - first)} ms more; ${most} elements at most`)
  assert.ok(most <= 400, `${most} elements`)
  assert.match(await v.page.locator('.count').innerText(), /10,\d\d\d/)
  assert.deepEqual(v.errors, [])
  await v.end()
})

test('2,000 jobs are a list of at most 400 elements, to its end', async () => {
  const v = await Visit.to(server.console + '/jobs')
  const grid = v.page.getByRole('grid', { name: 'Jobs' })
  await grid.waitFor()
  let most = 0
  while (!(await grid.getByRole('link', { name: 'job-1999', exact: true }).count())) {
    most = Math.max(most, await elements(v.page))
    await grid.evaluate((e) => (e.scrollTop = e.scrollHeight))
    await v.page.evaluate(() => new Promise(requestAnimationFrame))
  }
  await v.landed()
  most = Math.max(most, await elements(v.page))
  assert.ok(most <= 400, `${most} elements`)
  assert.deepEqual(v.errors, [])
  await v.end()
})

test('filters are in the URL, and survive a reload and the way back', async () => {
  const v = await Visit.to(server.console + '/runs')
  const { page } = v
  await page.getByRole('grid', { name: 'Runs' }).waitFor()
  // What waits for its time is left out until it is asked for.
  assert.equal(await page.locator('.rows [role=row]').count(), 1)
  await page.getByLabel('Job', { exact: true }).fill('job-0000')
  await page.waitForURL('**/runs?job=job-0000')
  await page.getByRole('checkbox', { name: 'scheduled' }).check({ force: true })
  await page.waitForURL('**/runs?job=job-0000&state=scheduled')
  await page.waitForFunction(() => document.querySelectorAll('.rows [role=row]').length > 1)
  await page.getByRole('checkbox', { name: 'succeeded' }).check({ force: true })
  await page.getByRole('checkbox', { name: 'scheduled' }).uncheck({ force: true })
  await page.waitForURL('**/runs?job=job-0000&state=succeeded')
  const only = async () => {
    await page.waitForFunction(() => document.querySelectorAll('.rows [role=row]').length === 1)
    assert.match(await page.locator('.rows [role=row]').innerText(), /succeeded\s+job-0000~/)
  }
  await only()
  await page.reload()
  await only()
  assert.equal(await page.getByLabel('Job', { exact: true }).inputValue(), 'job-0000')
  assert.ok(await page.getByRole('checkbox', { name: 'succeeded' }).isChecked())
  await page.locator('.rows a').click()
  await page.waitForURL('**/runs/job-0000~*')
  await page.goBack()
  await only()
  await page.goBack()
  await page.goBack()
  assert.ok(page.url().endsWith('/runs?job=job-0000&state=scheduled'), page.url())
  await page.waitForFunction(() => document.querySelectorAll('.rows [role=row]').length > 1)
  await page.goForward()
  await page.goForward()
  await only()
  assert.deepEqual(v.errors, [])
  await v.end()
})

test('new rows wait while somebody points at the list', async () => {
  const v = await Visit.to(server.console + '/runs?state=succeeded')
  const { page } = v
  const rows = page.locator('.rows [role=row]')
  await rows.first().waitFor()
  const before = await rows.count()
  await rows.first().hover()
  const { id } = await server.trigger('job-0001')
  await server.until(id, 'succeeded')
  await page.getByRole('button', { name: /^\d+ new$/ }).waitFor()
  assert.equal(await rows.count(), before)
  await page.getByRole('button', { name: /^\d+ new$/ }).click()
  await page.getByRole('link', { name: id }).waitFor()
  await v.end()
})

test('a page that nobody sees asks for nothing', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(server.console + '/runs?state=succeeded')
  await page.locator('.rows [role=row]').first().waitFor()
  const hide = (hidden) =>
    page.evaluate((is) => {
      Object.defineProperty(document, 'hidden', { value: is, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, hidden)
  await v.landed()
  await hide(true)
  v.requests.length = 0
  await page.clock.runFor(60_000)
  assert.deepEqual(v.requests, [])
  await hide(false)
  await page.waitForResponse((r) => r.url().includes('/v1/runs'))
  await v.end()
})
