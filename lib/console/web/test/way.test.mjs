// The way of one run on the page of retries: its events are those that belfry simulate has of the same scenario.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, clean, close, done, Server, Visit } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
})
after(async () => {
  await server.stop()
  await close()
})

/** printed is the run of a page's way as belfry simulate prints it, by the command that the page has for a terminal. */
async function printed(page) {
  const command = await page.locator('section[aria-labelledby=way] .cli code').textContent()
  assert.ok(command.startsWith('belfry simulate - <<'), command)
  const { stdout } = await promisify(execFile)('sh', ['-c', command.replace('belfry simulate -', `${belfry} simulate --output json -`)])
  const { runs } = JSON.parse(stdout)
  assert.equal(runs.length, 1)
  return runs[0]
}

const listed = (page) => page.locator('.events li').evaluateAll((all) => all.map((e) => [e.querySelector('code').textContent, Date.parse(e.querySelector('time').dateTime)]))
const current = (page) => page.locator('.events li').evaluateAll((all) => all.flatMap((e, i) => (e.getAttribute('aria-current') === 'step' ? [i + 1] : [])))
const count = (run, event) => run.events.filter((e) => e.event === event).length
const policy = { max_attempts: '4', initial: '10s', factor: '10', max: '1h', duration: '1s' }
const at = (query) => server.console + '/tools/retry?' + new URLSearchParams({ ...policy, ...query })
const ready = (page) => page.locator('.events li').first().waitFor()

test('the events of a way are those of belfry simulate, and a policy of N attempts has N and a dead letter', async () => {
  for (const [query, tried, end] of [
    [{}, 4, 'dead'],
    [{ max_attempts: '1' }, 1, 'dead'],
    [{ target: 'succeeds', attempt: '3' }, 3, 'succeeded'],
    [{ target: 'times_out', duration: '200ms' }, 4, 'dead'],
    [{ target: 'dies', duration: '45s' }, 3, 'dead'], // a run that has killed three workers is dead
    [{ target: 'dies_once', attempt: '2' }, 5, 'dead'], // one that died is no attempt of the policy
  ]) {
    const v = await Visit.to(at(query))
    const { page } = v
    await ready(page)
    const run = await printed(page)
    const what = JSON.stringify(query)
    assert.deepEqual(await listed(page), run.events.map((e) => [e.event, Date.parse(e.at)]), what)
    assert.equal(run.state, end, what)
    // Each wait is the longest, as the page says: where each attempt fails it gives up when the bands have it at the latest.
    if (!query.target) {
      const { gives_up } = await server.call('GET', '/v1/plan/retry?' + new URLSearchParams({ ...policy, ...query }))
      assert.equal(Date.parse(run.events.find((e) => e.event === end).at) - Date.parse(run.nominal_time), Math.round(gives_up.most * 1000), what)
    }
    if (query.target === 'times_out') await page.getByText('the timeout is 1 s.').waitFor() // as an attempt takes less than a timeout may be
    await page.getByText('Each wait is the longest that its jitter may draw').waitFor()
    assert.equal(count(run, 'running'), tried, what)
    assert.equal(count(run, 'dead'), end === 'dead' ? 1 : 0, what)
    assert.equal(await page.locator('.events li', { hasText: 'The run is a dead letter' }).count(), end === 'dead' ? 1 : 0, what)
    // At its end it stands where it ended.
    await page.getByRole('slider', { name: 'Time' }).press('End')
    await page.locator(`.map .here.of-${end}`).first().waitFor({ state: 'attached' })
    await done(v)
  }
})

test('a way says what becomes of message and timer, and is accessible in both widths', async () => {
  const v = await Visit.to(at({ at: '9.5' }))
  const { page } = v
  await ready(page)
  assert.deepEqual(await current(page), [9])
  // A short wait is one of the message; a long one is a timer's, which sends another message.
  for (const said of ['Attempt 1 failed: no answer. The next one is due in 20 s.', 'nobody can take it for 20 s.', 'The wait is long: the message is deleted, and a timer waits.', 'The timer of the wait fires: a new message goes to the queue, ready at once.']) assert.equal(await page.locator('.events li', { hasText: said }).count(), 1, said)
  for (const width of [1280, 390])
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await clean(v)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px`)
      assert.equal(await page.locator('.map').evaluateAll((all) => all.filter((m) => m.checkVisibility()).length), 1)
    }
  await done(v)
})

test('a way plays, steps and goes by the keyboard, and stands in the address', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(at({}))
  await ready(page)
  const run = await printed(page)
  const all = run.events.length
  const slider = page.getByRole('slider', { name: 'Time' })
  const happened = async () => Number(/event (\d+) of/.exec(await page.locator('.played .bar').textContent())[1])
  const token = () => page.locator('.map.wide .token').evaluate((e) => e.style.transform)
  assert.equal(await happened(), 0)
  assert.equal(await slider.getAttribute('aria-valuetext'), 'nothing has happened yet')
  const begins = await token()
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000))
  await page.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await page.clock.runFor(3000)
  const some = await happened()
  assert.ok(some > 2 && some < all, String(some))
  assert.notEqual(await token(), begins)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.waitForFunction((n) => Math.floor(Number(new URLSearchParams(location.search).get('at'))) === n, some)
  const stays = await token()
  await page.clock.runFor(3000)
  assert.equal(await token(), stays)
  await page.getByRole('button', { name: 'Step', exact: true }).click()
  assert.equal(await happened(), some + 1)
  assert.deepEqual(await current(page), [some + 1])
  await page.getByRole('button', { name: 'Step back' }).click()
  assert.equal(await happened(), some)
  await slider.focus()
  for (const [key, n] of [['Home', 0], ['ArrowRight', 1], ['ArrowRight', 2], ['ArrowUp', 3], ['ArrowLeft', 2], ['PageUp', 1], ['ArrowLeft', 0], ['End', all], ['ArrowLeft', all - 1], ['ArrowDown', all - 2]]) {
    await page.keyboard.press(key)
    assert.equal(await happened(), n, key)
  }
  // The event of a time in the list leads there, and what the clock shows is the time of the event.
  await page.locator('.events li button').nth(4).click()
  assert.equal(await happened(), 5)
  await page.locator('.played .instant', { hasText: '1 s after it was due: Attempt 1 failed' }).waitFor()
  // Faster, to its end, where it stops.
  await page.getByRole('combobox', { name: 'Speed' }).selectOption('20')
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(30_000)
  assert.equal(await happened(), all)
  await page.getByRole('button', { name: 'Play' }).waitFor()
  // Whoever wants less motion gets a twelfth a second, and nothing glides.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(1100)
  assert.equal(await happened(), Math.ceil(all / 12) + 1)
  assert.equal(await page.locator('.map .glides').count(), 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  const n = await happened()
  await page.clock.resume()
  await page.waitForFunction((n) => new URLSearchParams(location.search).get('at') === String(n), n)
  const shared = page.url()
  await page.goto(server.console + '/tools')
  await page.goto(shared)
  await ready(page)
  assert.equal(await happened(), n)
  await done(v)
})

test('an odd address leads to a place of the way that there is, and to a speed of the list', async () => {
  for (const [place, happened] of [['1.5', 1], ['-7', 0], ['soon', 0], ['1e9', Infinity]]) {
    const v = await Visit.to(at({ at: place, speed: '-3' }))
    const { page } = v
    await ready(page)
    const all = (await printed(page)).events.length
    const says = async () => Number(/event (\d+) of/.exec(await page.locator('.played .bar').textContent())[1])
    assert.equal(await says(), Math.min(happened, all), place)
    assert.equal(await page.getByRole('combobox', { name: 'Speed' }).inputValue(), '1')
    const from = happened < all ? happened : 0 // at its end it plays from the beginning
    await page.getByRole('button', { name: 'Play' }).click()
    await page.waitForFunction((n) => Number(/event (\d+) of/.exec(document.querySelector('.played .bar').textContent)[1]) > n, from + 1)
    await v.end()
  }
})

test('a way of a hundred attempts has them all; a newer question ends the older one; what is wrong is told', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  let release
  const held = new Promise((resolve) => (release = resolve))
  const asked = []
  await page.route('**/v1/simulate', async (route) => {
    const most = route.request().postDataJSON().jobs.job.retry.max_attempts
    asked.push(most)
    if (most === 99) await held
    await route.continue().catch(() => {}) // of a request that the page has ended
  })
  const began = page.waitForRequest((r) => r.url().endsWith('/v1/simulate'))
  const ended = page.waitForEvent('requestfailed', (r) => r.url().endsWith('/v1/simulate'))
  await page.goto(at({ max_attempts: '99', max: '1m' }))
  await began
  await page.getByRole('textbox', { name: 'Attempts' }).fill('100')
  await ended
  await ready(page)
  release()
  assert.deepEqual(asked, [99, 100])
  const run = await printed(page)
  assert.equal(count(run, 'running'), 100)
  assert.equal(await page.locator('.events li').count(), run.events.length)
  // An attempt that the policy has not.
  await page.getByRole('combobox', { name: 'What the target does' }).selectOption('succeeds')
  await page.locator('.events li', { hasText: 'Attempt 3 succeeds.' }).waitFor()
  await page.getByRole('textbox', { name: 'Which attempt' }).fill('101')
  await page.getByRole('alert').filter({ hasText: 'attempt must be from 1 to 100' }).waitFor()
  await page.getByRole('textbox', { name: 'Which attempt' }).fill('100')
  await page.locator('.events li', { hasText: 'Attempt 100 succeeds.' }).waitFor()
  // A server that has too much to do is asked again, and one that simulates nothing says so.
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  let busy = 1
  await page.route('**/v1/simulate', (route) => (busy-- > 0 ? route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Too Many Requests', status: 429, code: 'busy', detail: 'Another simulation is being played.' }) }) : route.continue()))
  await page.getByRole('textbox', { name: 'Which attempt' }).fill('2')
  await page.locator('.events li', { hasText: 'Attempt 2 succeeds.' }).waitFor()
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.route('**/v1/plan/retry*', (route) => route.fulfill({ status: 404, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Not Found', status: 404, code: 'no_such_path', detail: 'There is nothing here.' }) }))
  await page.goto(at({}))
  await page.getByText('This server makes no plans.').waitFor()
  assert.equal(await page.getByText('The way of one run').count(), 0)
  await v.end()
})
