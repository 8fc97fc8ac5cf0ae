// What an operator can do with many at once: dead letters by cause, runs and jobs by selection and by filter.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { act, clean, close, deep, done, exec, once, Server, shell, some } from './harness.mjs'

let server
before(async () => {
  server = await Server.start()
})
after(async () => {
  await server.stop()
  await close()
})

const problem = (status, code, headers = {}) => ({ status, headers: { 'X-Request-Id': 'r-' + status, ...headers }, contentType: 'application/problem+json', body: JSON.stringify({ title: 'No', status, code, detail: 'in the words of the server' }) })

async function dead(name, count, script) {
  await server.put(name, { target: shell(script), labels: { team: name }, ...once })
  const ids = []
  for (let i = 0; i < count; i++) ids.push((await server.trigger(name)).id)
  for (const id of ids) await server.until(id, 'dead')
  return ids
}
const states = async (ids) => Promise.all(ids.map(async (id) => (await server.call('GET', '/v1/runs/' + id)).state))
const bodies = (v) => v.sent.map((r) => r.postDataJSON())

test('of dead letters with one cause one is tried first, then the others are redriven, at a pace, and no others', async () => {
  const ids = await dead('mail', 4, 'echo "no route to 10.0.0.7" >&2; exit 3')
  const [other] = await dead('other', 1, 'echo "something else" >&2; exit 3')
  await server.put('mail', { target: exec('true'), ...once })
  const v = await act(server.console + '/dead-letters')
  await v.page.getByRole('link', { name: /no route/ }).click()
  await v.press('Redrive 4…')
  await v.dialog.getByText('4 runs').waitFor()
  await v.dialog.getByText('Dead letters with other errors stay').waitFor()
  await clean(v)
  await v.press('Try one first')
  await v.dialog.getByText('It succeeded.').waitFor()
  assert.equal(v.sent.length, 1)
  assert.deepEqual((await states(ids)).sort(), ['dead', 'dead', 'dead', 'succeeded'])
  await v.dialog.getByText('3 runs').waitFor()
  await v.dialog.getByLabel('Runs that start in a second').fill('50')
  await v.press('Redrive the other 3')
  await v.told('3 runs were queued again')
  for (const id of ids) await server.until(id, 'succeeded')
  const { to, ...matching } = bodies(v)[1].matching
  assert.ok(Date.parse(to))
  assert.deepEqual({ ...bodies(v)[1], matching }, { matching: { pattern: 'exit: exit code #: no route to #' }, per_second: 50, max: 3 })
  assert.equal(v.sent.length, 2)
  assert.deepEqual(await states([other]), ['dead'])
  await done(v)
})

test('dead letters are discarded with a note: those that are selected, then the rest of the cause', async () => {
  const ids = await dead('accounts', 3, 'echo "no such account" >&2; exit 4')
  const v = await act(server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: no such account'))
  await v.press('Select')
  const grid = v.page.getByRole('grid', { name: 'Newest runs with this error' })
  await grid.getByRole('row').filter({ hasText: ids[0] }).click()
  assert.equal(await grid.locator('[aria-selected=true]').count(), 1)
  await v.press('Discard 1…')
  await v.dialog.getByLabel('Note').fill('closed <i>on</i> Monday')
  await clean(v)
  await v.dialog.getByRole('button', { name: 'Discard 1' }).click()
  await v.told('1 run was discarded')
  assert.deepEqual(bodies(v), [{ runs: [ids[0]], note: 'closed <i>on</i> Monday' }])
  await v.page.goto(server.console + '/runs/' + ids[0])
  await v.page.getByText('closed <i>on</i> Monday').waitFor()
  assert.equal(await v.page.getByRole('button', { name: 'Discard…' }).count(), 0)
  await v.page.goto(server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: no such account'))
  await v.press('Discard 2…')
  await v.dialog.getByRole('button', { name: 'Discard 2' }).click()
  await v.told('2 runs were discarded')
  assert.deepEqual((await server.call('GET', '/v1/dead-letters?job=accounts')).items, [])
  assert.deepEqual(await states(ids), ['dead', 'dead', 'dead'])
  await done(v)
})

test('a dead letter that succeeded meanwhile is refused by itself, with the words of the server', async () => {
  const ids = await dead('race', 2, 'echo "a race" >&2; exit 5')
  const v = await act(server.console + '/runs/' + ids[0])
  await v.press('Discard…')
  await v.dialog.getByText('1 run').waitFor()
  await server.put('race', { target: exec('true'), ...once })
  await server.call('POST', `/v1/runs/${ids[0]}/retry`, {})
  await server.until(ids[0], 'succeeded')
  await v.dialog.getByRole('button', { name: 'Discard 1' }).click()
  await v.told('0 runs were discarded')
  await v.told('not_dead_letter')
  await done(v)
})

test('runs that match are counted, then cancelled or retried, and what the list leaves out stays', async () => {
  const ids = await dead('bulk', 3, 'exit 6')
  await server.put('bulk', { target: exec('true'), labels: { team: 'bulk' }, ...once })
  const { id: later } = await server.trigger('bulk', { delay: '1h' })
  const v = await act(server.console + '/runs?job=bulk&label=team%3Dbulk')
  await v.page.getByRole('grid', { name: 'Runs' }).waitFor()
  await v.press('Cancel matching…')
  await v.dialog.getByText('0 runs').waitFor() // what is not due is not in the list
  await v.dialog.getByRole('button', { name: 'Cancel 0' }).click({ force: true })
  assert.equal(v.sent.length, 0)
  await v.page.keyboard.press('Escape')
  await v.dialog.waitFor({ state: 'detached' })
  await v.page.keyboard.press('r')
  await v.dialog.getByText('3 runs').waitFor()
  await clean(v)
  const command = await v.dialog.locator('.command code').first().textContent()
  assert.match(command, /^belfry run retry --job=bulk --label=team=bulk --to=\S+ --ended-before=\S+ --address/)
  await v.press('Retry 3', true)
  await v.told('3 runs were queued again')
  for (const id of ids) await server.until(id, 'succeeded')
  assert.equal(v.sent.length, 1)
  assert.ok(Date.parse(bodies(v)[0].ended_before) <= Date.now(), 'a second one would retry what ends again')
  const { to, ...matching } = bodies(v)[0].matching
  assert.deepEqual(matching, { job: 'bulk', labels: { team: 'bulk' } })
  assert.ok(Date.parse(to))
  assert.deepEqual(await states([later]), ['scheduled'])

  await v.page.goto(server.console + '/runs?job=bulk&state=scheduled,succeeded')
  await v.press('Cancel matching…')
  await v.dialog.getByText('1 run', { exact: true }).waitFor()
  await v.dialog.getByLabel('Reason').fill('not needed')
  await v.press('Cancel 1')
  await v.told('1 run was cancelled')
  assert.deepEqual(bodies(v)[1].matching, { job: 'bulk', states: ['scheduled'] })
  assert.deepEqual(await states([later]), ['cancelled'])
  await v.page.goto(server.console + '/runs?job=bulk&state=succeeded')
  assert.equal(await v.page.getByRole('button', { name: 'Cancel matching…' }).getAttribute('aria-disabled'), 'true')
  await done(v)
})

/** lose has the answer to the next change be lost, after what it has started has ended again. */
async function lose(v, ids) {
  const before = await Promise.all(ids.map((id) => server.call('GET', '/v1/runs/' + id)))
  let lost = false
  await v.page.route(/\/(retry|redrive)$/, async (route) => {
    if (lost || route.request().postDataJSON().dry_run) return route.fallback()
    lost = true
    await route.fetch()
    for (const { id, fence } of before) for (let now; !(now?.ended_at && now.fence > fence); ) now = await server.call('GET', '/v1/runs/' + id)
    return route.abort()
  })
}

test('what was started and not answered is not started by a second press, when it has ended again', async () => {
  const ids = await dead('again', 2, 'echo "again" >&2; exit 7')
  await server.put('good', { target: exec('true'), ...once })
  const good = (await server.trigger('good')).id
  await server.until(good, 'succeeded')
  const list = server.console + '/runs?job=again'
  const letters = server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: again')
  const named = async (v, grid) => {
    await v.page.getByRole('grid', { name: grid }).waitFor()
    await v.press('Select', true)
    await v.press('All 2')
  }
  const many = async (v, verb, refused) => {
    await v.dialog.getByText('2 runs', { exact: true }).waitFor()
    await v.press(verb + ' 2', true)
    await v.said('No answer came. It may have been done.')
    await v.dialog.getByText('0 runs').waitFor()
    if (refused) await v.dialog.getByText('2 are refused, precondition_failed').waitFor()
    assert.equal(await v.dialog.getByRole('button', { name: verb + ' 0' }).getAttribute('aria-disabled'), 'true')
  }
  const twice = async (v, press, refused) => {
    await press()
    await v.said('No answer came. It may have been done.')
    await press()
    await refused()
  }
  const rows = [
    ['a retry by force', () => [good], async (v) => {
      await v.page.goto(server.console + '/runs/' + good)
      await v.press('Retry…')
      await v.dialog.getByRole('checkbox').check()
      await twice(v, () => v.press('Retry by force', true), () => v.said('Not done: it was changed meanwhile.'))
    }],
    ['a redrive by name', () => ids, async (v) => {
      await v.page.goto(letters)
      await named(v, 'Newest runs with this error')
      await v.press('Redrive 2…')
      await many(v, 'Redrive', true)
    }],
    ['one that is tried first', async () => [(await server.call('GET', '/v1/dead-letters/groups?job=again')).items[0].run], async (v) => {
      await v.page.goto(letters)
      await v.press('Redrive 2…')
      await v.dialog.getByText('2 runs', { exact: true }).waitFor()
      await twice(v, () => v.press('Try one first'), () => v.dialog.getByText('1 is refused, precondition_failed').waitFor())
      await v.dialog.getByRole('button', { name: 'Redrive 1', exact: true }).waitFor()
    }],
    ['a retry', () => ids.slice(0, 1), async (v) => {
      await v.page.goto(server.console + '/runs/' + ids[0])
      await v.press('Retry…')
      await twice(v, () => v.press('Retry', true), () => v.said('Not done: it was changed meanwhile.'))
    }],
    ['a retry of those that match', () => ids, async (v) => {
      await v.page.goto(list)
      await v.page.getByRole('grid', { name: 'Runs' }).waitFor()
      await v.press('Retry matching…')
      await many(v, 'Retry', false)
    }],
    ['a retry by name', () => ids, async (v) => {
      await v.page.goto(list)
      await named(v, 'Runs')
      await v.press('Retry 2…')
      await many(v, 'Retry', true)
    }],
  ]
  const attempts = (of) => Promise.all(of.map(async (id) => (await server.call('GET', '/v1/runs/' + id)).attempt)) // its number: of more than five attempts the record drops the first
  for (const [what, those, journey] of some(rows, 3)) {
    const of = await those()
    const before = await attempts(of)
    const v = await act()
    await lose(v, of)
    await journey(v)
    assert.deepEqual(await attempts(of), before.map((n) => n + 1), what)
    await v.end()
  }
})

test('runs are selected by keys and by the pointer; a force is asked for, and counted anew', async () => {
  const ids = await dead('picked', 2, 'exit 7')
  await server.put('picked', { target: exec('true'), ...once })
  const { id: good } = await server.trigger('picked')
  await server.until(good, 'succeeded')
  const v = await act(server.console + '/runs?job=picked')
  const grid = v.page.getByRole('grid', { name: 'Runs' })
  await grid.waitFor()
  await v.page.keyboard.press('j')
  await v.page.keyboard.press('x')
  await v.page.getByRole('button', { name: 'Retry 1…' }).waitFor()
  await grid.getByRole('link', { name: ids[0] }).click()
  await grid.getByRole('row').filter({ hasText: ids[1] }).click()
  assert.ok(v.page.url().endsWith('/runs?job=picked'), 'a click on a row opened it')
  await clean(v)
  await v.press('Retry 3…')
  await v.dialog.getByText('2 runs').waitFor()
  await v.dialog.getByText('needs_force').waitFor()
  await v.dialog.getByRole('checkbox').check()
  await v.dialog.getByText('3 runs').waitFor()
  await clean(v)
  await v.press('Retry 3', true)
  await v.told('3 runs were queued again')
  assert.deepEqual(bodies(v)[0].runs.toSorted(), [...ids, good].sort())
  assert.equal(bodies(v)[0].force, true)
  await done(v)
})

test('many go by parts: one that is refused ends it, and who asks again has the others and no more', async () => {
  const v = await act(undefined)
  await server.put('parts', { target: exec('true') })
  const add = (n) => server.call('POST', '/v1/runs/batch', { runs: Array.from({ length: n }, () => ({ job: 'parts', delay: '1h' })) })
  await add(600)
  await v.page.goto(server.console + '/runs?job=parts&state=scheduled')
  await v.press('Cancel matching…')
  await v.dialog.getByText('600 runs').waitFor()
  let parts = 0
  await v.page.route('**/v1/runs/cancel', (route) => (++parts === 2 ? route.fulfill(problem(429, 'busy', { 'Retry-After': '3' })) : route.continue()))
  await v.press('Cancel 600')
  await v.said('Stopped after 200 of 600: too many requests. Try again in 3 s.')
  await v.dialog.getByText('200 of 600 cancelled').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: 'Stop' }).count(), 0)
  assert.equal(v.sent.length, 2)
  await add(100) // since then: these were not counted
  await v.press('Cancel the other 400')
  await v.told('600 runs were cancelled')
  await v.press('Close this notice')
  assert.deepEqual(bodies(v).map((b) => b.max), [200, 200, 200, 200])
  assert.equal(await left(), 100)
  await add(300)
  // Nobody knows what became of a part: the rest is counted anew.
  await v.page.unroute('**/v1/runs/cancel')
  parts = 0
  await v.page.route('**/v1/runs/cancel', (route) => (route.request().postDataJSON().dry_run || ++parts !== 2 ? route.continue() : route.fulfill(problem(503, 'outcome_unknown'))))
  await v.press('Cancel matching…')
  await v.press('Cancel 400')
  await v.said('Stopped after 200 of 400. It may have been done.')
  await v.dialog.getByRole('button', { name: 'Cancel 200' }).waitFor()
  await v.dialog.getByRole('button', { name: 'Close' }).click()
  // Who stops it, or closes the dialog, has the part that is under way.
  await add(200)
  let hold
  await v.page.unroute('**/v1/runs/cancel')
  await v.page.route('**/v1/runs/cancel', (route) => (route.request().postDataJSON().dry_run ? route.continue() : hold(route)))
  const stop = async () => {
    await v.dialog.getByRole('button', { name: 'Stop' }).click()
    assert.equal(await v.dialog.locator('.progress').getByRole('button', { name: 'Stopping …' }).isDisabled(), true)
  }
  for (const end of [stop, () => v.page.keyboard.press('Escape')]) {
    await v.press('Cancel matching…')
    await v.dialog.getByText('400 runs').waitFor()
    const held = new Promise((resolve) => (hold = resolve))
    await v.press('Cancel 400')
    await v.dialog.getByText('0 of 400').waitFor()
    const part = await held
    await end()
    await part.continue()
    await v.told('200 runs were cancelled, or told to stop, then it was stopped')
    await v.press('Close this notice')
    await add(200)
  }
  await v.end()

  async function left() {
    return (await server.call('POST', '/v1/runs/cancel', { dry_run: true, matching: { job: 'parts' } })).count
  }
})

deep('those that are named go on behind a part that was refused, and a slow pace holds between parts', async () => {
  const ids = await dead('named', 4, 'echo "named" >&2; exit 3')
  const v = await act(server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: named'))
  await v.press('Select', true)
  await v.press('All 4')
  await v.press('Redrive 4…')
  await v.dialog.getByText('4 runs').waitFor()
  const pace = v.dialog.getByLabel('Runs that start in a second')
  await pace.fill('')
  await v.press('Redrive 4', true)
  assert.equal(await pace.evaluate((field) => field.validity.valueMissing), true)
  assert.equal(v.sent.length, 0)
  await pace.fill('0.7') // two in a part
  await v.dialog.getByText('Keep this dialog open').waitFor()
  assert.equal(await v.dialog.locator('.command code').count(), 2)
  let parts = 0
  const at = []
  await v.page.route('**/v1/dead-letters/redrive', (route) => {
    at.push(performance.now())
    return ++parts === 2 ? route.fulfill(problem(429, 'busy')) : route.continue()
  })
  await v.press('Redrive 4', true)
  await v.said('Stopped after 2 of 4: too many requests.')
  assert.ok(at[1] - at[0] > 1000 / 0.7, 'a part began before its time')
  await v.press('Redrive the other 2')
  await v.told('4 runs were queued again')
  assert.deepEqual(bodies(v)[2].runs.toSorted(), ids.filter((id) => !bodies(v)[0].runs.includes(id)).sort())
  await v.end()
})

deep('what dies while the dialog is open is not redriven, one that failed again is told, and curl is shown where one request does it', async () => {
  await dead('late', 3, 'echo "late" >&2; exit 3')
  const pattern = 'exit: exit code #: late'
  const v = await act(server.console + '/dead-letters?pattern=' + encodeURIComponent(pattern))
  await v.press('Redrive 3…')
  await v.dialog.getByText('3 runs').waitFor()
  const commands = await v.dialog.locator('.command code').allTextContents()
  assert.match(commands[0], /^belfry dead-letter redrive .*--to=/)
  assert.match(commands[1], /"max":3/)
  await v.dialog.getByLabel('Runs that start in a second').fill('0.1')
  await v.dialog.getByText('that takes 30 s').waitFor()
  assert.equal(await v.dialog.locator('.command code').count(), 1)
  await v.dialog.getByLabel('Runs that start in a second').fill('50')
  await v.press('Try one first')
  await v.dialog.getByText('1 of 1 failed again. exit: exit code 3: late').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: 'Do nothing' }).evaluate((b) => b === document.activeElement && getComputedStyle(b).order === '-1'), true)
  const fresh = await dead('late', 2, 'echo "late" >&2; exit 3')
  await clean(v)
  await v.press('Redrive the other 2')
  await v.told('2 runs were queued again')
  for (const id of fresh) assert.equal((await server.call('GET', '/v1/runs/' + id)).attempts.length, 1)
  await done(v)
})

test('rows of dead letters that are selected stay where they are and stay selected', async () => {
  const ids = await dead('shaky', 3, 'echo "shaky" >&2; exit 3')
  const v = await act(server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: shaky'))
  await v.press('Select', true)
  const grid = v.page.getByRole('grid', { name: 'Newest runs with this error' })
  const row = (n) => grid.locator('.rows [role=row]').nth(n).getByRole('link') // runs end in any order
  await row(2).waitFor()
  await row(0).click()
  await row(2).click({ modifiers: ['Shift'] })
  await v.page.getByRole('button', { name: 'Redrive 3…' }).waitFor()
  const shown = () => grid.locator('.rows [role=row]').evaluateAll((rows) => rows.map((r) => r.querySelector('a').getAttribute('aria-label')))
  const before = await shown()
  await server.call('POST', '/v1/dead-letters/discard', { runs: [ids[2]] })
  await dead('shaky', 21, 'echo "shaky" >&2; exit 3')
  await v.ask()
  await v.page.getByRole('button', { name: '20 new' }).waitFor()
  assert.deepEqual(await shown(), before)
  await v.press('Discard 3…')
  await v.dialog.getByText('3 runs').waitFor()
  await v.page.keyboard.press('Escape')
  await v.dialog.waitFor({ state: 'detached' })
  await v.page.getByRole('button', { name: 'Redrive 3…' }).waitFor()
  await v.press('20 new')
  assert.equal((await shown()).length, 20)
  await v.page.keyboard.press('Escape')
  // One of 24 was discarded. The count is of now, also while the pointer is on its cause.
  await v.page.getByRole('button', { name: 'Redrive 23…' }).waitFor()
  await done(v)
})

test('dead letters beyond the newest 20 are shown, selected, and redriven or discarded', async () => {
  const ids = await dead('deep', 30, 'echo "deep" >&2; exit 3')
  const v = await act(server.console + '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: deep'))
  await v.page.getByText('The newest 20 of 30.').waitFor()
  await v.press('Select', true)
  const grid = v.page.getByRole('grid', { name: 'Newest runs with this error' })
  const last = grid.locator('.rows [role=row]').nth(19)
  await last.getByRole('link').click()
  await v.press('Show 100 more')
  await v.press('All 30')
  await v.page.getByRole('button', { name: 'Discard 30…' }).waitFor()
  await v.press('Select', true)
  await v.press('Select', true)
  for (const n of [25, 27]) await grid.locator('.rows [role=row]').nth(n).getByRole('link').click()
  await v.press('Discard 2…')
  await v.dialog.getByText('2 runs').waitFor()
  await v.press('Discard 2', true)
  await v.told('2 runs were discarded')
  assert.equal(bodies(v)[0].runs.length, 2)
  assert.ok(bodies(v)[0].runs.every((id) => ids.includes(id)))
  // They are told from those that are dead letters still, far down as well.
  await grid.getByText('no longer a dead letter').nth(1).waitFor()
  await v.press('Select', true)
  await v.page.mouse.move(0, 0) // the number stays as it is under a pointer
  await v.page.getByRole('button', { name: 'Redrive 28…' }).waitFor()
  await done(v)
})

deep('the number of a filter is one that can be: by force only, up to so many, and not known until it is counted again', async () => {
  await server.put('fine', { target: exec('true'), ...once })
  const { id } = await server.trigger('fine')
  await server.until(id, 'succeeded')
  const v = await act(server.console + '/runs?job=fine&state=succeeded')
  await v.press('Retry matching…')
  await v.dialog.getByText('0 runs').waitFor()
  await v.dialog.getByText('those are retried by force only').waitFor()
  await v.dialog.getByRole('button', { name: 'Retry 0' }).click({ force: true })
  await v.dialog.getByRole('checkbox').check()
  await v.dialog.getByText('1 run', { exact: true }).waitFor()
  await v.dialog.getByRole('list', { name: 'Runs that match' }).getByText('of the job fine').waitFor()
  await clean(v)
  assert.equal(v.sent.length, 0)

  await dead('gone', 22, 'exit 8')
  await server.call('DELETE', '/v1/jobs/gone')
  await v.page.goto(server.console + '/runs?job=gone')
  await v.press('Retry matching…')
  await v.dialog.getByText('up to 22 runs').waitFor()
  await v.dialog.getByText('Of the first 20, 20 are refused').waitFor()
  await v.press('Retry up to 22')
  await v.page.locator('.notice.bad', { hasText: '0 runs were queued again. 22 are refused' }).waitFor()

  await v.page.route('**/v1/runs/cancel', (route) => route.fulfill(problem(503, 'not_ready')), { times: 1 })
  await v.page.goto(server.console + '/runs')
  await v.press('Cancel matching…')
  await v.said('Not done: the server cannot do it now.')
  await server.trigger('fine', { delay: '1h' })
  await v.press('Count again')
  await v.dialog.getByRole('list', { name: 'Runs that match' }).getByText('of all jobs').waitFor()
  await v.dialog.getByRole('list', { name: 'Runs that match' }).getByText('all that have not ended').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: /^Cancel/ }).getAttribute('aria-disabled'), 'true')
  await v.end()
})

test('a whole tenant is meant by a word, and a changed filter leaves select mode on', async () => {
  await server.put('whole', { target: shell('sleep 3600') })
  const { id } = await server.trigger('whole')
  await server.until(id, 'running')
  const v = await act(server.console + '/runs')
  await v.press('Cancel matching…')
  const button = v.dialog.getByRole('button', { name: /^Cancel [1-9]/ })
  await button.waitFor()
  assert.equal(await button.getAttribute('aria-disabled'), 'true')
  await v.dialog.getByLabel('No filter is set').fill('all jobs')
  assert.equal(await button.getAttribute('aria-disabled'), null)
  await clean(v)
  await button.click()
  await v.told('cancelled, or told to stop')
  await server.until(id, 'cancelled')
  await server.put('whole', { target: exec('true') })
  await server.until((await server.trigger('whole')).id, 'succeeded')
  await v.page.goto(server.console + '/runs?job=whole')
  await v.press('Select', true)
  await v.page.getByText('A click selects a row').waitFor()
  await v.page.getByRole('grid', { name: 'Runs' }).getByRole('link', { name: id }).click()
  await v.page.getByRole('button', { name: 'Retry 1…' }).waitFor()
  for (const width of [1280, 390]) {
    await v.page.setViewportSize({ width, height: 800 })
    await v.page.waitForFunction(() => [...document.querySelectorAll('.grid .rows .c-state')].some((cell) => cell.textContent === 'succeeded'))
    assert.deepEqual(await v.page.locator('.grid .rows .c-state').evaluateAll((cells) => cells.filter((c) => c.scrollWidth > c.clientWidth).map((c) => c.textContent)), [])
  }
  await v.page.setViewportSize({ width: 1280, height: 800 })
  await v.page.getByRole('checkbox', { name: 'cancelled' }).check({ force: true })
  await v.page.getByRole('button', { name: 'Retry 0…' }).waitFor()
  await v.press('All 1') // the list of the filter has come
  await v.page.getByRole('button', { name: /^Retry [1-9]/ }).waitFor()
  await done(v)
})
