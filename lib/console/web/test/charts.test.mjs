// Counts over time. What the API says of minutes that are past is given here: a server's own come minutes later.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clean, close, deep, done, exec, Server, Visit } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
  await server.put('hello', { target: exec('true') })
})
after(async () => {
  await server.stop()
  await close()
})

const bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 1800000, 3600000]
const late = (...some) => ({ count: some.reduce((a, b) => a + b, 0), buckets: [...some, ...new Array(17 - some.length).fill(0)] })

/** counted answers for stats with a point for each n-th step but every tenth, all swept but the newest two steps. */
async function counted(v) {
  v.asked = []
  await v.page.route('**/v1/stats?*', async (route) => {
    const q = new URL(route.request().url()).searchParams
    v.asked.push(q)
    const step = q.get('step') === '1h' ? 3_600_000 : 60_000
    const from = Math.floor(Date.parse(q.get('from')) / step) * step
    const to = Math.ceil(Date.parse(q.get('to')) / step) * step
    const points = []
    for (let at = from, i = 0; at < to - 2 * step; at += step, i++) {
      if (i % 10 === 5) continue
      points.push({ at: new Date(at).toISOString(), due: 20 + i, succeeded: 10 + i, failed: 1, cancelled: 2, skipped: 1, dead: 3, unknown: 1, open: 2, unended: 6, retries: 4, lateness: late(10, 5, 1), duration: late(16) })
    }
    const body = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), step_seconds: step / 1000, swept_until: new Date(to - 2 * step).toISOString(), lateness_bounds_ms: bounds, duration_bounds_ms: bounds, points, totals: {} }
    v.answered = body
    await route.fulfill({ contentType: 'application/json', body: JSON.stringify(body) })
  })
}

const sum = (points, ...fields) => points.reduce((n, p) => n + fields.reduce((m, f) => m + p[f], 0), 0)

test('the charts say what was counted, under the pointer, by keyboard and as a table; a stretch is looked at alone', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await counted(v)
  await page.goto(server.console + '/')
  const chart = page.getByRole('slider', { name: /Runs by outcome/ })
  await chart.waitFor()
  const { points } = v.answered
  assert.equal(Date.parse(v.answered.to) - Date.parse(v.answered.from), 3_600_000)
  const legend = () => page.locator('.charts .legend b').allInnerTexts().then((all) => all.map((t) => Number(t.replaceAll(',', ''))))
  assert.deepEqual(await legend(), [sum(points, 'succeeded'), sum(points, 'open'), sum(points, 'cancelled', 'skipped'), sum(points, 'failed', 'dead', 'unknown'), sum(points, 'unended')])
  // What is in the queues is seen by this tab alone, and the chart says so.
  await page.getByText('No server keeps this: seen in this tab, since').waitFor()
  await page.getByText('No job has a schedule: each runs when somebody asks for it.').waitFor()
  await page.getByRole('link', { name: 'Runs of this window' }).waitFor()
  await clean(v)
  // One crosshair in all charts.
  await chart.focus()
  await page.keyboard.press('Home')
  assert.match(await chart.getAttribute('aria-valuetext'), /: 10 succeeded, 2 under way, 3 cancelled or skipped, 5 failed, 6 not ended within 5 hours; late by 4 ms \(p50\), 23 ms \(p99\)$/)
  assert.equal(await page.locator('.chart .cursor').count(), 3)
  for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight')
  assert.match(await chart.getAttribute('aria-valuetext'), /: 0 succeeded, 0 under way, 0 cancelled or skipped, 0 failed, 0 not ended within 5 hours$/)
  await page.keyboard.press('End')
  assert.match(await chart.getAttribute('aria-valuetext'), /; not swept yet$/)
  const box = await chart.boundingBox()
  await page.mouse.move(box.x + (box.width * 3.5) / 60, box.y + 40)
  await page.waitForFunction(() => document.querySelector('.charts .legend b').textContent === '13')
  // A gap is not joined over: an hour with six of them has seven stretches.
  assert.equal((await page.locator('.lines .p50').getAttribute('d')).match(/M/g).length, 7)
  assert.equal(await page.locator('.unswept').first().evaluate((e) => parseFloat(e.style.left).toFixed(2)), ((58 / 60) * 100).toFixed(2))
  // A stretch of ten minutes, by Shift and the arrows.
  await chart.focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+PageDown')
  await page.keyboard.press('Shift+ArrowLeft')
  const begin = v.answered.from
  const end = new Date(Date.parse(begin) + 600_000).toISOString()
  const link = page.getByRole('link', { name: 'Runs of that time' })
  const to = new URL(await link.getAttribute('href'), server.address).searchParams
  assert.deepEqual([Date.parse(to.get('from')), Date.parse(to.get('to'))], [Date.parse(begin), Date.parse(end)])
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/console/?from=*&to=*`)
  await page.waitForFunction(() => document.querySelector('[role=slider]')?.getAttribute('aria-valuemax') === '9')
  assert.equal(v.asked.at(-1).get('from'), to.get('from'))
  await page.getByRole('button', { name: '7d', exact: true }).click()
  await page.waitForURL('**/console/?window=7d')
  await page.waitForFunction(() => document.querySelector('[role=slider]')?.getAttribute('aria-valuemax') === '167')
  assert.equal(v.asked.at(-1).get('step'), '1h')
  await page.locator('.charts').getByRole('button', { name: 'As a table' }).click()
  const rows = page.getByRole('region', { name: 'Runs over time, as a table' }).locator('tbody tr')
  assert.equal(await rows.count(), v.answered.points.length)
  const newest = v.answered.points.at(-1)
  assert.deepEqual((await rows.first().locator('td').allInnerTexts()).slice(1), [newest.succeeded, 2, 3, 5, 6].map((n) => n.toLocaleString('en')).concat('4 ms', '23 ms', 'all'))
  await done(v)
})

deep('a stretch is chosen with the mouse, and a day is drawn by five minutes', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await counted(v)
  await page.goto(server.console + '/?window=24h')
  const chart = page.getByRole('slider', { name: /Runs by outcome/ })
  await chart.waitFor()
  assert.equal(await chart.getAttribute('aria-valuemax'), '287')
  const box = await chart.boundingBox()
  const at = (n) => box.x + (box.width * (n + 0.5)) / 288
  await page.mouse.move(at(12), box.y + 40)
  await page.mouse.down()
  await page.mouse.move(at(23), box.y + 40)
  await page.mouse.up()
  await page.getByRole('button', { name: /^Look at/ }).click()
  await page.waitForFunction(() => document.querySelector('[role=slider]')?.getAttribute('aria-valuemax') === '59')
  const q = v.asked.at(-1)
  assert.equal(Date.parse(q.get('to')) - Date.parse(q.get('from')), 3_600_000)
  await page.goBack()
  await page.waitForFunction(() => document.querySelector('[role=slider]')?.getAttribute('aria-valuemax') === '287')
  await done(v)
})

deep('a window that cannot be is refused in the words of the server, and another can be chosen', async () => {
  const v = await Visit.to(server.console + '/?from=1990-01-01T00:00:00Z&to=2026-01-01T00:00:00Z')
  await v.page.locator('.charts .refused').waitFor()
  await counted(v)
  await v.page.getByRole('button', { name: '1h', exact: true }).click()
  await v.page.getByRole('slider', { name: /Runs by outcome/ }).waitFor()
  v.errors = v.errors.filter((e) => !/status of 4(22|00)/.test(e))
  await done(v)
})
