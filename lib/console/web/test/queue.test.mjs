// The tool Queue: what the server has, as it moves; and made-up load, whose events are those of the API and of the command line.
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

const cli = async (...args) => JSON.parse((await promisify(execFile)(belfry, [...args, '--output', 'json'])).stdout)
const texts = (locator) => locator.evaluateAll((all) => all.map((e) => e.textContent.trim()))
const seconds = (n) => (n === undefined ? '–' : n.toFixed(3) + ' s')

/** standing is what a board shows: the pieces of each place and priority, in their order. */
const standing = (page) =>
  page.locator('.board').evaluate((board) => {
    const found = {}
    const cells = [...board.querySelectorAll('.place')]
    ;['high', 'normal', 'low'].forEach((rank, row) => ['delayed', 'ready', 'taken'].forEach((place, column) => (found[`${rank} ${place}`] = [...cells[row * 3 + column].querySelectorAll('.piece')].map((p) => p.textContent))))
    return found
  })

/** stands is where the messages of a plan are after so many of its events. */
function stands(events, happened) {
  const lines = {}
  for (const rank of ['high', 'normal', 'low']) for (const place of ['delayed', 'ready', 'taken']) lines[`${rank} ${place}`] = []
  for (const e of events.slice(0, happened)) {
    for (const line of Object.values(lines)) if (line.some((other) => other.message === e.message)) line.splice(line.findIndex((other) => other.message === e.message), 1)
    if (e.event !== 'ended') lines[`${e.priority} ${e.event === 'sent' ? (e.due === undefined ? 'ready' : 'delayed') : e.event}`].push(e)
  }
  return Object.fromEntries(Object.entries(lines).map(([name, line]) => [name, line.toSorted((a, b) => (a.due ?? 0) - (b.due ?? 0)).map((e) => String(e.message))]))
}

const query = { workers: '3', arrivals: '20', messages: '80', duration: '200ms', distribution: 'lognormal', p99: '1s', high: '0.3', low: '0.3', delayed: '0.5', longest_delay: '2s', seed: '9' }

test('made-up load: events, board and waits are those of the API and of the command line', async () => {
  const [api, printed] = await Promise.all([
    server.call('GET', '/v1/plan/order?' + new URLSearchParams(query)),
    cli('plan', 'order', ...Object.entries({ ...query, high: '30%', low: '30%', delayed: '50%' }).flatMap(([name, value]) => ['--' + name.replace('_', '-'), value])),
  ])
  assert.deepEqual(api, printed)
  const v = await Visit.to(server.console + '/tools/queue?' + new URLSearchParams({ load: 'made', ...query, at: 120 }))
  const { page } = v
  const one = api.events[119]
  await page.locator('.instant', { hasText: `at ${seconds(one.at)}: message ${one.message} (${one.priority})` }).waitFor()
  assert.deepEqual(await standing(page), stands(api.events, 120))
  // Each message, with all that happens to it.
  await page.getByText('As a table').click()
  const rows = await page.getByRole('region', { name: 'Where each message stands' }).locator('tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)))
  assert.equal(rows.length, 80)
  rows.forEach((row, i) => {
    const of = Object.fromEntries(api.events.filter((e) => e.message === i + 1).map((e) => [e.event, e]))
    const ready = of.ready?.at ?? of.sent.at
    assert.deepEqual(row, [String(i + 1), of.sent.priority, seconds(of.sent.at), seconds(ready), seconds(of.taken.at), seconds(of.taken.at - ready), String(of.taken.worker), of.taken.turn, seconds(of.ended.at)])
  })
  assert.deepEqual(await texts(page.getByRole('region', { name: 'Waits' }).locator('tbody td:nth-child(2)')), api.by_priority.map((w) => String(w.messages)))
  // What is said of a terminal says it there.
  await page.getByText('In a terminal').click()
  const command = (await page.locator('.cli code').textContent()).split(' --address')[0].split(' ')
  assert.deepEqual(await cli(...command.slice(1)), api)
  await clean(v)
  await page.setViewportSize({ width: 390, height: 800 })
  await clean(v)
  await done(v)
})

test('made-up load plays, steps and goes by the keyboard, and stands in the address', async () => {
  const api = await server.call('GET', '/v1/plan/order?' + new URLSearchParams(query))
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(server.console + '/tools/queue?' + new URLSearchParams({ load: 'made', ...query }))
  const slider = page.getByRole('slider', { name: 'Time' })
  await slider.waitFor()
  const happened = async () => Number(/event (\d+) of/.exec(await page.locator('.played header').textContent())[1])
  const says = (n) => page.waitForFunction((n) => new URLSearchParams(location.search).get('at') === n, n)
  assert.equal(await happened(), 0)
  assert.equal(await slider.getAttribute('aria-valuetext'), 'nothing has happened yet')
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000))
  await page.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await page.clock.runFor(2000)
  const second = await happened()
  // As fast as the time: what is on the board has happened in about two seconds of the play.
  assert.ok(second > 5 && api.events[second - 1].at < api.events[0].at + 2.1 && api.events[second + 1].at > api.events[0].at + 1.5, `${second} at ${api.events[second - 1].at}`)
  await page.getByRole('button', { name: 'Pause' }).click()
  await says(String(second))
  await page.clock.runFor(2000)
  assert.equal(await happened(), second)
  assert.deepEqual(await standing(page), stands(api.events, second))
  await page.getByRole('button', { name: 'Step', exact: true }).click()
  assert.equal(await happened(), second + 1)
  await page.getByRole('button', { name: 'Step back' }).click()
  assert.equal(await happened(), second)
  await slider.focus()
  for (const [key, at] of [['Home', 0], ['ArrowRight', 1], ['ArrowRight', 2], ['ArrowUp', 3], ['PageUp', 1], ['ArrowLeft', 0], ['PageDown'], ['End', api.events.length], ['ArrowLeft', api.events.length - 1]]) {
    await page.keyboard.press(key)
    if (at !== undefined) assert.equal(await happened(), at, key)
  }
  assert.match(await slider.getAttribute('aria-valuetext'), new RegExp(`^at ${seconds(api.events.at(-2).at)}: `))
  await page.keyboard.press('End')
  assert.deepEqual(await standing(page), stands(api.events, api.events.length))
  // Faster, to its end, where it stops.
  await page.getByRole('combobox', { name: 'Speed' }).selectOption('20')
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(20_000)
  assert.equal(await happened(), api.events.length)
  await page.getByRole('button', { name: 'Play' }).waitFor()
  // Whoever wants less motion gets a twelfth a second, and nothing glides.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(1100)
  assert.equal(await happened(), Math.ceil(api.events.length / 12) + 1)
  assert.equal(await page.locator('.piece').evaluateAll((all) => all.flatMap((p) => p.getAnimations()).length), 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  const at = String(await happened())
  await says(at)
  await page.clock.resume()
  const shared = page.url()
  await page.goto(server.console + '/tools/queue')
  await page.goto(shared)
  await slider.waitFor()
  assert.equal(String(await happened()), at)
  await done(v)
})

test('made-up load that is refused says why beside what was shown, and durations have their p99', async () => {
  const v = await Visit.to(server.console + '/tools/queue?load=made&at=20')
  const { page } = v
  await page.locator('.piece').first().waitFor()
  await page.getByRole('textbox', { name: 'Messages in all' }).fill('1001')
  await page.locator('.refused', { hasText: 'at most 1000' }).waitFor()
  await page.locator('.page.old .piece').first().waitFor()
  assert.match(v.errors.splice(0).filter((e) => !e.includes('status of 429')).join(), /^[^,]* status of 400 [^,]*$/)
  await page.getByRole('textbox', { name: 'Messages in all' }).fill('30')
  await page.getByText('How durations are distributed').click()
  await page.getByRole('combobox', { name: 'Durations are' }).selectOption('lognormal')
  assert.equal(await page.getByRole('textbox', { name: 'One run in a hundred' }).inputValue(), '1500ms')
  // It follows the mean, so that a longer one is not refused.
  await page.getByRole('textbox', { name: 'Mean duration' }).fill('3s')
  await page.waitForFunction(() => new URLSearchParams(location.search).get('p99') === '15000ms')
  await page.waitForFunction(() => !document.querySelector('.page.old') && document.querySelector('.played'))
  await page.route('**/v1/plan/order*', (route) => route.fulfill({ status: 404, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Not Found', status: 404, code: 'no_such_path', detail: 'There is nothing here.' }) }))
  await page.goto(server.console + '/tools/queue?load=made')
  await page.getByText('This server makes no plans.').waitFor()
  await v.end()
})

test('an odd address leads to an event that there is, and to a speed of the list', async () => {
  for (const [at, happened] of [['1.5', 2], ['-7', 0], ['soon', 0], ['1e9', 240]]) {
    const v = await Visit.to(server.console + '/tools/queue?' + new URLSearchParams({ load: 'made', messages: '60', delayed: '1', at, speed: '-3' }))
    await v.page.getByText(`event ${happened} of 240`).waitFor()
    assert.equal(await v.page.getByRole('combobox', { name: 'Speed' }).inputValue(), '1')
    await v.page.getByRole('button', { name: 'Play' }).click()
    await v.page.waitForFunction(() => /event [1-9]/.test(document.querySelector('.played header').textContent))
    await v.end()
  }
})

test('a message moves from delayed to ready to taken and is gone, as the server has it', async () => {
  const own = await Server.start({ arguments: ['--concurrency', '1'] })
  const v = await Visit.to(own.console + '/tools/queue')
  const { page } = v
  await page.getByText('You have no message in this queue now.').waitFor()
  await own.put('first', { target: { exec: { argv: ['sleep', '600'] } }, timeout: '1h', priority: 'high' })
  await own.put('second', { target: { exec: { argv: ['sleep', '600'] } }, timeout: '1h', priority: 'low' })
  const first = (await own.trigger('first')).id
  await page.locator('.piece.of-taken', { hasText: 'first' }).waitFor()
  const second = (await own.trigger('second', { delay: '4s' })).id
  await page.locator('.piece.of-delayed', { hasText: 'second' }).waitFor()
  // Those that glide are followed: the page has none that it only puts elsewhere.
  await page.evaluate(() => {
    window.glided = []
    const animate = Element.prototype.animate
    Element.prototype.animate = function (frames, ...more) {
      window.glided.push(this.textContent + ' ' + Object.keys(frames[0]).join())
      return animate.call(this, frames, ...more)
    }
  })
  await page.locator('.piece.of-ready', { hasText: 'second' }).waitFor()
  assert.deepEqual(await page.evaluate(() => window.glided), ['second transform'])
  const said = await page.locator('figcaption').textContent()
  assert.match(said, /0 delayed, 1 ready, 1 taken/)
  await page.getByText('As a table').click()
  const rows = page.getByRole('region', { name: 'Your messages' }).locator('tbody tr')
  assert.deepEqual(await rows.evaluateAll((all) => all.map((r) => [r.querySelector('a').getAttribute('href').split('/').pop(), r.cells[1].textContent, r.cells[2].textContent])), [
    [encodeURIComponent(first), 'taken', 'high'],
    [encodeURIComponent(second), 'ready', 'low'],
  ])
  const api = await own.call('GET', '/v1/queues/default/messages')
  // What was delayed is ready since its delay is over, not since it was sent.
  const ready = api.items[1].ready_at
  assert.ok(Date.parse(ready) > Date.parse(api.items[1].sent_at) + 2000, JSON.stringify(api.items[1]))
  const since = rows.nth(1).locator('td').nth(3)
  assert.match(await since.textContent(), /^since /)
  assert.equal(Date.parse(await since.locator('time').first().getAttribute('datetime')), Math.floor(Date.parse(ready)))
  const printed = await cli('queue', 'messages', 'default', '--address', own.address)
  assert.deepEqual(api.items.map((m) => [m.run, m.state, m.priority]), [[first, 'taken', 'high'], [second, 'ready', 'low']])
  assert.deepEqual(printed.items.map((m) => [m.run, m.state, m.taken_at]), api.items.map((m) => [m.run, m.state, m.taken_at]))
  await clean(v)
  assert.match(await page.getByRole('region', { name: 'Your messages' }).locator('tbody tr').first().locator('td').nth(4).textContent(), /\d/)
  await page.getByText('waiting for its next attempt').waitFor()
  // It stands still when it is told to.
  const pause = page.getByRole('button', { name: 'Pause' })
  await pause.focus()
  await page.keyboard.press('Enter')
  await page.getByText('It stands still').waitFor()
  await own.call('POST', `/v1/runs/${encodeURIComponent(first)}/cancel`, {})
  await own.until(second, 'running')
  await page.locator('.piece.of-ready', { hasText: 'second' }).waitFor()
  await page.keyboard.press('Enter')
  await page.locator('.piece.of-taken', { hasText: 'second' }).waitFor()
  await page.waitForFunction(() => document.querySelectorAll('.piece').length === 1)
  await own.call('POST', `/v1/runs/${encodeURIComponent(second)}/cancel`, {})
  await page.getByText('You have no message in this queue now.').waitFor()
  await own.trigger('second')
  await page.locator('.piece').waitFor()
  // Without an answer what was there stays, and the page says so.
  await own.kill()
  await page.locator('.lost').waitFor()
  assert.equal(await page.locator('.piece').count(), 1)
  v.errors.splice(0)
  await own.stop()
  await v.end()
})

test('a queue that is not there, and a server that cannot list messages, are told', async () => {
  const v = await Visit.to(server.console + '/tools/queue?queue=gpu')
  const { page } = v
  await page.locator('.refused', { hasText: 'This server has no queue gpu.' }).waitFor()
  v.errors.splice(0)
  await page.getByRole('combobox', { name: 'Queue' }).selectOption('default')
  await page.getByText('You have no message in this queue now.').waitFor()
  await page.route('**/v1/queues/*/messages*', (route) => route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Conflict', status: 409, code: 'messages_not_listed', detail: 'The queues of this server are in SQS, which cannot list messages.' }) }))
  await page.goto(server.console + '/tools/queue')
  await page.locator('.refused', { hasText: 'The queues of this server are in SQS' }).waitFor()
  await v.end()
})
