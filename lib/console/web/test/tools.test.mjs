// The tools: their numbers are those of the API, and of the command line for the same input; their address has all that they are asked.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, clean, close, deep, done, Server, Visit } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
})
after(async () => {
  await server.stop()
  await close()
})

/** cli is what a command of belfry prints as JSON. */
const cli = async (...args) => JSON.parse((await promisify(execFile)(belfry, [...args, '--output', 'json'])).stdout)
const texts = (locator) => locator.evaluateAll((all) => all.map((e) => e.textContent.trim()))

test('a cron expression: words, fields, fires and other schedulers are those of the API and of the command line', async () => {
  const query = { expr: '30 2 13 * 1-5', timezone: 'Europe/Berlin' }
  const [api, printed] = await Promise.all([
    server.call('GET', '/v1/cron?' + new URLSearchParams({ ...query, from: '2027-03-25T23:00:00Z', count: 10 })),
    cli('cron', 'next', query.expr, '--timezone', query.timezone, '--from', '2027-03-25T23:00:00Z', '-n', '10'),
  ])
  for (const same of ['description', 'fires', 'fields', 'elsewhere']) assert.deepEqual(api[same], printed[same], same)
  const v = await Visit.to(server.console + '/tools/cron?' + new URLSearchParams({ ...query, from: '2027-03-26T00:00:00' }))
  const { page } = v
  await page.getByText(api.description).waitFor()
  assert.deepEqual(await page.locator('.fires time').evaluateAll((all) => all.map((e) => e.dateTime)), api.fires.map((f) => f.at))
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-fields] tbody td:last-child')), api.fields.map((f) => f.means))
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-elsewhere] code')), api.elsewhere.flatMap((e) => e.expressions))
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-elsewhere] .fine')), api.elsewhere.flatMap((e) => e.notes))
  // The caret goes by the keyboard, and the field below it is explained.
  const input = page.getByLabel('Expression')
  await input.focus()
  await page.keyboard.press('Home')
  await page.locator('.said-of', { hasText: 'minute 30: at minute 30' }).waitFor()
  await page.keyboard.press('End')
  await page.locator('.said-of', { hasText: 'day-of-week 1-5: on Monday to Friday' }).waitFor()
  // What is typed stands in the address, and a wrong field is named.
  await input.fill('30 2 * * fri-mon')
  await page.locator('.refused', { hasText: 'a range that runs upwards' }).waitFor()
  assert.match(v.errors.splice(0).join(), /^[^,]* status of 422 [^,]*$/)
  await input.fill('30 2 28 3 *')
  await page.locator('.fires .mark', { hasText: 'there is no 02:30 that day' }).first().waitFor()
  assert.equal(new URL(page.url()).searchParams.get('expr'), '30 2 28 3 *')
  // One that is emptied stays so until it is left, and the usual is shown.
  await input.press('Control+a')
  await input.press('Backspace')
  await page.getByText('At 09:30').waitFor()
  assert.equal(await input.inputValue(), '')
  await input.pressSequentially('30 2 28 3 *')
  await page.locator('.fires .mark').first().waitFor()
  await page.reload()
  await page.locator('.fires .mark').first().waitFor()
  assert.equal(await input.inputValue(), '30 2 28 3 *')
  await page.getByRole('link', { name: 'Make a job of it' }).click()
  await page.getByRole('heading', { name: 'New job' }).waitFor()
  await page.waitForFunction(() => [...document.querySelectorAll('input, textarea')].some((e) => e.value.includes('30 2 28 3 *')))
  await page.waitForFunction(() => [...document.querySelectorAll('input, textarea')].some((e) => e.value.includes('Europe/Berlin')))
  await done(v)
})

test('keys that are typed quickly are one question, 150 ms after the last, and an answer that comes too late is not shown', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  const asked = []
  let release
  const held = new Promise((resolve) => (release = resolve))
  await page.route('**/v1/cron?*', async (route) => {
    const expr = new URL(route.request().url()).searchParams.get('expr')
    asked.push(expr)
    if (expr === '1 1 * * *') await held
    await route.continue().catch(() => {}) // of a request that the page has ended
  })
  await page.goto(server.console + '/tools/cron')
  await page.locator('.fires li').first().waitFor()
  const input = page.getByLabel('Expression')
  const ended = page.waitForEvent('requestfailed', (r) => r.url().includes('expr=1+1'))
  const began = page.waitForRequest((r) => r.url().includes('expr=1+1'))
  await input.evaluate((e) => {
    for (const value of ['1 * * * *', '1 1 * * *']) {
      e.value = value
      e.dispatchEvent(new Event('input', { bubbles: true }))
    }
  })
  await began
  await input.fill('2 2 * * *')
  await ended
  await page.getByText('At 02:02').waitFor()
  release()
  assert.deepEqual(asked, ['30 9 * * 1-5', '1 1 * * *', '2 2 * * *'])
  await done(v)
})

test('a retry policy: bands, when it gives up and the crowd are those of the API and of the command line', async () => {
  const query = { max_attempts: '6', initial: '2s', max: '1m', duration: '3s', clients: '500', seed: '9' }
  const [api, printed] = await Promise.all([
    server.call('GET', '/v1/plan/retry?' + new URLSearchParams(query)),
    cli('plan', 'retry', '--attempts', '6', '--initial', '2s', '--max', '1m', '--duration', '3s', '--clients', '500', '--seed', '9'),
  ])
  assert.deepEqual(api, printed)
  const v = await Visit.to(server.console + '/tools/retry?' + new URLSearchParams(query))
  const { page } = v
  await page.getByText('It tries 6 times and gives up after').waitFor()
  assert.equal(await page.locator('.bands .band').count(), 7) // and one for when it gives up
  assert.equal(await page.locator('.bands .lasts').count(), 6)
  await page.getByText('As a table').first().click()
  const rows = await texts(page.getByRole('region', { name: 'When attempts begin' }).locator('tbody td:last-child'))
  assert.deepEqual(rows, [...api.attempts.map((a) => a.peak.toLocaleString('en')), ''])
  // The tallest bar is the worst tenth of a second that the headline tells.
  await page.getByText(`in the worst one ${api.peak.with_jitter} with jitter, ${api.peak.without_jitter} without`).waitFor()
  for (const look of ['with_jitter', 'without_jitter']) {
    assert.equal(await page.locator(`.crowd.${look} rect`).count(), api.crowd.filter((b) => b[look]).length)
    const tallest = await page.locator(`.crowd.${look} rect`).evaluateAll((all) => Math.max(...all.map((r) => Number(r.getAttribute('height')))))
    assert.ok(Math.abs(tallest - (60 * api.peak[look]) / api.peak.without_jitter) < 1e-6, `${look}: ${tallest}`)
    await page.getByRole('img', { name: `at most ${api.peak[look]} try again within a tenth of a second` }).first().waitFor()
  }
  // One axis for both, and labels that do not meet, in a narrow window too.
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 })
    const places = await page.locator('.times').evaluateAll((all) => all.map((a) => [...a.children].filter((s) => s.checkVisibility()).map((s) => [s.textContent, s.getBoundingClientRect().left, s.getBoundingClientRect().right])))
    assert.deepEqual(places[0], places[1])
    const sorted = places[0].toSorted((a, b) => a[1] - b[1])
    assert.ok(sorted.length >= 3, String(sorted)) // 0 and two more
    sorted.reduce((a, b) => (assert.ok(a[2] < b[1], `${width} px: ${a} meets ${b}`), b))
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  // By the keyboard alone, and what is typed is in the address. One that is emptied stays so until it is left, and stands for the usual.
  const attempts = page.getByRole('textbox', { name: 'Attempts' })
  await attempts.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('Backspace')
  await page.getByText('It tries 15 times').waitFor()
  assert.equal(await attempts.inputValue(), '')
  await page.keyboard.press('Tab')
  assert.equal(await attempts.inputValue(), '15')
  await attempts.focus()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Backspace')
  await page.keyboard.type('1')
  await page.getByText('It tries once').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('max_attempts'), '1')
  await page.keyboard.type('01')
  await page.locator('.refused', { hasText: 'max_attempts' }).waitFor()
  assert.match(v.errors.splice(0).join(), /^[^,]* status of 400 [^,]*$/)
  await done(v)
})

test('a retry policy without jitter says so, its longest wait follows the shortest, and one that is typed stays', async () => {
  const v = await Visit.to(server.console + '/tools/retry?initial=2h&max_attempts=4')
  const { page } = v
  await page.getByText('It tries 4 times and gives up after 6 h.').waitFor()
  await page.getByText('10,000: this policy has no jitter').waitFor()
  assert.equal(await page.locator('.crowd').count(), 1)
  const longest = page.getByRole('textbox', { name: 'Longest wait' })
  assert.equal(await longest.inputValue(), '')
  assert.equal(await longest.getAttribute('placeholder'), '2h')
  await longest.fill('1h')
  await page.locator('.refused', { hasText: 'max' }).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('max'), '1h')
  v.errors.splice(0)
  await longest.fill('3h')
  await page.locator('.crowd.with_jitter').waitFor()
  // An address that changes otherwise is shown, though the field has the focus.
  await page.evaluate(() => {
    history.replaceState(null, '', location.pathname + '?initial=2h&max=4h')
    dispatchEvent(new PopStateEvent('popstate'))
  })
  await page.waitForFunction(() => document.activeElement?.value === '4h')
  await done(v)
})

test('a plan is asked for again when another one of the tenant was being made', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  let asked = 0
  await page.route('**/v1/plan/retry*', (route) =>
    asked++ ? route.continue() : route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Too Many Requests', status: 429, code: 'busy', detail: 'Another plan is being made for you.' }) }))
  await page.goto(server.console + '/tools/retry')
  await page.locator('.bands .band').first().waitFor()
  assert.equal(asked, 2)
  await v.end()
})

test('a server that makes no plans says so', async () => {
  const v = await Visit.to(undefined)
  await v.page.route('**/v1/plan/retry*', (route) =>
    route.fulfill({ status: 404, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Not Found', status: 404, code: 'not_found', detail: 'There is nothing here.' }) }))
  await v.page.goto(server.console + '/tools/retry')
  await v.page.getByText('This server makes no plans.').waitFor()
  await v.end()
})

deep('each tool is there by the menu, and by the list of all', async () => {
  const v = await Visit.to(server.console)
  await v.page.getByRole('link', { name: 'Tools', exact: true }).click()
  await v.page.getByRole('main').getByRole('link', { name: 'Cron' }).click()
  await v.page.locator('.fires li').first().waitFor()
  await v.page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Retries' }).click()
  await v.page.locator('.bands .band').first().waitFor()
  await clean(v)
  await done(v)
})
