// Days, weeks and definitions of a job: what the pages say is what the API counts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clean, close, come, deep, done, exec, fetched, once, Server, Visit } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
})
after(async () => {
  await server.stop()
  await close()
})

const sum = (runs = {}) => Object.values(runs).reduce((a, b) => a + b, 0)

test('the calendar of a job says what the API counts of each day, leads to its runs, and goes by keyboard', async () => {
  await server.put('sums', { schedule: { cron: '30 2 * * *', timezone: 'Europe/Berlin' }, target: exec('true') })
  await server.put('sums-bad', { target: exec('false'), ...once })
  for (let i = 0; i < 3; i++) await server.until((await server.trigger('sums')).id, 'succeeded')
  const v = await Visit.to(server.console + '/jobs/sums')
  const { page } = v
  const grid = page.getByRole('grid', { name: 'Runs of sums by day' })
  await grid.waitFor()
  const cells = await grid.locator('[data-at]').evaluateAll((all) => all.map((e) => ({ at: e.dataset.at, told: e.ariaLabel, href: e.getAttribute('href') })))
  assert.equal(cells.length, 371)
  const of = Object.fromEntries(cells.map((c) => [c.at, c]))
  const counted = await server.call('GET', `/v1/jobs/sums/calendar?from=${await first(page)}&to=${await last(page)}&timezone=Europe/Berlin`)
  assert.equal(counted.days.length, 371)
  counted.days.forEach((d, i) => {
    const { told, href } = of[`${i % 7} ${Math.floor(i / 7)}`]
    assert.ok(told.includes(` ${Number(d.date.slice(8))} `) && told.includes(d.date.slice(0, 4)), `${d.date} is told as ${told}`)
    if (sum(d.runs)) assert.match(told, new RegExp(`: ${sum(d.runs)} runs: ${d.runs.succeeded} succeeded`))
    assert.equal(/(\d+) fires? to come/.exec(told)?.[1] ?? '0', String(d.fires ?? 0), told)
    assert.equal(/hours, since the clock changes/.test(told), Date.parse(d.to) - Date.parse(d.from) !== 86_400_000, told)
    assert.equal(href !== null, sum(d.runs) > 0)
  })
  const today = grid.locator('.today')
  assert.match(await today.getAttribute('aria-label'), /today: 3 runs: 3 succeeded/)
  // One place for the tab key, and arrows to each cell.
  assert.equal(await grid.locator('[tabindex="0"]').count(), 1)
  await today.focus()
  await page.locator('.said-of', { hasText: 'today: 3 runs' }).waitFor()
  const at = () => page.evaluate(() => document.activeElement.dataset.at)
  const [row, column] = (await at()).split(' ').map(Number)
  await page.keyboard.press('ArrowLeft')
  assert.equal(await at(), `${row} ${column - 1}`)
  await page.keyboard.press('Home')
  assert.equal(await at(), `${row} 0`)
  await page.keyboard.press('ArrowUp')
  assert.equal(await at(), `${Math.max(0, row - 1)} 0`)
  await page.keyboard.press('End')
  assert.equal(await at(), `${Math.max(0, row - 1)} 52`)
  await today.focus()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/runs?job=sums&from=*')
  await page.waitForFunction(() => document.querySelectorAll('.rows [role=row]').length === 3)
  await done(v)
})

const first = (page) => page.evaluate(() => performance.getEntriesByType('resource').map((e) => new URL(e.name)).find((u) => u.pathname.endsWith('/calendar')).searchParams.get('from'))
const last = (page) => page.evaluate(() => performance.getEntriesByType('resource').map((e) => new URL(e.name)).find((u) => u.pathname.endsWith('/calendar')).searchParams.get('to'))

deep('days that were too much at once are counted when somebody asks for it', async () => {
  await server.put('full', { target: exec('true') })
  const v = await Visit.to(undefined)
  const { page } = v
  let asked = 0
  await page.route('**/v1/jobs/full/calendar?*', async (route) => {
    const answer = await fetched(route)
    const body = await answer.json()
    asked++
    // Each answer counts 30 days, of 10 runs each.
    const ends = body.days.findIndex((d) => Date.parse(d.to) > Date.now())
    const end = ends < 0 ? body.days.length : ends
    const begin = Math.max(0, end - 30)
    body.days.forEach((d, i) => i >= begin && i < end && (d.runs = { succeeded: 9, dead: 1 }))
    if (begin > 0) body.counted_from = body.days[begin].from
    await route.fulfill({ response: answer, json: body })
  })
  await page.goto(server.console + '/jobs/full')
  const red = page.locator('.heat.days .c-bad')
  await red.first().waitFor()
  assert.equal(await red.count(), 30)
  assert.match(await red.first().getAttribute('aria-label'), /: 10 runs: 9 succeeded, 1 dead$/)
  const before = await page.locator('.heat.days .c-not').count()
  assert.match(await page.locator('.heat.days .c-not').first().getAttribute('aria-label'), /: not counted$/)
  await page.getByRole('button', { name: 'Count further back' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.heat.days .c-bad').length === 60)
  assert.equal(await page.locator('.heat.days .c-not').count(), before - 30)
  assert.equal(asked, 2)
  await clean(v)
  await page.getByRole('button', { name: 'As a table' }).first().click()
  assert.equal(await page.getByRole('region', { name: 'Runs of full by day' }).locator('tbody tr').count(), 60)
  await done(v)
})

test('definitions that a job has had are compared, any two, by a link too', async () => {
  const job = (timeout, payload) => ({ target: exec('true'), timeout, payload })
  await server.put('changing', job('1m', 'A'))
  await server.put('changing', job('2m', 'A'))
  await server.call('PUT', '/v1/jobs/changing', { ...job('2m', 'B'), description: 'says <b>more</b>' })
  const { items } = await server.call('GET', '/v1/jobs/changing/generations')
  const v = await Visit.to(server.console + '/jobs/changing')
  const { page } = v
  const history = page.getByRole('region', { name: 'Changes of the definition' })
  const diff = history.getByRole('region', { name: 'How the two definitions differ' })
  await diff.waitFor()
  const lines = (sign) => diff.locator('.d-' + sign).allInnerTexts().then((all) => all.map((t) => t.replace(/\s+/g, ' ').trim()))
  assert.deepEqual(await lines('minus'), ['− removed: "payload": "A",'])
  assert.deepEqual(await lines('plus'), ['+ added: "description": "says <b>more</b>",', '+ added: "payload": "B",'])
  const rows = history.locator('tbody tr')
  assert.equal(await rows.count(), items.length)
  assert.match(await rows.nth(0).innerText(), /description, payload/)
  assert.match(await rows.nth(1).innerText(), /timeout/)
  await rows.nth(2).getByRole('radio', { name: /^old/ }).check()
  await page.waitForURL(`**/jobs/changing?was=${items[2].generation}&is=${items[0].generation}`)
  assert.deepEqual(await lines('minus'), ['− removed: "payload": "A",', '− removed: "timeout": "1m",'])
  await page.reload()
  await diff.waitFor()
  assert.equal((await lines('minus')).length, 2)
  await clean(v)
  await done(v)
})

test('the schedule says what the API counts of each hour, the peak, and leads to the minutes of an hour', async () => {
  for (let i = 0; i < 4; i++) await server.put('nine-' + i, { schedule: { cron: '0 9 * * *' }, target: exec('true') })
  await server.put('third', { schedule: { cron: '*/20 9 * * *' }, target: exec('true') })
  const v = await Visit.to(server.console + '/schedule')
  const { page } = v
  const grid = page.getByRole('grid', { name: 'Runs due by hour' })
  await grid.waitFor()
  const from = await page.evaluate(() => performance.getEntriesByType('resource').map((e) => new URL(e.name)).find((u) => u.pathname.endsWith('/schedule/load')).searchParams.get('from'))
  const load = await server.call('GET', `/v1/schedule/load?step=1h&from=${from}`)
  const told = await grid.locator('[data-at]').evaluateAll((all) => all.map((e) => e.ariaLabel))
  assert.equal(told.length, 168)
  load.fires.forEach((n, i) => assert.match(told[i], n ? new RegExp(`: ${n} runs? due$`) : /: nothing is due$/))
  assert.equal(load.peak.fires, 7)
  const facts = await page.locator('.sums').innerText()
  assert.match(facts, new RegExp(`${load.total} runs of ${load.jobs} jobs`))
  assert.match(facts, /09:00: 7 runs/)
  assert.match(facts, /00:00–/)
  await page.getByRole('link', { name: /09:00: 7 runs/ }).click()
  await page.waitForURL('**/schedule?at=*')
  const hour = page.getByRole('region', { name: /09:00 to 10:00 UTC/ })
  await hour.getByText('7 runs of 5 jobs; the busiest minute is 09:00, with 5.').waitFor()
  await clean(v)
  assert.deepEqual((await hour.getByRole('listitem').allInnerTexts()).map((t) => t.replace(/\s+/g, ' ')), ['third 3 runs', 'nine-0 1 run', 'nine-1 1 run', 'nine-2 1 run', 'nine-3 1 run'])
  await done(v)
})

test('what needs somebody is named on the overview, and each leads there', async () => {
  await server.put('gives-up', { target: exec('false'), ...once })
  await server.until((await server.trigger('gives-up')).id, 'failed', 'dead')
  const v = await Visit.to(undefined)
  const { page } = v
  await page.route('**/v1/jobs?*', async (route) => {
    const answer = await fetched(route)
    const body = await answer.json()
    for (const j of body.items) if (j.name.startsWith('nine-')) Object.assign(j, { paused: true, status: { ...j.status, updated_at: new Date(Date.now() - 8 * 86_400_000).toISOString() } })
    await route.fulfill({ response: answer, json: body })
  })
  await page.route('**/v1/queues', async (route) => {
    const answer = await fetched(route)
    const body = await answer.json()
    body.items[0].lacking = ['handler resize']
    await route.fulfill({ response: answer, json: body })
  })
  await page.goto(server.console + '/')
  const panel = page.getByRole('region', { name: 'Needs you' })
  await panel.getByRole('link', { name: /dead letter.*cause/ }).waitFor()
  await panel.getByRole('link', { name: /handler resize: no worker of default has it/ }).waitFor()
  await panel.getByRole('link', { name: /4 jobs paused for more than 7 days/ }).click()
  await page.waitForURL('**/jobs?paused=true')
  await done(v)
})

test('what has run and waited for longest is named on the overview, and of how many where that is not sure', async () => {
  await server.put('lasting', { target: exec('true') })
  const done = await server.until((await server.trigger('lasting')).id, 'succeeded')
  const v = await Visit.to(undefined)
  const { page } = v
  // The page's clock stands still, so that minutes are the same on a machine that takes minutes to show them.
  const now = Date.now()
  await page.clock.setFixedTime(now)
  const ago = (minutes) => new Date(now - minutes * 60_000).toISOString()
  const made = (n, state, due, begun) => ({ ...done, id: done.id.replace(/.$/, n), state, ended_at: undefined, nominal_time: ago(due), started_at: begun && ago(begun), attempts: begun ? [{ attempt: 1, started_at: ago(begun), outcome: '' }] : [] })
  const running = [[1, 'running', 90, 14], [4, 'running', 80, 1], [0, 'running', 15, 2], [5, 'running', 5, 5]]
  const waiting = [[3, 'waiting', 6], [2, 'queued', 3]]
  const asked = []
  await page.route(/\/v1\/runs\?.*sort=oldest/, async (route) => {
    const query = new URL(route.request().url()).searchParams
    asked.push(`${query.get('state')} ${query.get('limit')}`)
    await route.fulfill({ json: query.get('state') === 'running' ? { items: running.map((r) => made(...r)), next: 'more' } : { items: waiting.map((r) => made(...r)) } })
  })
  const told = async (name, ids, minutes) => {
    const panel = page.getByRole('region', { name })
    await panel.getByRole('listitem').nth(ids.length - 1).waitFor()
    const texts = async () => (await panel.getByRole('listitem').allInnerTexts()).map((t) => t.replace(/\s+/g, ' ').replace(/( \d+ m).*/, '$1'))
    await come(texts, ids.map((n, i) => `${done.id.replace(/.$/, n)} ${minutes[i]} m`))
    return panel
  }
  await page.goto(server.console + '/')
  const slowest = await told('Slowest now', [1, 5, 0], [14, 5, 2])
  await slowest.getByText('Among the 4 that were due first.').waitFor() // one that was due 4 minutes ago may have begun at once
  const longest = await told('Longest waiting', [3, 2], [6, 3])
  assert.equal(await longest.getByText('due first').count(), 0)
  assert.deepEqual(asked.slice(0, 2).sort(), ['queued,waiting 3', 'running 200'])
  // What was due after the third began cannot be among the slowest.
  running.push([6, 'running', 1, 1])
  await page.reload()
  await told('Slowest now', [1, 5, 0], [14, 5, 2])
  assert.equal(await slowest.getByText('due first').count(), 0)
  await clean(v)
  await v.end()
})
