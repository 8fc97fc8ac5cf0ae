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
  // Each with its offset, which the change of the clock moves.
  assert.deepEqual((await texts(page.locator('.fires time'))).map((text) => text.slice(-6)), api.fires.map((f) => f.local.slice(-6)))
  assert.equal(new Set(api.fires.map((f) => f.local.slice(-6))).size, 2)
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-fields] tbody td:last-child')), api.fields.map((f) => f.means))
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-elsewhere] code')), api.elsewhere.flatMap((e) => e.expressions))
  assert.deepEqual(await texts(page.locator('section[aria-labelledby=cron-elsewhere] .fine')), api.elsewhere.flatMap((e) => e.notes))
  // None is wider than its line: here each has the year, and below a zone with a long name.
  const fit = async (at) => {
    for (const width of [390, 720, 1001, 1100, 1280]) {
      await page.setViewportSize({ width, height: 800 })
      assert.deepEqual(await page.locator('.fires li').evaluateAll((all) => all.filter((li) => Math.max(...[...li.children].map((e) => e.getBoundingClientRect().right)) > li.getBoundingClientRect().right + 0.5).map((li) => li.textContent)), [], `${at} at ${width} px`)
    }
  }
  await fit(query.timezone)
  await page.getByLabel('Time zone').fill('America/Argentina/Buenos_Aires')
  await page.locator('.fires time', { hasText: 'Buenos Aires −03:00' }).first().waitFor()
  await fit('Buenos Aires')
  // A zone that nobody knows, as one that is half typed, is named, and the page goes on.
  await page.getByLabel('Time zone').fill('Europe/Berli')
  await page.locator('.refused', { hasText: 'timezone' }).waitFor()
  await page.reload()
  await page.locator('.refused', { hasText: 'timezone' }).waitFor()
  assert.match(v.errors.splice(0).join(), /^(?:[^,]* status of 422 [^,]*(?:,|$))+$/)
  await page.getByLabel('Time zone').fill(query.timezone)
  await page.locator('.fires time', { hasText: 'Berlin' }).first().waitFor()
  assert.equal(new URL(page.url()).searchParams.get('from'), '2027-03-26T00:00:00')
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
  assert.match(v.errors.splice(0).join(), /^(?:[^,]* status of 422 [^,]*(?:,|$))+$/)
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

/** near says that what a page shows of a number, to so many digits as there is room for, is that number. */
const near = (text, number, what) => {
  if (number === undefined) return assert.equal(text, '–', what)
  const units = { µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, '%': 0.01 }
  const words = text.replaceAll(',', '').split(' ')
  const shown = words.length === 1 ? Number(words[0]) : words.reduce((sum, w, i) => (i % 2 ? sum + Number(words[i - 1]) * units[w] : sum), 0)
  const third = number ? 0.5 * 10 ** (Math.floor(Math.log10(number)) - 2) : 0 // half of what the third digit counts
  const unit = words.at(-1)
  const off = words.length === 1 ? (number < 99.95 ? third : 0.5) : unit === '%' ? 0.0005 : unit === 'µs' ? third : unit === 'ms' ? 0.0005 : number < 9.95 ? 0.05 : unit === 's' && words.length === 2 ? 0.5 : units[unit]
  assert.ok(Math.abs(shown - number) <= Math.max(off * (1 + 1e-6), 1e-6), `${what}: ${text} for ${number}`)
}

test('a queue with workers: numbers, charts and theory are those of the API and of the command line', async () => {
  const query = { workers: '40', from: '10', grow: '60', arrivals: '150', at_once: '0.6', burst_every: '2m', batch: '2', duration: '200ms', distribution: 'lognormal', p99: '1s', for: '5m', high: '0.1', low: '0.3', warm: '30s', seed: '9' }
  const [api, printed] = await Promise.all([
    server.call('GET', '/v1/plan/queue?' + new URLSearchParams(query)),
    cli('plan', 'queue', ...Object.entries({ ...query, at_once: '60%', high: '10%', low: '30%' }).flatMap(([name, value]) => ['--' + name.replace('_', '-'), value])),
  ])
  assert.deepEqual(api, printed)
  const v = await Visit.to(server.console + '/tools/scaling?' + new URLSearchParams(query))
  const { page } = v
  await page.getByText(`${api.arrived.toLocaleString('en')} runs came in 5m, ${api.waiting_at_the_end.toLocaleString('en')} still wait at the end.`).waitFor()
  const sums = page.getByRole('region', { name: 'In all' }).locator('tbody tr')
  const simulated = await texts(sums.locator('td:nth-child(2)'))
  const { wait } = api
  const ranks = api.by_priority.flatMap((w) => [w.mean, w.p99])
  assert.equal(simulated.length, 9 + 6 + 1)
  ;[api.utilization, 1 - wait.share_that_waits_not, wait.mean, api.mean_depth, api.deepest, wait.p50, wait.p90, wait.p99, wait.max, ...ranks, api.mean_batch].forEach((n, i) => near(simulated[i], n, 'row ' + i))
  assert.deepEqual(await texts(sums.locator('td:nth-child(3)')), simulated.map(() => '–')) // of bursts there is no formula
  // Every stretch of the series, in the table and in the picture.
  await page.getByText('As a table').click()
  const rows = await page.getByRole('region', { name: 'All of it' }).locator('tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)))
  assert.equal(rows.length, api.series.length)
  api.series.forEach((p, i) => [p.at, p.mean_depth, p.deepest, p.busy, p.workers, p.throughput, p.wait_p50, p.wait_p99].forEach((n, k) => near(rows[i][k], n, `stretch ${i}, column ${k}`)))
  const drawn = await page.locator('.chart').evaluateAll((all) => all.map((f) => [f.querySelector('b').textContent, Math.min(...[...f.querySelectorAll('.lines path:not(.rule)')].flatMap((p) => p.getAttribute('d').match(/[ML][^ML]+/g).map((at) => Number(at.split(/[ h]/)[1]))))]))
  const most = (of) => Math.max(...api.series.map((p) => p[of] ?? 0))
  ;[most('deepest'), most('workers'), most('throughput'), most('wait_p99')].forEach((n, i) => {
    const [text, y] = drawn[i]
    const top = i === 3 ? [...text.matchAll(/(\S+) (\S+)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * { m: 60, s: 1, ms: 1e-3, µs: 1e-6 }[unit], 0) : Number(text.replaceAll(',', ''))
    assert.ok(top >= n * 0.999 && Math.abs((55 - y) / 54 - n / top) < 0.01, `chart ${i}: ${n} is drawn at ${y} below ${text}`)
  })
  // What is said of a terminal says it there.
  await page.getByText('In a terminal').click()
  const command = (await page.locator('.cli code').textContent()).split(' --address')[0].split(' ')
  assert.deepEqual(await cli(...command.slice(1)), api)
  await clean(v)
  await page.setViewportSize({ width: 390, height: 800 })
  await clean(v)
  await done(v)
})

test('a queue of a known kind has its theory beside it, sliders and fields go by the keyboard, and a bound is told', async () => {
  const api = await server.call('GET', '/v1/plan/queue?workers=50&arrivals=240&distribution=exponential')
  const v = await Visit.to(server.console + '/tools/scaling?distribution=exponential&arrivals=240')
  const { page } = v
  assert.equal(api.theory.name, 'M/M/c, Erlang C')
  await page.getByRole('columnheader', { name: 'Theory, in the long run: M/M/c, Erlang C, exact' }).waitFor()
  const theory = await texts(page.getByRole('region', { name: 'In all' }).locator('td:nth-child(3)'))
  ;[api.theory.utilization, api.theory.share_that_waits, api.theory.mean_wait_seconds, api.theory.mean_depth].forEach((n, i) => near(theory[i], n, 'theory ' + i))
  ;[api.theory.wait_p50, api.theory.wait_p90, api.theory.wait_p99].forEach((n, i) => near(theory[5 + i], n, 'theory of waits ' + i))
  const slider = page.getByRole('slider', { name: 'Workers', exact: true })
  await slider.focus()
  await page.keyboard.press('ArrowRight')
  await page.waitForFunction(() => new URLSearchParams(location.search).get('workers') === '60')
  assert.equal(await page.getByRole('textbox', { name: 'Workers', exact: true }).inputValue(), '60')
  assert.equal(await slider.getAttribute('aria-valuetext'), '60')
  await page.getByRole('combobox', { name: 'Durations are' }).selectOption('lognormal')
  assert.equal(await page.getByRole('textbox', { name: 'One run in a hundred' }).inputValue(), '1000ms')
  await page.getByRole('columnheader', { name: 'Allen-Cunneen, an approximation' }).waitFor()
  await page.getByRole('textbox', { name: 'Workers', exact: true }).fill('40')
  await page.getByText('Too few workers: 120 %').waitFor()
  await page.getByRole('textbox', { name: 'Arrivals, runs/s' }).fill('10000')
  await page.locator('.refused', { hasText: '3m20s at the most' }).waitFor()
  await page.locator('.page.old .chart').first().waitFor() // what was shown stays, beside the refusal
  // A question that comes before the one before it has ended is asked again.
  assert.match(v.errors.splice(0).filter((e) => !e.includes('status of 429')).join(), /^(?:[^,]* status of 422 [^,]*(?:,|$))+$/)
  await done(v)
})

test('a p99 follows the mean, workers that come do so at a pace, and no run that counts has no wait', async () => {
  const v = await Visit.to(server.console + '/tools/scaling?duration=100ms&distribution=lognormal&p99=1200ms&for=1m&at=30')
  const { page } = v
  const says = (name, value) => page.waitForFunction(([name, value]) => new URLSearchParams(location.search).get(name) === value, [name, value])
  await page.getByText('runs came in 1m').waitFor()
  const duration = page.getByRole('slider', { name: 'Mean duration' })
  await duration.focus()
  await page.keyboard.press('Home')
  await says('p99', '12ms')
  await page.getByRole('textbox', { name: 'Mean duration' }).fill('0.57ms')
  await says('p99', '6.84ms')
  await page.getByRole('textbox', { name: 'Workers at first, 0 for all' }).fill('5')
  await says('grow', '300')
  await page.getByRole('textbox', { name: 'Time' }).fill('10s')
  await says('at', null)
  await page.getByRole('textbox', { name: 'Workers at first, 0 for all' }).fill('0')
  await says('grow', null)
  await page.getByText('runs came in 10s').waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Workers that come, a minute' }).count(), 0)
  await page.goto(server.console + '/tools/scaling?workers=9&arrivals=0.1&at_once=1&for=10s&warm=5s')
  await page.getByText('No run started in the counted time.').waitFor()
  const simulated = await texts(page.getByRole('region', { name: 'In all' }).locator('td:nth-child(2)'))
  assert.equal(simulated.filter((text) => text === '–').length, 6)
  // A chart of little has a top that is little: 72 runs in each six minutes of a day.
  await page.goto(server.console + '/tools/scaling?workers=9&arrivals=0.2&for=1d')
  await page.getByText('runs came in 1d').waitFor()
  assert.equal(await page.locator('.chart', { hasText: 'Throughput' }).locator('b').textContent(), '0.5')
  await done(v)
})

test('a marker plays over the time of a queue, rests, and goes on from where it was', async () => {
  const { series } = await server.call('GET', '/v1/plan/queue?workers=20&arrivals=100')
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(server.console + '/tools/scaling?workers=20&arrivals=100')
  const marker = page.getByRole('slider', { name: 'Instant' })
  await marker.waitFor()
  const at = async () => Number(await marker.getAttribute('aria-valuenow'))
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000))
  await page.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await page.clock.runFor(430) // between two steps
  const begun = await at()
  assert.ok(begun > 0 && begun <= 5, String(begun))
  await page.clock.runFor(800)
  assert.equal(await at(), begun + 10)
  await page.getByRole('button', { name: 'Pause' }).click()
  const told = await page.locator('.instant').textContent()
  near(/: (\S+) wait/.exec(told)[1], series[begun + 10].mean_depth, told)
  near(/(\S+) runs a second start/.exec(told)[1], series[begun + 10].throughput, told)
  assert.equal(await marker.getAttribute('aria-valuetext'), told)
  assert.equal(new URL(page.url()).searchParams.get('at'), String(series[begun + 10].at))
  await page.clock.runFor(5000)
  assert.equal(await at(), begun + 10)
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(1000)
  assert.ok((await at()) > begun + 10)
  // Whoever wants less motion gets few steps.
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await marker.focus()
  await page.keyboard.press('Home')
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(2900)
  assert.equal(await at(), 40)
  await page.clock.runFor(20_000)
  assert.equal(await at(), series.length - 1) // where it stops
  await page.getByRole('button', { name: 'Play' }).waitFor()
  await marker.focus()
  await page.keyboard.press('PageUp')
  assert.equal(await at(), series.length - 11)
  await page.keyboard.press('ArrowUp')
  assert.equal(await at(), series.length - 10)
  await page.keyboard.press('ArrowDown')
  // One that is dragged is held beyond the charts, and another button moves it not.
  const plot = await page.locator('.over .plot').first().boundingBox()
  await page.mouse.move(plot.x + plot.width / 4, plot.y + 5)
  await page.mouse.down()
  await page.mouse.move(plot.x + plot.width / 2, 1)
  await page.mouse.up()
  assert.ok(Math.abs((await at()) - series.length / 2) <= 1, String(await at()))
  await page.mouse.click(plot.x + plot.width / 4, plot.y + 5, { button: 'right' })
  assert.ok(Math.abs((await at()) - series.length / 2) <= 1)
  await marker.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('PageUp')
  await page.clock.resume()
  await page.reload()
  await marker.waitFor()
  assert.equal(await at(), series.length - 11) // it stands in the address
  await page.evaluate((at) => {
    history.replaceState(null, '', location.pathname + '?workers=20&arrivals=100&at=' + at)
    dispatchEvent(new PopStateEvent('popstate'))
  }, series[7].at)
  await page.waitForFunction(() => document.querySelector('.track').getAttribute('aria-valuenow') === '7')
  await done(v)
})

test('the busiest hour of a server is what a queue is asked about', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  const hour = (at, count, retries, buckets) => ({ at, retries, lateness: { count, buckets: [] }, duration: { count, buckets, p99_ms: 700 } })
  await page.route('**/v1/stats?*', (route) =>
    route.fulfill({ contentType: 'application/json', body: JSON.stringify({ duration_bounds_ms: [100, 200, 500, 1000], points: [hour('2026-11-20T10:00:00Z', 7100, 100, [0, 6000, 1000, 100, 0]), hour('2026-11-21T10:00:00Z', 7000, 0, [7000, 0, 0, 0, 0])] }) }))
  await page.goto(server.console + '/tools/scaling?workers=3')
  await page.getByRole('slider', { name: 'Instant' }).waitFor()
  await page.locator('.own', { hasText: '7,200 attempts; the last attempts took 187 ms on average (p99 700 ms)' }).waitFor()
  await page.getByRole('link', { name: 'Take these numbers' }).click()
  await page.getByText('runs came in 1h').waitFor()
  assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), { workers: '3', arrivals: '2', duration: '187ms', distribution: 'lognormal', p99: '700ms', for: '1h' })
  await done(v)
})

/** amount is a number as the page of capacity writes it: with commas, a unit of thousands, or dollars. */
const amount = (text) => Number(/[\d.,]+/.exec(text)[0].replaceAll(',', '')) * ({ k: 1e3, M: 1e6, G: 1e9 }[/\d([kMG])\b/.exec(text)?.[1]] ?? 1)

/** shows says that a text shows a number, to three digits. */
const shows = (text, number, what) => assert.ok(Math.abs(amount(text) - number) <= Math.max(Math.abs(number) * 0.0051, 0.0051), `${what}: ${text} for ${number}`)

test('a load of a stack on AWS: needs, bill and limits are those of the API and of the command line', async () => {
  const query = {
    schedules: '20000', runs_per_day: '4320000', peak: '1500', duration: '2s', retry_rate: '0.03', retention: '14d', at_once: '0.9', late: '2m', on_demand: '0.1', ahead: '0.05', payload: '2000', result: '5000', tenants: '2', priority: '0.8', hot_job: '3', shards: '32', helpers: '9', runs_in_request: '5',
  }
  const [api, printed] = await Promise.all([
    server.call('GET', '/v1/plan/capacity?' + new URLSearchParams(query)),
    cli('plan', ...Object.entries({ ...query, at_once: '90%', on_demand: '10%', ahead: '5%' }).flatMap(([name, value]) => ['--' + name.replaceAll('_', '-'), value])),
  ])
  assert.deepEqual(api, printed)
  const v = await Visit.to(server.console + '/tools/capacity?' + new URLSearchParams(query))
  const { page } = v
  const { workers: w, table: t, bill, first_exceeded: beyond, next } = api
  await page.getByText(`One stack carries it, for $${Math.round(bill.dollars_per_month).toLocaleString('en')} a month.`).waitFor()
  const needs = Object.fromEntries(await page.getByRole('region', { name: 'What it needs' }).locator('tr').evaluateAll((all) => all.map((r) => [r.cells[0].textContent, r.cells[1].textContent])))
  const parts = (name) => needs[name].split(/, (?!\d{3}\b)/)
  ;[w.functions_burst, w.functions_mean].forEach((n, i) => shows(parts('Workers at the peak')[i], n, 'workers'))
  ;[api.load.runs_per_second, api.load.peak_runs_per_second, w.starts_per_second].forEach((n, i) => shows(parts('Runs a second')[i], n, 'runs a second'))
  ;[api.queues.messages_waiting, w.messages_in_flight].forEach((n, i) => shows(parts('Messages in queues')[i], n, 'queue'))
  assert.equal(needs['The last run of a minute'].startsWith('too late'), w.late)
  shows(parts('Store')[0], t.stored_gb, 'store') // in GB
  shows(parts('Records a day')[0], t.records_per_day, 'records')
  shows(needs['Ended runs that are kept'], t.runs_kept, 'runs kept')
  ;[t.write_units_per_second, t.read_units_per_second].forEach((n, i) => shows(parts('Units of the table')[i], n, 'units'))
  const rows = (name) => page.getByRole('region', { name }).locator('tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)))
  const billed = await rows('A month')
  const all = { what: 'all', dollars_per_month: bill.dollars_per_month, dollars_per_month_unshared: bill.dollars_per_month_unshared }
  const due = [...bill.parts.filter((p) => p.dollars_per_month_unshared >= 0.005), all]
  assert.deepEqual(billed.map(([what]) => what), due.map((p) => p.what))
  due.forEach((p, i) => [p.dollars_per_month, p.dollars_per_month_unshared].forEach((n, k) => assert.ok(Math.abs(amount(billed[i][k + 1]) - n) <= (n < 100 ? 0.0051 : 0.51), `${p.what}: ${billed[i][k + 1]} for ${n}`)))
  const [first, second] = await texts(page.locator('.nearest dd'))
  assert.ok(first.startsWith(beyond.name) && second.startsWith(next.name), `${first}; ${second}`)
  shows(/This load is (\S+) times that/.exec(first)[1], 1 / beyond.times_this_load, first)
  shows(/That is (\S+) times this load/.exec(second)[1], next.times_this_load, second)
  const set = await rows('Parameters of the template')
  assert.deepEqual(set.map(([name, value]) => [name, Number(value)]), api.parameters.map((p) => [p.name, p.value]))
  await page.getByText(`All ${api.limits.length} limits`).click()
  const limits = await rows('Limits')
  assert.equal(limits.length, api.limits.length)
  api.limits.forEach((l, i) => {
    assert.equal(limits[i][0], l.name + (l.assumed ? ' *' : ''))
    shows(limits[i][1], l.reached_at_runs_per_second, l.name)
    assert.equal(limits[i][2].startsWith('beyond'), l.exceeded, l.name)
  })
  const links = (within) => within.getByRole('link').evaluateAll((all) => all.map((a) => a.href))
  assert.deepEqual(await links(page.getByRole('region', { name: 'Limits' })), api.limits.flatMap((l) => l.page ?? []))
  await page.getByText(`Prices of ${api.region}, ${api.prices_as_of}`, { exact: true }).click()
  assert.deepEqual(await links(page.locator('details', { hasText: 'Prices of ' })), api.prices.map((p) => p.page))
  // What is said of a terminal says it there.
  await page.getByText('In a terminal').click()
  const command = (await page.locator('.cli code').textContent()).split(' --address')[0].split(' ')
  assert.deepEqual(await cli(...command.slice(1)), api)
  await clean(v)
  await page.setViewportSize({ width: 390, height: 800 })
  await clean(v)
  await done(v)
})

test('a load is typed by the keyboard, its address says it, and what is wrong with it is named', async () => {
  const { verdict, workers } = await server.call('GET', '/v1/plan/capacity?schedules=10000000&runs_per_day=8640000000')
  assert.ok(workers.late)
  const v = await Visit.to(server.console + '/tools/capacity')
  const { page } = v
  await page.getByText('One stack carries it').waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Runs/s in the busiest minute' }).getAttribute('placeholder'), '0.333')
  await page.getByRole('textbox', { name: 'Jobs with a schedule' }).focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('8640000000')
  await page.locator('.refused', { hasText: 'schedules' }).waitFor() // 100 jobs do not fire so often
  await page.locator('.page.old .bill').waitFor() // what was shown stays, beside the refusal
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('10000000')
  await page.getByText(`It would take ${verdict.stacks} that share the load evenly.`).waitFor()
  await page.getByText('NormalConcurrency').first().waitFor()
  await page.getByRole('region', { name: 'What it needs' }).getByText('too late', { exact: true }).waitFor()
  await page.getByRole('region', { name: 'Quotas to raise' }).getByText('Concurrent executions').waitFor()
  assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), { schedules: '10000000', runs_per_day: '8640000000' })
  await page.reload()
  await page.getByText(`It would take ${verdict.stacks} that share the load evenly.`).waitFor()
  for (const [label, value, field] of [['Retries a run', 'often', 'retry_rate'], ['Retries a run', '101', 'retry_rate'], ['Ended runs are kept for', '1h', 'retention'], ['A run takes', '15m', 'duration'], ['Runs/s in the busiest minute', '1', 'peak']]) {
    const input = page.getByRole('textbox', { name: label })
    await input.fill(value)
    await page.locator('.refused', { hasText: field }).waitFor()
    assert.equal(await input.getAttribute('aria-invalid'), 'true', label)
    await input.fill('')
    await page.locator('.refused').waitFor({ state: 'detached' })
  }
  // A field that is out of sight is opened, and the refusal leads to it.
  await page.goto(server.console + '/tools/capacity?tenants=2000000')
  await page.locator('.refused').getByRole('button', { name: 'Tenants' }).click()
  assert.equal(await page.evaluate(() => document.activeElement.name), 'tenants')
  assert.equal(await page.getByRole('textbox', { name: 'Tenants' }).getAttribute('aria-invalid'), 'true')
  v.errors = v.errors.filter((e) => !/status of (400|422|429)/.test(e))
  await done(v)
})

test('the schedules of a server and its last week are what a load is asked about', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  const at = (hours) => new Date(Date.now() - hours * 3_600_000).toISOString()
  const point = (hours, count, retries, buckets) => ({ at: at(hours), retries, lateness: { count, buckets: [] }, duration: { count, buckets } })
  const json = (body) => (route) => route.fulfill({ contentType: 'application/json', body: JSON.stringify(body) })
  // A thousand runs in the last ten hours; 1,800 fires in the next day.
  await page.route('**/v1/stats?*', json({ duration_bounds_ms: [100, 200, 500], points: [point(30, 0, 0, [0, 0, 0, 0]), point(10, 600, 40, [0, 300, 300, 0]), point(5, 400, 10, [0, 400, 0, 0])] }))
  const due = { from: at(0), to: at(-24), counted_to: at(-24), step_seconds: 60, fires: [], total: 1800, jobs: 30, paused: 0, minutes: [], peak: { at: at(-1), fires: 90, jobs: [], more_jobs: 0 } }
  await page.route('**/v1/schedule/load?*', json(due))
  await page.goto(server.console + '/tools/capacity?retention=7d')
  await page.locator('.own', { hasText: 'Your 30 jobs fire 1,800 times in the next day, at most 90 in a minute; of the last week’s 1,000 runs there were 2,400 a day, 210 ms each on average'.replace('’', "'") }).waitFor()
  await page.getByRole('link', { name: 'Take these numbers' }).click()
  await page.getByText('One stack carries it').waitFor()
  assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), { retention: '7d', schedules: '30', runs_per_day: '2400', peak: '1.542', on_demand: '0.25', duration: '210ms', retry_rate: '0.05' })
  await page.waitForFunction(() => document.querySelector('.page[aria-busy=false] .bill'))
  assert.equal(await page.locator('.refused').count(), 0)
  await page.locator('.own', { hasText: 'and 600 in the busiest hour' }).waitFor()
  await page.locator('.own', { hasText: 'Taken: ' }).waitFor()
  // Runs of more than a function has are shown as they are, and another way is named.
  await page.unroute('**/v1/stats?*')
  await page.route('**/v1/stats?*', json({ duration_bounds_ms: [1_200_000, 1_800_000], points: [point(10, 600, 0, [0, 600, 0])] }))
  await page.goto(server.console + '/tools/capacity')
  await page.locator('.own', { hasText: 'need a pool with' }).waitFor()
  assert.match(await page.locator('.own').textContent(), /, 25 m each on average/)
  // A server that has run nothing, and is to run nothing, has no numbers.
  await page.unroute('**/v1/schedule/load?*')
  await page.unroute('**/v1/stats?*')
  await page.goto(server.console + '/tools/capacity')
  await page.getByText('One stack carries it').waitFor()
  await v.landed()
  assert.equal(await page.locator('.own').count(), 0)
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

test('a tool asks again by itself until it is answered, and then no more', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  const asked = []
  const refused = (status, code) => (route) => route.fulfill({ status, contentType: 'application/problem+json', body: JSON.stringify({ title: 'x', status, code, detail: 'Not now.' }) })
  const failing = [(route) => route.abort(), refused(503, 'stopping'), (route) => route.abort()]
  await page.route('**/v1/plan/retry*', (route) => {
    asked.push(new URL(route.request().url()).searchParams.get('max'))
    return (failing.shift() ?? ((r) => r.continue()))(route)
  })
  await page.goto(server.console + '/tools/retry')
  await page.locator('.bands .band').first().waitFor()
  assert.deepEqual(asked, [null, null, null, null])
  assert.equal(await page.locator('.refused').count(), 0)
  // A refusal of what was asked for is an answer, too.
  await page.getByRole('textbox', { name: 'Longest wait' }).fill('1ms')
  await page.locator('.refused', { hasText: 'max' }).waitFor()
  await page.clock.runFor(120_000)
  assert.deepEqual(asked, [null, null, null, null, '1ms'])
  v.errors.splice(0)
  await done(v)
})

test('a server that makes no plans says so', async () => {
  const v = await Visit.to(undefined)
  await v.page.route('**/v1/plan/*', (route) =>
    route.fulfill({ status: 404, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Not Found', status: 404, code: 'not_found', detail: 'There is nothing here.' }) }))
  for (const tool of ['retry', 'capacity']) {
    await v.page.goto(server.console + '/tools/' + tool)
    await v.page.getByText('This server makes no plans.').waitFor()
  }
  await v.end()
})

deep('each tool is there by the menu, and by the list of all', async () => {
  const v = await Visit.to(server.console)
  await v.page.getByRole('link', { name: 'Tools', exact: true }).click()
  await v.page.getByRole('main').getByRole('link', { name: 'Cron' }).click()
  await v.page.locator('.fires li').first().waitFor()
  await v.page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Workers' }).click()
  await v.page.getByRole('slider', { name: 'Instant' }).waitFor()
  await v.page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Capacity' }).click()
  await v.page.locator('.bill').waitFor()
  await v.page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Queue' }).click()
  await v.page.getByText('You have no message in this queue now.').waitFor()
  await v.page.getByRole('link', { name: 'Made-up load' }).click()
  await v.page.getByRole('slider', { name: 'Time' }).waitFor()
  await v.page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Retries' }).click()
  await v.page.locator('.bands .band').first().waitFor()
  await clean(v)
  await done(v)
})

// What the server makes an error of, or the page does, would be the same again: it is said, and asked for once.
test('a plan that cannot be made is asked for once', async () => {
  for (const [name, answer, says] of [
    ['the server fails', { status: 500, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Internal Server Error', status: 500, code: 'internal', detail: 'It has failed.' }) }, 'It has failed.'],
    ['it may not be asked for', { status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Forbidden', status: 403, code: 'forbidden', detail: 'This token may not.' }) }, 'This token may not.'],
    ['what came is no JSON', { status: 200, contentType: 'application/json', body: '{"load":' }, 'This page made an error.'],
  ]) {
    const v = await Visit.to(undefined)
    let asked = 0
    await v.page.clock.install()
    await v.page.route('**/v1/plan/retry*', (route) => (asked++, route.fulfill(answer)))
    await v.page.goto(server.console + '/tools/retry')
    for (const part of ['first', 'second']) {
      await v.page.clock.runFor(part === 'first' ? 1000 : 120_000)
      await v.page.locator('.refused', { hasText: says }).waitFor()
    }
    assert.equal(asked, 1, name)
    await v.end()
  }
})
