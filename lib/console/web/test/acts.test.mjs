// What an operator can do from the pages: each act once against the server, what answers say, and who may not.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { act, clean, close, deep, done, exec, once, Server, some, Visit } from './harness.mjs'

let server, guarded, tokens
before(async () => {
  server = await Server.start()
  ;({ server: guarded, tokens } = await Server.guarded({ admin: ['admin'], read: ['read'], run: ['read,run'], acme: ['write', 'acme'] }))
})
after(async () => {
  await server.stop()
  await guarded.stop()
  await close()
})

const job = (name) => server.call('GET', '/v1/jobs/' + name)
const run = (id) => server.call('GET', '/v1/runs/' + id)
const runsOf = async (name) => (await server.call('GET', `/v1/jobs/${name}/runs`)).items
async function until(what) {
  for (const end = Date.now() + 300_000; ; ) {
    const got = await what()
    if (got) return got
    if (Date.now() > end) throw new Error('it does not come: ' + what)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

test('a job is triggered, with a payload whose numbers keep their digits, now and at a time', async () => {
  await server.put('paid', { target: exec('true'), ...once })
  const v = await act(server.console + '/jobs/paid')
  await v.page.getByRole('button', { name: 'Trigger…' }).waitFor()
  await v.page.keyboard.press('t')
  const text = v.dialog.getByLabel('Payload')
  assert.ok(await text.evaluate((e) => e === document.activeElement), 'the field has no focus')
  await text.fill('{"order": 12345678901234567890,')
  await v.dialog.getByText('This is not JSON').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: 'Trigger' }).getAttribute('aria-disabled'), 'true')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click({ force: true })
  assert.equal(v.sent.length, 0)
  await text.fill('{"order": 12345678901234567890, "note": "it\'s $HOME"}')
  await clean(v)
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('Accepted')
  assert.equal(v.sent.length, 1)
  const [first] = await runsOf('paid')
  const payload = await (await fetch(`${server.address}/v1/runs/${first.id}/payload`)).text()
  assert.equal(payload.replace(/\s/g, ''), '{"order":12345678901234567890,"note":"it\'s$HOME"}')
  await v.page.locator('.notice').getByRole('link', { name: first.id }).waitFor()

  await v.press('Trigger…')
  await v.dialog.getByLabel('at a time').check()
  assert.equal(await v.dialog.getByRole('button', { name: 'Trigger' }).getAttribute('aria-disabled'), 'true')
  await v.dialog.getByLabel('Time, as clocks show it in UTC').fill('2031-07-01T07:30')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  const later = await until(async () => (await runsOf('paid')).find((r) => r.state === 'scheduled'))
  assert.equal(later.nominal_time, '2031-07-01T07:30:00Z')
  await done(v)
})

test('a job is paused at once, and that is undone; a reason is added; resuming is undone with the reason', async () => {
  await server.put('brief', { target: exec('true'), schedule: { cron: '0 0 1 1 *' } })
  const v = await act(server.console + '/jobs/brief')
  await v.page.getByRole('button', { name: 'Pause' }).waitFor()
  await v.page.keyboard.press('p')
  await v.told('is paused')
  assert.equal((await job('brief')).paused, true)
  await clean(v)
  await v.press('Undo')
  await v.told('as it was before')
  assert.ok(!(await job('brief')).paused)

  await v.press('Pause', true)
  await v.press('Reason…')
  await v.dialog.getByLabel('Reason').fill('ask Ada <b>')
  await clean(v)
  await v.press('Keep the reason')
  await v.page.locator('.note', { hasText: 'ask Ada <b>' }).waitFor()
  await v.press('Resume')
  await v.told('brief is resumed')
  assert.ok(!(await job('brief')).paused)
  await v.page.locator('.notice', { hasText: 'brief is resumed' }).getByRole('button', { name: 'Undo' }).click()
  await v.told('paused again')
  assert.equal((await job('brief')).status.paused_reason, 'ask Ada <b>')
  await done(v)
})

test('a notice goes by itself, but not from under a pointer or the focus, nor one that says that something failed', async () => {
  await server.put('brisk', { target: exec('true') })
  const v = await Visit.to(undefined)
  const { page } = v
  await page.clock.install()
  await page.goto(server.console + '/jobs/brisk')
  const notices = page.locator('.notice')
  // A notice comes before the job is read again and the button says the opposite.
  const press = (name) => page.getByRole('button', { name, exact: true }).and(page.locator(':not([aria-disabled])')).click()
  await press('Pause')
  await notices.getByText('is paused').waitFor()
  await page.clock.runFor(13_000)
  await notices.waitFor({ state: 'detached' })
  await press('Resume')
  await notices.getByText('is resumed').waitFor()
  await notices.hover()
  await page.clock.runFor(13_000)
  assert.equal(await notices.count(), 1)
  await notices.getByRole('button', { name: 'Undo' }).focus()
  await page.mouse.move(0, 0)
  await page.clock.runFor(13_000)
  assert.equal(await notices.count(), 1)
  await page.getByRole('heading', { level: 1 }).click()
  await page.evaluate(() => document.activeElement.blur())
  await page.clock.runFor(13_000)
  await notices.waitFor({ state: 'detached' })
  await page.route('**/pause', problem(503, 'throttled'))
  await press('Pause')
  await notices.getByText('Not done').waitFor()
  await page.clock.runFor(60_000)
  assert.equal(await notices.count(), 1)
  await v.end()
})

deep('an undo takes back nothing that somebody has changed since, and says so', async () => {
  await server.put('shared', { target: exec('true') })
  const v = await act(server.console + '/jobs/shared')
  await v.press('Pause', true)
  await v.told('is paused')
  await server.call('POST', '/v1/jobs/shared/pause', { reason: 'the database moves' })
  await v.press('Undo')
  await v.told('The undo failed')
  await v.told('it was changed meanwhile')
  assert.equal((await job('shared')).status.paused_reason, 'the database moves')
  await v.end()
})

// still has the page as it was read once, while somebody else changes what it shows.
async function still(v, name) {
  const whole = '**/v1/jobs/' + name
  await v.landed()
  await v.page.route(whole, (route) => (route.request().method() === 'GET' ? new Promise(() => {}) : route.fallback()))
  return () => v.page.unroute(whole)
}

test('who pauses or resumes a job that another has changed since is told so, and changes nothing', async () => {
  await server.put('billing', { target: exec('true') })
  const v = await act(server.console + '/jobs/billing')
  await v.page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  const again = await still(v, 'billing')
  await server.call('POST', '/v1/jobs/billing/pause', { reason: 'do not resume' })
  await v.press('Pause', true)
  await v.told('it was changed meanwhile. It has changed since this page read it')
  assert.equal(await v.page.getByRole('button', { name: 'Undo' }).count(), 0)
  assert.equal((await job('billing')).status.paused_reason, 'do not resume')
  await again()
  await v.page.reload()

  // The reason of a job that has been resumed does not pause it.
  await v.press('Reason…')
  await v.dialog.getByLabel('Reason').fill('mine')
  await server.call('POST', '/v1/jobs/billing/resume', {})
  await v.press('Keep the reason')
  await v.said('it was changed meanwhile')
  assert.ok(!(await job('billing')).paused)
  await v.dialog.getByRole('button', { name: 'Close' }).click()

  // The undo of a resume leaves a new pause of another as it is.
  await server.call('POST', '/v1/jobs/billing/pause', { reason: 'old' })
  await v.page.reload()
  await v.press('Resume', true)
  await v.told('billing is resumed')
  await server.call('POST', '/v1/jobs/billing/pause', { reason: 'new' })
  await v.press('Undo')
  await v.told('The undo failed')
  assert.equal((await job('billing')).status.paused_reason, 'new')
  await v.end()
})

test('a second press, or the second of a double click, does not do the opposite of the first', async () => {
  await server.put('twice', { target: exec('true') })
  const v = await Visit.to(undefined)
  await v.page.clock.install()
  await v.page.goto(server.console + '/jobs/twice')
  const pause = v.page.getByRole('button', { name: /^(Pause|Resume)$/ })
  await pause.waitFor()
  const sent = []
  v.page.on('request', (r) => r.method() === 'POST' && /\/(pause|resume)$/.test(r.url()) && sent.push(r.url()))
  const place = await pause.evaluate((e) => e.getBoundingClientRect().right)
  await v.page.clock.pauseAt(await v.page.evaluate(() => Date.now() + 1000)) // the second press comes soon enough, however busy the machine is
  await v.page.keyboard.press('p')
  await v.page.getByRole('button', { name: 'Resume' }).waitFor()
  await v.page.keyboard.press('p')
  await pause.click({ force: true })
  assert.equal(await pause.getAttribute('aria-disabled'), 'true')
  assert.equal(await pause.evaluate((e) => e.getBoundingClientRect().right), place)
  await v.page.clock.runFor(1500)
  await pause.and(v.page.locator(':not([aria-disabled])')).waitFor()
  await v.page.clock.resume()
  assert.equal(sent.length, 1)
  // The second click of a double click is none of another button.
  await pause.evaluate((e) => e.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 2 })))
  await v.page.getByRole('button', { name: 'Reason…' }).evaluate((e) => e.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 2 })))
  assert.equal(await v.page.getByRole('dialog').count(), 0)
  assert.equal(sent.length, 1)
  // The key of Undo, and where the focus is after it.
  await v.page.keyboard.press('u')
  await v.page.locator('.notice', { hasText: 'as it was before' }).waitFor()
  assert.ok(!(await job('twice')).paused)
  await v.page.getByRole('button', { name: 'Pause', exact: true }).waitFor() // the notice comes before the job is read again
  await v.page.clock.runFor(1500)
  await pause.and(v.page.locator(':not([aria-disabled])')).focus()
  await v.page.keyboard.press('Enter')
  await v.page.getByRole('button', { name: 'Undo' }).focus()
  await v.page.keyboard.press('Enter')
  await until(async () => !(await job('twice')).paused)
  assert.equal(await v.page.evaluate(() => document.activeElement.id), 'main')
  await v.end()
})

deep('a deletion that is answered late leaves the viewer where they have gone', async () => {
  await server.put('late', { target: exec('true') })
  const v = await act(server.console + '/jobs/late')
  const answer = await v.hold('**/v1/jobs/late', 'DELETE', (route) => route.continue())
  await v.press('Delete…')
  await v.dialog.getByLabel('Type late').fill('late')
  await v.dialog.getByRole('button', { name: 'Delete' }).click()
  await v.dialog.getByRole('button', { name: 'Asking …' }).waitFor()
  await v.page.keyboard.press('Escape')
  await v.lead('d', '/dead-letters')
  await answer()
  await v.told('late is deleted')
  assert.match(v.page.url(), /dead-letters$/)
  await v.end()
})

test('a run is triggered with a policy of its own, of a job that has one', async () => {
  await server.put('one-at-once', { target: exec('sleep', '20'), overlap: 'skip', ...once })
  await server.put('as-they-come', { target: exec('true'), ...once })
  await server.trigger('one-at-once')
  await until(async () => (await runsOf('one-at-once')).some((r) => r.state === 'running'))
  const v = await act(server.console + '/jobs/one-at-once')
  await v.press('Trigger…')
  const choice = v.dialog.getByLabel('If another one goes on by then')
  assert.equal(await choice.inputValue(), '')
  await choice.selectOption('queue_one')
  await v.dialog.getByText('The same in a terminal').click()
  assert.match(await v.dialog.locator('.command code').first().textContent(), /--overlap=queue_one/)
  await clean(v)
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('Accepted')
  const waits = await until(async () => (await runsOf('one-at-once')).find((r) => r.state === 'waiting'))
  assert.equal(waits.overlap, 'queue_one')
  await v.page.goto(server.console + '/runs/' + waits.id)
  await v.page.getByText('queue_one, in place of its job’s').waitFor()
  await v.press('Run again…')
  await v.dialog.getByText('It goes by the policy queue_one').waitFor()
  await v.dialog.getByText('The same in a terminal').click()
  assert.match(await v.dialog.locator('.command code').first().textContent(), /--overlap=queue_one/)
  await v.end()
  const other = await act(server.console + '/jobs/as-they-come')
  await other.press('Trigger…')
  await other.dialog.getByLabel('Payload').waitFor()
  assert.equal(await other.dialog.getByLabel('If another one goes on by then').count(), 0)
  await other.end()
})

deep('the commands of a trigger say what is asked for, and what is missing first; past times and pauses are told', async () => {
  await server.put('clocks', { target: exec('true'), schedule: { cron: '0 0 1 1 *', timezone: 'America/New_York' } })
  const v = await act(server.console + '/jobs/clocks')
  await v.press('Trigger…')
  await v.dialog.getByText('The same in a terminal').click()
  const commands = v.dialog.locator('.command code')
  assert.match(await commands.first().textContent(), /^belfry job trigger clocks --address/)
  await v.dialog.getByLabel('at a time').check()
  await v.dialog.locator('details').getByText('Choose a time.').waitFor()
  assert.equal(await commands.count(), 0)
  const time = v.dialog.getByLabel('Time, as clocks show it in America/New_York')
  await time.fill('2031-07-01T03:30')
  await v.dialog.getByText('Tue 1 Jul 2031 03:30 America/New_York, which is Tue 1 Jul 2031 09:30 Europe/Paris').waitFor()
  assert.match(await commands.first().textContent(), /--at=2031-07-01T07:30:00.000Z/)
  await clean(v)
  await v.dialog.getByLabel('Payload').fill('{')
  await v.dialog.locator('details').getByText('The payload is not JSON.').waitFor()
  assert.equal(await commands.count(), 0)
  await v.dialog.getByLabel('Payload').fill('')
  await time.fill('2021-07-01T09:30')
  await v.dialog.getByText('That time is past, so it is due at once. It starts now.').waitFor()
  // The job is paused while the dialog is open.
  await server.call('POST', '/v1/jobs/clocks/pause', {})
  await v.dialog.getByText('The job is paused: the run is held, and starts when the job is resumed.').waitFor()
  await v.dialog.getByText('its schedule makes no runs').waitFor()
  await v.dialog.getByRole('checkbox').check()
  await v.dialog.getByText('It starts now').waitFor()
  assert.equal(v.sent.length, 0)
  await done(v)
})

test('no text of others becomes a part of a command, and only belfry is told which server to call', async () => {
  await server.put('words-of-others', { target: exec('true') })
  const v = await act(server.console + '/jobs/words-of-others')
  await v.press('Trigger…')
  await v.dialog.getByLabel('Payload').fill('"a | belfry job delete x"')
  const [own, curl] = await v.dialog.locator('.command code').allTextContents()
  assert.match(own, / --address http:\S+$/)
  assert.match(curl, /^curl .*\/v1\/jobs\/words-of-others\/runs$/)
  await v.end()
})

deep('what a dialog says of a cancel goes on with the run', async () => {
  await server.put('onward', { target: exec('sleep', '600'), timeout: '1h' })
  await server.call('POST', '/v1/jobs/onward/pause', {})
  const { id } = await server.trigger('onward')
  const v = await act(server.console + '/runs/' + id)
  await v.press('Cancel…')
  await v.dialog.getByText('ends now, and its target is not called').waitFor()
  await server.call('POST', '/v1/jobs/onward/resume', {})
  await v.dialog.getByText('is told to stop its target').waitFor()
  await server.call('POST', `/v1/runs/${id}/cancel`, {})
  await v.dialog.getByText('has ended meanwhile: it is cancelled').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: 'Cancel the run' }).getAttribute('aria-disabled'), 'true')
  assert.equal(v.sent.length, 0)
  await done(v)
})

test('a job is deleted by its name, as it was seen', async () => {
  await server.put('gone', { target: exec('true') })
  await server.trigger('gone', { delay: '1h' })
  const v = await act(server.console + '/jobs/gone')
  await v.press('Delete…')
  await v.dialog.getByText('1 run of it has not ended').waitFor()
  const button = v.dialog.getByRole('button', { name: 'Delete' })
  await v.dialog.getByLabel('Type gone').fill('gon')
  await button.click({ force: true })
  assert.equal(v.sent.length, 0)
  await v.dialog.getByLabel('Type gone').fill('gone')
  await clean(v)
  assert.match(await v.dialog.locator('.cli').textContent(), /belfry job delete gone.*If-Match: .*The command of belfry does it whoever has made changes since/)
  await server.put('gone', { target: exec('false') })
  await button.click()
  await v.said('it was changed meanwhile')
  assert.equal(v.sent.length, 1)
  await v.dialog.getByRole('link', { name: 'Look again' }).click()
  await v.page.getByText('exec false').waitFor()
  await v.press('Delete…')
  await v.dialog.getByLabel('Type gone').fill('gone')
  await button.click()
  await v.told('is deleted')
  await v.page.waitForURL('**/jobs')
  await assert.rejects(job('gone'), /404/)
  await v.end()
})

test('a dialog takes the focus, gives it back, and goes with Esc, with the page, and with the way back', async () => {
  await server.put('focus', { target: exec('true') })
  const v = await act(server.console + '/jobs')
  await v.page.getByRole('link', { name: 'focus', exact: true }).click()
  await v.press('Delete…')
  await v.dialog.waitFor()
  await v.page.keyboard.press('p') // goes into the field
  await v.page.keyboard.press('Escape')
  await v.dialog.waitFor({ state: 'detached' })
  assert.equal(await v.page.evaluate(() => document.activeElement.textContent), 'Delete…')
  await v.page.keyboard.press('Enter')
  await v.dialog.waitFor()
  await v.page.goBack()
  await v.dialog.waitFor({ state: 'detached' })
  await v.page.getByRole('grid', { name: 'Jobs' }).waitFor()
  assert.equal(v.sent.length, 0)
  await done(v)
})

test('a run that is running is cancelled, with a reason', async () => {
  await server.put('long', { target: exec('sleep', '600'), timeout: '1h' })
  const { id } = await server.trigger('long')
  await server.until(id, 'running')
  const v = await act(server.console + '/runs/' + id)
  await v.press('Cancel…')
  await v.dialog.getByText('told to stop its target').waitFor()
  await v.dialog.getByLabel('Reason').fill('wrong month')
  await clean(v)
  await v.press('Cancel the run')
  await server.until(id, 'cancelled')
  await v.page.getByText('It was cancelled: wrong month').waitFor()
  assert.equal(v.sent.length, 1)
  await done(v)
})

test('a step says what can be done: the whole run is cancelled, or the workflow is run again', async () => {
  await server.put('flow', { target: { workflow: { steps: { load: exec('sleep', '3600'), index: { needs: ['load'], ...exec('true') } } } } })
  const { id } = await server.trigger('flow')
  const v = await act(server.console + '/runs/' + id + '?step=load')
  await v.page.getByRole('region', { name: 'Steps' }).locator('.s-running').waitFor()
  await v.page.getByText('A step is not cancelled by itself.').waitFor()
  await v.press('Cancel the whole run…')
  await v.dialog.getByText('no other step starts').waitFor()
  await v.dialog.getByLabel('Reason').fill('wrong day')
  await v.press('Cancel the run')
  await until(async () => (await run(id)).state === 'cancelled')
  assert.equal((await run(id)).reason, 'wrong day')
  await server.put('flow', { target: { workflow: { steps: { load: exec('true') } } } })
  await v.press('Run the workflow again…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('Accepted')
  assert.equal(v.sent.length, 2)
  assert.equal((await runsOf('flow')).length, 2)
  await done(v)
})

/** asked are the bodies of retries without ended_before, which all of them have. */
const asked = (v) =>
  v.sent.map((r) => {
    const { ended_before, ...body } = r.postDataJSON()
    assert.ok(Date.parse(ended_before))
    return body
  })

test('a dead run is retried; one that succeeded only by force, after a word', async () => {
  await server.put('dies', { target: exec('false'), ...once })
  const { id } = await server.trigger('dies')
  await server.until(id, 'dead')
  await server.put('dies', { target: exec('true'), ...once })
  const v = await act(server.console + '/runs/' + id)
  await v.page.getByRole('button', { name: 'Retry…' }).waitFor()
  await v.page.keyboard.press('r')
  await v.dialog.getByText('queued again under its own name').waitFor()
  await clean(v)
  await v.dialog.getByRole('button', { name: 'Retry' }).click()
  await v.told('Queued again')
  await server.until(id, 'succeeded')
  assert.deepEqual(asked(v), [{}])
  await v.page.getByText('It succeeded with attempt 2').waitFor()
  await v.press('Retry…')
  await v.dialog.getByText('its effect has happened').waitFor()
  await v.dialog.getByRole('button', { name: 'Retry by force' }).click({ force: true })
  assert.equal(v.sent.length, 1)
  await v.dialog.getByRole('checkbox').check()
  await v.dialog.getByRole('button', { name: 'Retry by force' }).click()
  await until(async () => (await run(id)).attempt === 3)
  assert.deepEqual(asked(v), [{}, { force: true }])
  await done(v)
})

deep('an unknown run is retried by force alone, and the dialog says that its effect may have happened', async () => {
  // The target hangs up in the middle, so nobody knows.
  const target = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1')
  await new Promise((resolve) => target.once('listening', resolve))
  await server.put('once', { target: { http: { url: `http://127.0.0.1:${target.address().port}/` } }, guarantee: 'at_most_once', ...once })
  const { id } = await server.trigger('once')
  await server.until(id, 'unknown')
  const v = await act(server.console + '/runs/' + id)
  try {
    await v.press('Retry…')
    await v.dialog.getByText('Nobody knows whether this run had its effect: it may have happened').waitFor()
    assert.match(await v.dialog.locator('.command code').first().textContent(), /^belfry run retry once~[\w~]+ --force --ended-before=20\S+Z --address/)
    await clean(v)
    await v.dialog.getByRole('checkbox').check()
    await v.dialog.getByRole('button', { name: 'Retry by force' }).click()
    await until(async () => (await run(id)).attempt === 2)
    assert.deepEqual(asked(v), [{ force: true }])
    await done(v)
  } finally {
    target.closeAllConnections()
    target.close()
  }
})

const problem = (status, code, headers = {}) => (route) =>
  route.fulfill({ status, headers: { 'X-Request-Id': 'r-' + status, ...headers }, contentType: 'application/problem+json', body: JSON.stringify({ title: 'No', status, code, detail: 'in the words of the server' }) })

test('each refusal has its own words, nothing is asked for twice, and the key stays while nobody knows', async () => {
  await server.put('words', { target: exec('true') })
  const v = await act(server.console + '/jobs/words')
  const clear = [
    [problem(502, 'credential_refused'), /Not done: the credential of the profile was refused.*credential_refused · request r-502/, false],
    [problem(409, 'idempotency_key_reused'), /Not done: not possible as things are.*idempotency_key_reused · request r-409/, false],
    [problem(412, 'precondition_failed'), /Not done: it was changed meanwhile/, false],
    [problem(429, 'rate_limited', { 'Retry-After': '7' }), /Not done: too many requests. Try again in 7 s.*request r-429/, false],
    [problem(503, 'throttled', { 'Retry-After': '1' }), /Not done: the server cannot do it now. Try again in 1 s/, false],
    [problem(403, 'forbidden'), /Not done: not allowed/, false],
    [problem(422, 'invalid'), /Not done\..*In the words|Not done\..*in the words/, false],
  ]
  const unclear = [
    [problem(503, 'outcome_unknown'), /It may have been done\..*Look again.*request r-503/, true],
    [problem(500, 'internal'), /It may have been done: the server made an error/, true],
    [(route) => route.fulfill({ status: 502, body: '<h1>Bad Gateway</h1>' }), /It may have been done/, true],
    [(route) => route.fulfill({ status: 202, contentType: 'application/json', body: '{"id": "wor' }), /No answer came. It may have been done/, true],
  ]
  const answers = [...some(clear, 3), ...some(unclear, 1), [(route) => route.abort('connectionreset'), /No answer came. It may have been done/, true]]
  const at = (url) => url.pathname === '/v1/jobs/words/runs'
  const keys = []
  const looked = new Set() // but for their words, refusals differ by a link, and by whether anybody knows the outcome
  await v.press('Trigger…')
  for (const [answer, words, maybe] of answers) {
    await v.page.route(at, (route) => (route.request().method() === 'POST' ? (keys.push(route.request().headers()['idempotency-key']), answer(route)) : route.fallback()))
    const before = v.sent.length
    await v.dialog.getByRole('button', { name: 'Trigger' }).click()
    await v.page.waitForFunction((n) => document.querySelector('dialog .refused')?.textContent.match(n), words.source)
    assert.equal(v.sent.length, before + 1, String(words))
    const links = maybe || /changed/.test(words.source) ? 1 : 0
    assert.equal(await v.dialog.getByRole('link', { name: /Look again/ }).count(), links, String(words))
    const look = links + String(maybe)
    if (!looked.has(look)) await clean(v)
    looked.add(look)
    await v.page.unroute(at)
  }
  // A press of the user's after an outcome that nobody knows asks under the same key; after a clear one, under another.
  const first = answers.findIndex(([, , maybe]) => maybe)
  assert.equal(new Set(keys.slice(0, first + 1)).size, first + 1)
  assert.equal(new Set(keys.slice(first)).size, 1)
  await v.dialog.getByRole('button', { name: 'Close' }).click()
  assert.equal((await runsOf('words')).length, 0)
  await v.press('Trigger…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('is the run of your earlier request')
  assert.equal(v.sent.at(-1).headers()['idempotency-key'], keys.at(-1))
  assert.deepEqual(await v.violations(), [])
  await v.end()
})

test('a run that was made although its answer was lost is not made a second time', async () => {
  await server.put('lost', { target: exec('true') })
  const v = await act(server.console + '/jobs/lost')
  await v.page.route(/jobs\/lost\/runs$/, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback()
    await route.fetch()
    await route.abort('connectionreset')
  }, { times: 1 })
  await v.press('Trigger…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.said('No answer came')
  await v.dialog.getByRole('button', { name: 'Close' }).click()
  const [first] = await runsOf('lost')
  await v.press('Trigger…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('is the run of your earlier request')
  await v.page.locator('.notice').getByRole('link', { name: first.id }).waitFor()
  assert.equal((await runsOf('lost')).length, 1)
  // Another one on purpose has a key of its own.
  await clean(v)
  await v.press('Make another')
  await v.told('Accepted')
  assert.equal(await v.page.evaluate(() => document.activeElement.id), 'main')
  assert.equal((await runsOf('lost')).length, 2)
  const keys = v.sent.map((r) => r.headers()['idempotency-key'])
  assert.ok(keys[0] === keys[1] && keys[1] !== keys[2], String(keys))
  await v.end()
})

test('a button is disabled while its request runs, and a dialog that was closed meanwhile tells the outcome', async () => {
  await server.put('slow', { target: exec('true') })
  const v = await act(server.console + '/jobs/slow')
  const answer = await v.hold(/jobs\/slow\/(runs|pause)$/, 'POST', problem(503, 'outcome_unknown'))
  await v.press('Trigger…')
  const button = v.dialog.locator('button[type=submit]')
  await button.evaluate((e) => (e.click(), e.click()))
  await v.dialog.getByRole('button', { name: 'Asking …' }).waitFor()
  await button.click({ force: true })
  await v.page.keyboard.press('Enter')
  await v.dialog.getByRole('button', { name: 'Close' }).click()
  await v.dialog.waitFor({ state: 'detached' })
  await answer()
  await v.told('It may have been done')
  assert.equal(v.sent.length, 1)

  const pause = v.page.getByRole('button', { name: 'Pause', exact: true })
  await pause.evaluate((e) => (e.click(), e.click())) // before anything is drawn
  await v.page.locator('button[aria-disabled=true]', { hasText: 'Pause' }).waitFor()
  await pause.click({ force: true })
  await v.page.keyboard.press('p')
  await answer()
  await until(async () => (await v.page.locator('.notice.bad').count()) === 2)
  assert.equal(v.sent.length, 2)
  await v.end()
})

async function signedIn(at, token, readOnly = false) {
  const v = await act(guarded.console + at)
  if (readOnly) await v.page.getByLabel('only look').check()
  await v.page.getByLabel('Token').fill(token)
  await v.press('Sign in')
  return v
}

test('who may only look, or only run, sees the other buttons disabled with the scope that they need, and the server holds to it', async () => {
  await guarded.call('PUT', '/v1/jobs/payroll', { target: exec('false'), ...once }, tokens.admin)
  const { id } = await guarded.call('POST', '/v1/jobs/payroll/runs', {}, tokens.admin)
  await until(async () => (await guarded.call('GET', '/v1/runs/' + id, undefined, tokens.admin)).state === 'dead')
  const pages = {
    '/jobs/payroll': { 'Trigger…': 'run', Pause: 'write', 'Delete…': 'write' },
    ['/runs/' + id]: { 'Retry…': 'run', 'Discard…': 'run' },
    '/runs': { 'Retry matching…': 'run', 'Cancel matching…': 'run' },
    '/jobs?q=pay': { 'Pause matching…': 'write', 'Resume matching…': 'write', 'Label matching…': 'write', 'Delete matching…': 'write' },
    '/dead-letters?pattern=exit%3A+exit+code+%23': { 'Redrive 1…': 'run', 'Discard 1…': 'run' },
  }
  for (const [token, look, may] of some([[tokens.run, false, ['run']], [tokens.admin, true, []], [tokens.read, false, []], [tokens.admin, false, ['run', 'write']]], 2)) {
    const v = await signedIn('/', token, look)
    await v.page.getByRole('heading', { name: 'Overview' }).waitFor()
    for (const [at, buttons] of Object.entries(pages)) {
      await v.page.goto(guarded.console + at)
      for (const [name, scope] of Object.entries(buttons)) {
        const button = v.page.getByRole('button', { name, exact: true })
        await button.waitFor()
        const able = may.includes(scope)
        assert.equal(await button.getAttribute('aria-disabled'), able ? null : 'true', `${at} ${name}`)
        if (able) continue
        const told = await button.evaluate((e) => document.getElementById(e.getAttribute('aria-describedby')).textContent)
        assert.match(told, new RegExp(`needs the scope ${scope}.*Sign in again without “only look”, or with another token`), `${at} ${name}`)
        await button.click({ force: true })
        await v.told('needs the scope ' + scope)
      }
      if (look) await clean(v)
    }
    if (!may.length) for (const key of ['t', 'p', 'r']) await v.page.keyboard.press(key)
    assert.equal(await v.dialog.count(), 0)
    const secret = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')).token)
    const changes = [['run', 'POST', '/v1/runs/cancel', { runs: [id] }], ['run', 'POST', '/v1/dead-letters/discard', { runs: [id], dry_run: true }], ['write', 'POST', '/v1/jobs/payroll/resume', {}], ['write', 'POST', '/v1/jobs/batch/delete', { matching: {}, dry_run: true }]]
    for (const [scope, ...change] of changes) {
      if (may.includes(scope)) await guarded.call(...change, secret)
      else await assert.rejects(guarded.call(...change, secret), /forbidden/)
    }
    assert.equal(v.sent.length, 0)
    await v.end()
  }
})

test('a session of another tenant cannot act on what it cannot see', async () => {
  await guarded.call('PUT', '/v1/jobs/payroll', { target: exec('sleep', '600'), timeout: '1h' }, tokens.admin)
  const { id } = await guarded.call('POST', '/v1/jobs/payroll/runs', {}, tokens.admin)
  // The page as it is while the other tenant's session comes to be that of the tab.
  const v = await signedIn('/runs/' + id, tokens.admin)
  await v.press('Cancel…')
  await v.dialog.waitFor()
  const other = (await guarded.call('POST', '/v1/session', { scopes: ['read', 'run', 'write'] }, tokens.acme)).token
  await v.page.route('**/cancel', (route) => route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer ' + other } }))
  await v.press('Cancel the run')
  await v.said('Not done: it is not there')
  for (const [method, at, body] of [['POST', '/v1/jobs/payroll/pause', {}], ['POST', '/v1/jobs/payroll/runs', {}], ['DELETE', '/v1/jobs/payroll'], ['POST', `/v1/runs/${id}/retry`, { force: true }]]) {
    await assert.rejects(guarded.call(method, at, body, other), /404/)
  }
  assert.equal((await guarded.call('POST', '/v1/runs/cancel', { matching: {} }, other)).count, 0)
  assert.ok(!['cancelled'].includes((await guarded.call('GET', '/v1/runs/' + id, undefined, tokens.admin)).state))
  await guarded.call('POST', `/v1/runs/${id}/cancel`, {}, tokens.admin)
  await v.end()
})

test('a session that ends takes its dialog and its notices along, and what comes in later is not told to the next', async () => {
  await guarded.call('PUT', '/v1/jobs/hush', { target: exec('true') }, tokens.admin)
  const v = await signedIn('/jobs/hush', tokens.admin)
  await v.press('Pause', true)
  await v.told('is paused')
  const answer = await v.hold('**/v1/jobs/hush/runs', 'POST', problem(500, 'internal'))
  await v.press('Trigger…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.dialog.getByRole('button', { name: 'Asking …' }).waitFor()
  const { id } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')))
  await guarded.call('DELETE', '/v1/tokens/' + id, undefined, tokens.admin)
  await v.ask()
  await v.page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  assert.equal((await v.dialog.count()) + (await v.page.locator('.notice').count()), 0)
  await v.page.getByLabel('Token').fill(tokens.acme)
  await v.press('Sign in')
  await v.page.getByText('There is no job hush', { exact: false }).first().waitFor()
  const answered = v.page.waitForResponse((r) => r.status() === 500)
  await answer()
  await answered
  await v.ask()
  await v.landed()
  assert.equal((await v.dialog.count()) + (await v.page.locator('.notice').count()), 0)
  await v.end()
})

deep('a server that starts again under a dialog is not asked a second time', async () => {
  const own = await Server.start()
  await own.put('kept', { target: exec('true') })
  const v = await act(own.console + '/jobs/kept')
  try {
    await v.press('Trigger…')
    await own.kill()
    await v.dialog.getByRole('button', { name: 'Trigger' }).click()
    await v.said('No answer came')
    await own.again()
    await v.page.locator('.lost').waitFor({ state: 'detached' })
    assert.equal(v.sent.length, 1)
    assert.deepEqual((await own.call('GET', '/v1/jobs/kept/runs')).items, [])
    await v.dialog.getByRole('button', { name: 'Trigger' }).click()
    await v.told('is the run of your earlier request')
    assert.equal((await own.call('GET', '/v1/jobs/kept/runs')).items.length, 1)
  } finally {
    await v.end()
    await own.stop()
  }
})

test('no page of another site can act, by a form or by a request', async () => {
  await server.put('target', { target: exec('true') })
  const site = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<title>elsewhere</title>')).listen(0, '127.0.0.1')
  await new Promise((resolve) => site.once('listening', resolve))
  const v = await Visit.to(undefined)
  const answers = []
  v.page.on('response', (r) => r.request().method() !== 'GET' && answers.push(r.status()))
  try {
    for (const host of ['127.0.0.1', 'localhost']) {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        await v.page.goto(`http://${host}:${site.address().port}/`)
        await Promise.all([
          v.page.waitForResponse((r) => r.url().endsWith('/runs')),
          v.page.evaluate(([action, type]) => {
            const form = Object.assign(document.createElement('form'), { action, method: 'post', enctype: type, target: 'within' })
            document.body.append(Object.assign(document.createElement('iframe'), { name: 'within' }))
            form.append(Object.assign(document.createElement('input'), { name: '{"x":"', value: '"}' }))
            document.body.append(form)
            form.submit()
          }, [server.address + '/v1/jobs/target/runs', type]),
        ])
      }
      await v.page.goto(`http://${host}:${site.address().port}/`)
      const got = await v.page.evaluate(
        (at) => Promise.all([['no-cors', 'text/plain'], ['cors', 'application/json'], ['no-cors', 'application/json']].map(([mode, type]) => fetch(at, { method: 'POST', mode, credentials: 'include', headers: { 'Content-Type': type }, body: '{}' }).then((r) => r.status, () => 'none'))),
        server.address + '/v1/jobs/target/runs',
      )
      assert.ok(got.every((status) => status === 0 || status === 'none'), String(got))
    }
    assert.ok(answers.length >= 8 && answers.every((status) => status === 403 || status === 204), String(answers))
    assert.deepEqual(await runsOf('target'), [])
  } finally {
    await v.end()
    site.close()
  }
})
