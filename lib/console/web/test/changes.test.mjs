// What changes, as the server tells it: one stream for all tabs of a browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { close, exec, once, open, patience, Server } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
  for (const job of ['first', 'second']) await server.put(job, { target: exec('true'), ...once })
})
after(async () => {
  await server.stop()
  await close()
})

/** browser is a browser of its own, and which streams it has open. */
async function browser(deaf = false) {
  const context = await (await open()).newContext({ viewport: { width: 1280, height: 800 } })
  // Nobody asks by the clock: what is seen was told.
  if (deaf) await context.addInitScript(() => {
    const real = window.setTimeout
    window.setTimeout = (f, ms, ...rest) => real(f, ms > 1500 ? 3_600_000 : ms, ...rest)
  })
  const streams = new Map() // to the tab
  const asked = []
  context.on('request', (r) => (r.url().endsWith('/v1/changes') ? streams.set(r, r.frame().page()) : asked.push(r.url())))
  for (const end of ['requestfinished', 'requestfailed']) context.on(end, (r) => streams.delete(r))
  const tab = async (at) => {
    const page = await context.newPage()
    page.setDefaultTimeout(patience)
    await page.goto(server.console + at)
    return page
  }
  return { context, streams, asked, tab }
}

const live = (page) => page.locator('.link', { hasText: /^live$/ }).waitFor()

test('eight tabs share one stream, all of them change by a hint, and another one follows it when its tab is closed', async () => {
  const b = await browser(true)
  const tabs = []
  for (let i = 0; i < 8; i++) tabs.push(await b.tab(i % 2 ? '/jobs' : '/jobs/first'))
  for (const page of tabs) await live(page)
  assert.equal(b.streams.size, 1, 'more than one tab has a stream')
  await server.call('POST', '/v1/jobs/first/pause', { reason: 'a hint' })
  for (const page of tabs) await page.getByText('a hint').first().waitFor()

  const leader = [...b.streams.values()][0]
  const gone = tabs.indexOf(leader)
  assert.ok(gone >= 0)
  await leader.close()
  tabs.splice(gone, 1)
  for (const end = Date.now() + patience; [...b.streams.values()].filter((page) => !page.isClosed()).length !== 1; ) {
    assert.ok(Date.now() < end, 'no other tab follows the stream')
    await tabs[0].evaluate(() => 0)
  }
  await server.call('POST', '/v1/jobs/first/resume', {})
  for (const page of tabs) await page.getByText('a hint').first().waitFor({ state: 'detached' })
  await b.context.close()
})

test('a server that starts again is followed again, and what it does meanwhile is seen', async () => {
  const b = await browser()
  const page = await b.tab('/jobs/second')
  await live(page)
  await server.kill()
  await page.locator('.link', { hasText: 'No answer' }).waitFor()
  await server.again()
  await live(page)
  const { id } = await server.trigger('second')
  await page.locator(`a[href$="${encodeURIComponent(id)}"]`).first().waitFor({ state: 'attached' })
  await b.context.close()
})

test('a tab that is hidden follows nothing, and one that has no locks asks by the clock', async () => {
  const b = await browser()
  const page = await b.tab('/jobs')
  await live(page)
  const show = (hidden) => page.evaluate((hidden) => (Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true }), document.dispatchEvent(new Event('visibilitychange'))), hidden)
  await show(true)
  for (const end = Date.now() + patience; b.streams.size; ) {
    assert.ok(Date.now() < end, 'it follows on')
    await page.evaluate(() => 0)
  }
  await show(false)
  await live(page)
  assert.equal(b.streams.size, 1)
  await b.context.close()

  const plain = await browser()
  await plain.context.addInitScript(() => delete Navigator.prototype.locks) // as over plain HTTP from another machine
  const alone = await plain.tab('/jobs')
  await alone.locator('.link', { hasText: 'every 2 s' }).waitFor()
  assert.equal(plain.streams.size, 0)
  await plain.context.close()
})

test('where the server has no stream, or too many follow it, pages ask by the clock and say how often', async () => {
  for (const [status, code, says] of [[404, 'no_such_path', 'every 10 s'], [429, 'rate_limited', 'every 2 s'], [503, 'stopping', 'every 2 s']]) {
    const b = await browser()
    let asked = 0
    await b.context.route('**/v1/changes', (route) => (asked++, route.fulfill({ status, contentType: 'application/problem+json', headers: { 'Retry-After': '45' }, body: JSON.stringify({ title: 'No', status, code, detail: 'No stream.' }) })))
    const page = await b.tab('/jobs')
    await page.locator('.link', { hasText: says }).waitFor()
    await page.getByRole('link', { name: 'first', exact: true }).waitFor()
    assert.equal(asked, 1)
    await b.context.close()
  }
})
