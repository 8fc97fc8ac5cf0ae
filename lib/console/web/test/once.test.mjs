// One run to which something goes wrong: what the page shows is what the API and the command line say of the same.
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

const at = (query) => server.console + '/tools/exactly-once?' + new URLSearchParams(query)
const ready = (page) => page.locator('.sequence [role=cell]').first().waitFor()
const told = async (page) => (await page.locator('.sequence .words[role=cell]').allTextContents()).map((text) => text.replace('Not yet: ', ''))
const happened = async (page) => Number(/event (\d+) of/.exec(await page.locator('.played .bar').textContent())[1])
const fact = async (page, name) => (await page.locator('.facts div', { has: page.getByText(name, { exact: true }) }).locator('dd').textContent()).trim()

/** printed is what belfry prints of the command that the page has for a terminal. */
async function printed(page) {
  const command = await page.locator('.cli code').textContent()
  assert.ok(command.startsWith('belfry plan once '), command)
  const { stdout } = await promisify(execFile)('sh', ['-c', command.replace('belfry', belfry) + ' -o json'])
  return JSON.parse(stdout)
}

test('a run that goes wrong has the same numbers on the page, in the API and on the command line', async () => {
  for (const [query, effects, calls] of [
    [{}, 2, 2],
    [{ guard: 'key' }, 1, 2],
    [{ fault: 'zombie', guard: 'fence' }, 1, 2],
    [{ fault: 'zombie_first', guard: 'fence' }, 2, 2],
    [{ fault: 'message_twice' }, 1, 1],
    [{ fault: 'clocks_jump' }, 1, 1],
    [{ fault: 'write_lost', guard: 'both' }, 1, 1],
    [{ guarantee: 'at_most_once', fault: 'dies_before' }, 0, 0],
    [{ guarantee: 'at_most_once', fault: 'answer_lost' }, 1, 1],
  ]) {
    const v = await Visit.to(at(query))
    const { page } = v
    await ready(page)
    const what = JSON.stringify(query)
    const of = await printed(page)
    const api = await server.call('GET', '/v1/plan/once?' + new URLSearchParams(of.config))
    assert.deepEqual(api, of, what)
    assert.deepEqual(await told(page), of.events.map((e) => e.text), what)
    assert.equal(await page.locator('.sequence svg[aria-hidden]').count(), of.events.length, what)
    for (const [name, value] of [['Effects', effects], ['Calls', calls], ['Deliveries', of.outcome.deliveries], ['Attempts', of.outcome.attempts], ['Calls repeated', of.outcome.repeated_calls], ['Calls refused', of.outcome.refused_calls], ['Workers refused', of.outcome.refused_workers], ['Run', of.outcome.state]]) assert.equal(await fact(page, name), String(value), `${what}: ${name}`)
    await page.getByText(of.says, { exact: true }).waitFor()
    // All faults and guards under the same guarantee; the one that is shown is marked.
    const rows = of.compare.filter((c) => c.config.guarantee === of.config.guarantee)
    const cells = await page.locator('.outcomes td').allTextContents()
    assert.deepEqual(cells, rows.map(({ outcome: o }) => `${o.effects} of ${o.calls}${o.state === 'unknown' ? ', unknown' : ''}`), what)
    assert.equal(rows.length, 36)
    assert.equal(await page.locator('.outcomes [aria-current]').textContent(), `${effects} of ${calls}${of.outcome.state === 'unknown' ? ', unknown' : ''}`, what)
    await done(v)
  }
})

test('a run that goes wrong plays, steps and goes by the keyboard, and stands in the address', async () => {
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(at({ fault: 'zombie', guard: 'fence' }))
  await ready(page)
  const all = (await told(page)).length
  const current = () => page.locator('.sequence > div').evaluateAll((rows) => rows.findIndex((r) => r.getAttribute('aria-current') === 'step'))
  const later = () => page.locator('.sequence .later').count()
  assert.equal(await happened(page), 0)
  assert.equal(await later(), 0, 'before the first event the diagram shows all')
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000))
  await page.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await page.clock.runFor(3000)
  const some = await happened(page)
  assert.ok(some > 2 && some < all, String(some))
  assert.equal(await later(), all - some)
  assert.equal(await page.locator('.sequence .later .words', { hasText: /^Not yet: / }).count(), all - some)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.waitForFunction((n) => new URLSearchParams(location.search).get('at') === String(n), some)
  await page.clock.runFor(3000)
  assert.equal(await happened(page), some)
  await page.getByRole('button', { name: 'Step', exact: true }).click()
  assert.equal(await happened(page), some + 1)
  assert.equal(await current(), some + 1)
  await page.getByRole('button', { name: 'Step back' }).click()
  assert.equal(await happened(page), some)
  await page.getByRole('slider', { name: 'Time' }).focus()
  for (const [key, n] of [['Home', 0], ['ArrowRight', 1], ['ArrowRight', 2], ['ArrowUp', 3], ['ArrowLeft', 2], ['PageUp', 1], ['ArrowLeft', 0], ['End', all], ['ArrowLeft', all - 1], ['ArrowDown', all - 2]]) {
    await page.keyboard.press(key)
    assert.equal(await happened(page), n, key)
  }
  // An event of the diagram leads there, and what is told is that event.
  await page.locator('.sequence button').nth(4).click()
  assert.equal(await happened(page), 5)
  assert.equal((await page.locator('.played .instant').textContent()).trim(), (await told(page))[4])
  // Whoever wants less motion gets a twelfth a second.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.getByRole('button', { name: 'Play' }).click()
  await page.clock.runFor(1100)
  assert.equal(await happened(page), 5 + Math.ceil(all / 12))
  await page.getByRole('button', { name: 'Pause' }).click()
  const n = await happened(page)
  await page.clock.resume()
  const shared = page.url()
  assert.equal(new URL(shared).searchParams.get('at'), String(n))
  await page.goto(server.console + '/tools')
  await page.getByRole('link', { name: 'Exactly once' }).click()
  await ready(page)
  await page.goto(shared)
  await ready(page)
  assert.equal(await happened(page), n)
  // Another question begins anew, from a choice or from the table.
  await page.getByRole('combobox', { name: 'What the target heeds' }).selectOption('none')
  await page.locator('.waits', { hasText: 'The target was called twice and made 2 payments.' }).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('at'), null)
  await page.locator('.outcomes a').nth(13).click() // the worker dies after the effect, and the target heeds the key
  await page.locator('.waits', { hasText: 'The target was called twice and made 1 payment.' }).waitFor()
  assert.equal(await page.getByRole('combobox', { name: 'What the target heeds' }).inputValue(), 'key')
  assert.equal(await page.getByRole('combobox', { name: 'What goes wrong' }).inputValue(), 'dies_after')
  await done(v)
})

test('a run that goes wrong is accessible in both widths, and a server without plans says so', async () => {
  const v = await Visit.to(at({ fault: 'zombie', guard: 'fence', at: 14 }))
  const { page } = v
  await ready(page)
  for (const width of [1280, 390, 320])
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await clean(v)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px`)
      // What an arrow says is within the diagram.
      const out = await page.evaluate(() => [...document.querySelectorAll('.sequence text')].filter((t) => t.getBoundingClientRect().right > t.closest('.sequence').getBoundingClientRect().right + 1 || t.getBoundingClientRect().left < t.closest('.sequence').getBoundingClientRect().left).map((t) => t.textContent))
      assert.deepEqual(out, [], `${width} px`)
    }
  await page.route('**/v1/plan/once*', (route) => route.fulfill({ status: 404, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Not Found', status: 404, code: 'no_such_path', detail: 'There is nothing here.' }) }))
  await page.goto(at({}))
  await page.getByText('This server makes no plans.').waitFor()
  await v.end()
})
