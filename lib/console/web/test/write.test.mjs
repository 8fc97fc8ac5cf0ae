// Jobs are written: by form and as YAML, taken over from a text, run again with another payload.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { axe, belfry, close, exec, once, Server, Visit } from './harness.mjs'

let server, guarded
const tokens = {}
before(async () => {
  server = await Server.start()
  guarded = await Server.start({
    command: 'serve',
    arguments: ['--auth', 'required'],
    before: async (s) => {
      for (const [name, scope, tenant] of [['admin', 'admin', 'default'], ['write', 'write', 'default'], ['read', 'read', 'default'], ['acme', 'write', 'acme']]) {
        const made = await promisify(execFile)(belfry, ['token', 'create', '--scope', scope, '--tenant', tenant, '--name', name, '--data', path.join(s.folder, 'data'), '--output', 'json'])
        tokens[name] = JSON.parse(made.stdout).token
      }
    },
  })
})
after(async () => {
  await server.stop()
  await guarded.stop()
  await close()
})

const job = (name) => server.call('GET', '/v1/jobs/' + name)

/** write opens a page to write on, and keeps which changes it asked for: no dry runs, no conversions. */
async function write(at, options) {
  const v = await Visit.to(undefined, options)
  v.sent = []
  v.page.on('request', (r) => {
    const url = r.url()
    if (r.method() !== 'GET' && !url.includes('dry_run=true') && !url.includes('/console/convert/') && !/\/v1\/(runs\/last|session)$/.test(url)) v.sent.push(r)
  })
  await v.page.goto(at)
  const { page } = v
  v.dialog = page.getByRole('dialog')
  v.yaml = page.getByLabel('YAML of the job')
  v.field = (name) => page.getByLabel(name, { exact: true })
  v.press = (name) => page.getByRole('button', { name, exact: true }).click()
  v.fires = page.getByRole('region', { name: 'Next fires' })
  v.told = (text) => page.locator('.notice', { hasText: text }).waitFor()
  /** says waits until the YAML has a text. */
  v.says = (text) => page.waitForFunction((t) => document.querySelector('.yaml textarea')?.value.includes(t), text)
  v.ready = (name) => page.locator('button.main:not([aria-disabled])', { hasText: name }).first().waitFor()
  return v
}

/** done says that the page kept its policy, and had no error but refusals of what was written. */
async function done(v) {
  assert.deepEqual(v.errors.filter((e) => !/status of 4(00|04|12|22)/.test(e)), [])
  assert.deepEqual(await v.violations(), [])
  await v.end()
}

/** looks says that a page is accessible in a state that pages.test.mjs does not come to, at 320 and at 1280. */
async function looks(v) {
  const wrong = []
  for (const [width, colorScheme] of process.env.DEEP ? [[320, 'dark'], [320, 'light'], [1280, 'dark'], [1280, 'light']] : [[320, 'dark'], [1280, 'light']]) {
    await v.page.setViewportSize({ width, height: 800 })
    await v.page.emulateMedia({ colorScheme })
    wrong.push(...(await axe(v.page)).map((w) => `${width} ${colorScheme}: ${w}`))
    if (await v.page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push(`${width}: scrolls sideways`)
  }
  assert.deepEqual([...wrong, ...(await v.violations())], [])
}

test('a job is created by form and YAML, with its fires and a clock change, and what the form does not know stays', async () => {
  await server.put('told', { target: exec('true') })
  const v = await write(server.console + '/jobs')
  await v.page.getByRole('link', { name: 'New job' }).click()
  await v.yaml.waitFor()
  assert.equal(await v.page.getByText('the job needs a name').count(), 0)
  await v.field('Name').fill('told')
  await v.page.locator('.jobform').getByText('there is a job told already').waitFor()
  await v.field('Name').fill('night')
  await v.says('name: night')
  await v.fires.getByText('At 09:00, Europe/Paris').waitFor()
  await v.field('Cron').fill('30 2 * * *')
  await v.field('Time zone').fill('Europe/Berlin')
  await v.says('timezone: Europe/Berlin')

  // The text is the whole of it: the form knows neither the callback nor a comment.
  const text = (await v.yaml.inputValue()).replace('schedule:', '# at night\nschedule:\n  start: 2027-03-26T00:00:00Z').replace('target:', 'on:\n  failed: {job: told}\npayload: {order: 12345678901234567890}\ntarget:')
  await v.yaml.fill(text)
  await v.fires.getByText('Clocks go forward: there is no 02:30 that day.').waitFor()
  await v.field('Timeout').fill('5 parsecs')
  await v.page.locator('.jobform').getByText('want a duration such as').waitFor()
  assert.equal(await v.field('Timeout').getAttribute('aria-invalid'), 'true')
  await v.page.getByRole('button', { name: /^Line \d+$/ }).click()
  assert.match(await v.yaml.evaluate((e) => e.value.slice(e.selectionStart, e.selectionEnd)), /^timeout: 5 parsecs$/)
  await looks(v)
  await v.field('Timeout').fill('5m')
  await v.says('timeout: 5m')
  const kept = await v.yaml.inputValue()
  for (const part of ['# at night', '  failed: {job: told}', 'payload: {order: 12345678901234567890}', '  start: 2027-03-26T00:00:00Z']) assert.ok(kept.includes(part), `${part} is gone from\n${kept}`)

  await v.yaml.fill(kept + 'labels: {a: b\n')
  await v.page.locator('.yaml').getByText(/Line \d+, column \d+:/).waitFor()
  assert.equal(await v.field('Cron').inputValue(), '30 2 * * *')
  assert.ok(await v.field('Cron').isDisabled())
  await looks(v)
  await v.yaml.fill(kept + 'labels: {team: billing}\n')
  await v.page.getByLabel('Label 1, value').waitFor()
  assert.equal(await v.page.getByLabel('Label 1, value').inputValue(), 'billing')

  await v.ready('Create')
  await v.press('Create…')
  await v.dialog.getByText('28 Mar 2027 03:00:00').or(v.dialog.getByText('26 Mar 2027 02:30:00')).first().waitFor()
  await v.dialog.locator('summary').click()
  assert.match(await v.dialog.locator('.cli code').first().innerText(), /^printf '%s' '\{"name":"night".*12345678901234567890.* \| belfry job apply -f - --address /s)
  await looks(v)
  await v.dialog.getByRole('button', { name: 'Create' }).click()
  await v.told('The job night is created')
  assert.equal(v.sent.length, 1)
  assert.equal(v.sent[0].headers()['if-none-match'], '*')
  const made = await (await fetch(server.address + '/v1/jobs/night')).text()
  assert.match(made, /12345678901234567890/)
  const { labels, on, schedule, timeout } = JSON.parse(made)
  assert.deepEqual([labels, on, schedule.timezone, timeout], [{ team: 'billing' }, { failed: { job: 'told' } }, 'Europe/Berlin', '5m'])
  assert.match(v.page.url(), /\/jobs\/night$/)
  await done(v)
})

// deep
test('every kind of job that the form knows is what the API takes, and what was typed is there again', async () => {
  const v = await write(server.console + '/new')
  await v.yaml.waitFor()
  await v.field('Name').fill('kinds')
  const runs = v.page.locator('select[aria-label="What it does"]')
  await runs.selectOption('http')
  await v.field('URL').fill('http://127.0.0.1:1/x')
  await v.press('Add: header')
  await v.page.getByLabel('Header 1, name').fill('Authorization')
  await v.page.getByLabel('Header 1, what it holds').selectOption('secret')
  await v.page.getByLabel('Header 1, name of the secret').fill('key')
  await v.says('secret: key')
  await runs.selectOption('handler')
  await v.field('Handler').fill('resize')
  await v.says('name: resize')
  await v.field('Timeout').fill('7m')
  await runs.selectOption('workflow')
  assert.equal(await v.field('Timeout').count(), 0)
  await v.page.getByText('Its 2 steps stand in the YAML: first, second.').waitFor()
  await v.ready('Create')
  await runs.selectOption('http')
  assert.equal(await v.field('Timeout').inputValue(), '7m')
  await v.says('url: http://127.0.0.1:1/x')
  await runs.selectOption('exec')
  await v.page.getByLabel('Argument 2', { exact: true }).fill('two\nlines')
  await v.press('Add: argument')
  await v.page.getByLabel('Argument 3', { exact: true }).fill('"$HOME"')
  await v.page.getByText('at an interval').click()
  await v.field('Every').fill('90s')
  await v.page.getByText('on demand', { exact: true }).click()
  await v.fires.getByText('It runs only when somebody asks for it.').waitFor()
  await v.page.getByText('at an interval').click()
  assert.equal(await v.field('Every').inputValue(), '90s')
  await v.field('Payload').fill('{"a": 1.0')
  await v.page.getByText('This is not JSON. The job keeps').waitFor()
  await v.page.locator('button.main[aria-disabled]', { hasText: 'Create' }).waitFor()
  await v.page.getByRole('radio', { name: 'text' }).check()
  await v.says(`payload: '{"a": 1.0'`)
  await v.field('Attempts').fill('3')
  await v.field('If one is due while another goes on').selectOption('queue')
  await v.page.getByLabel('How many may go on at once').fill('2')
  await v.says('limit: 2')
  await v.ready('Create')
  await v.press('Create…')
  await v.dialog.getByRole('button', { name: 'Create' }).click()
  await v.told('The job kinds is created')
  const { target, schedule, payload, retry, overlap } = await job('kinds')
  assert.deepEqual([target, schedule, payload, retry.max_attempts, overlap.policy, overlap.limit], [exec('echo', 'two\nlines', '"$HOME"'), { every: '90s' }, '{"a": 1.0', 3, 'queue', 2])
  await done(v)
})

test('an edit shows what it means, and two people that edit the same job lose nothing unawares', async () => {
  await server.put('pair', { schedule: { cron: '0 9 * * *', timezone: 'UTC' }, target: exec('true'), description: 'as it was' })
  const ada = await write(server.console + '/jobs/pair')
  await ada.page.getByRole('link', { name: 'Edit' }).click()
  const bob = await write(server.console + '/jobs/pair/edit')
  await ada.field('Cron').fill('30 9 * * *')
  await ada.ready('Save')
  await bob.field('Description').fill('as Bob has it')
  await bob.ready('Save')
  await bob.press('Save…')
  await bob.dialog.getByText('1 line removed, 1 added').waitFor()

  await ada.press('Save…')
  await ada.dialog.locator('li.d-minus', { hasText: 'cron: 0 9 * * *' }).waitFor()
  await ada.dialog.getByText(/of the next fires fall away/).waitFor()
  await ada.dialog.getByText('No run starts by this').waitFor()
  await ada.dialog.getByRole('button', { name: 'Save' }).click()
  await ada.told('The job pair is saved')
  assert.match(ada.sent[0].headers()['if-match'], /^"/)

  await bob.dialog.getByRole('button', { name: 'Save' }).click()
  await bob.page.getByText('Somebody has changed pair since you began').waitFor()
  assert.equal(bob.sent.length, 1)
  assert.equal((await job('pair')).description, 'as it was')
  await bob.press('Look at theirs')
  await bob.page.locator('.conflict li.d-plus', { hasText: '30 9 * * *' }).waitFor()
  await looks(bob)
  await bob.press('Keep editing')
  await bob.page.locator('.conflict').waitFor({ state: 'detached' })
  assert.equal(await bob.field('Description').inputValue(), 'as Bob has it')
  await bob.press('Save…')
  await bob.dialog.getByRole('button', { name: 'Save' }).click()
  await bob.page.getByText('Somebody has changed pair since you began').waitFor()
  await bob.press('Overwrite theirs…')
  await bob.dialog.getByText('What somebody else has made of it since you began goes').waitFor()
  await bob.dialog.locator('li.d-minus', { hasText: '30 9 * * *' }).waitFor()
  await bob.dialog.getByRole('button', { name: 'Overwrite' }).click()
  await bob.told('The job pair is saved')
  const { description, schedule } = await job('pair')
  assert.deepEqual([description, schedule.cron, bob.sent.length], ['as Bob has it', '0 9 * * *', 3])
  await done(ada)
  await done(bob)
})

// deep
test('a save of which nobody knows the outcome is looked at, and never sent a second time', async () => {
  await server.put('lost', { target: exec('true') })
  const v = await write(server.console + '/jobs/lost/edit')
  let answer = 'lost'
  await v.page.route('**/v1/jobs/lost', async (route) => {
    if (route.request().method() !== 'PUT') return route.fallback()
    if (answer === 'lost') await route.fetch() // it arrives, and its answer does not
    if (answer !== 'unknown') return route.abort('connectionreset')
    return route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Service Unavailable', status: 503, code: 'outcome_unknown', detail: 'The store did not answer.' }) })
  })
  await v.field('Description').fill('it arrives')
  await v.ready('Save')
  await v.press('Save…')
  await v.dialog.getByRole('button', { name: 'Save' }).click()
  await v.dialog.getByText('No answer came. It may have been done.').waitFor()
  assert.equal(await v.dialog.getByRole('button', { name: 'Save' }).count(), 0)
  await v.dialog.getByRole('button', { name: 'Look again' }).click()
  await v.told('The job lost is saved')
  assert.equal((await job('lost')).description, 'it arrives')
  assert.equal(v.sent.length, 1)

  for (answer of ['gone', 'unknown']) {
    await v.page.getByRole('link', { name: 'Edit' }).click()
    await v.field('Description').fill('it does not')
    await v.ready('Save')
    await v.press('Save…')
    await v.dialog.getByRole('button', { name: 'Save' }).click()
    await v.dialog.getByText('It may have been done.').waitFor()
    await v.dialog.getByRole('button', { name: 'Look again' }).click()
    await v.dialog.getByText('It was not done: the job is as it was.').waitFor()
    await v.dialog.getByRole('button', { name: 'Save' }).waitFor()
    await v.page.keyboard.press('Escape')
    await v.page.getByRole('link', { name: 'Cancel' }).click()
    await v.dialog.getByRole('button', { name: 'Leave' }).click()
    await v.page.waitForURL(/\/jobs\/lost$/)
  }
  assert.equal(v.sent.length, 3)
  assert.equal((await job('lost')).description, 'it arrives')
  v.errors = v.errors.filter((e) => !/ERR_CONNECTION_RESET|status of 503/.test(e))
  await done(v)
})

test('leaving asks while something is not saved, by links, keys and the way back, and not when it is', async () => {
  await server.put('held', { target: exec('true') })
  const v = await write(server.console + '/jobs')
  await v.page.getByRole('link', { name: 'held' }).click()
  await v.page.getByRole('link', { name: 'Edit' }).click()
  await v.field('Description').fill('not saved')
  await v.says('not saved')
  await v.page.getByRole('link', { name: 'Runs' }).click()
  await v.dialog.getByText('Leave without saving?').waitFor()
  await assert.rejects(v.page.goto(server.console + '/runs'), /ERR_ABORTED/) // the browser asked, and was told to stay
  assert.match(v.errors.pop(), /a dialog/)
  await v.dialog.getByRole('button', { name: 'Stay here' }).click()
  assert.equal(await v.field('Description').inputValue(), 'not saved')
  await v.page.goBack()
  await v.dialog.getByText('Leave without saving?').waitFor()
  assert.match(v.page.url(), /\/jobs\/held\/edit$/)
  await v.page.keyboard.press('Escape')
  await v.page.getByRole('link', { name: 'YAML' }).click() // the same page in another view
  assert.match(v.page.url(), /view=yaml$/)
  assert.match(await v.yaml.inputValue(), /not saved/)
  await v.page.goBack()
  await v.field('Description').waitFor()
  await v.page.evaluate(() => document.activeElement.blur())
  await v.lead('q', '/edit') // keys ask too
  await v.page.keyboard.press('g')
  await v.page.keyboard.press('q')
  await v.dialog.getByText('Leave without saving?').waitFor()
  await v.dialog.getByRole('button', { name: 'Leave' }).click()
  await v.page.waitForURL(/\/queues$/)
  await v.page.goto(server.console + '/jobs/held/edit')
  await v.yaml.waitFor()
  assert.equal(await v.field('Description').inputValue(), '')
  await v.page.getByRole('link', { name: 'Runs' }).click()
  await v.page.waitForURL(/\/runs$/)
  assert.equal(v.sent.length, 0)
  await done(v)
})

async function signIn(v, token) {
  await v.page.getByLabel('Token').fill(token)
  await v.page.getByRole('button', { name: 'Sign in' }).click()
}

test('a session that ends in the middle of an edit keeps what was written; another token has to agree first', async () => {
  await guarded.call('PUT', '/v1/jobs/kept', { target: exec('true') }, tokens.admin)
  const v = await write(guarded.console + '/jobs/kept/edit')
  await signIn(v, tokens.write)
  await v.field('Description').fill('what I wrote')
  await v.says('what I wrote')
  const end = async () => {
    const { id } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')))
    await guarded.call('DELETE', '/v1/tokens/' + id, undefined, tokens.admin)
    await v.ask()
    await v.page.getByText('This tab keeps your changes of kept.').waitFor()
    assert.equal(await v.page.getByText('what I wrote').count(), 0)
  }
  await end()
  await signIn(v, tokens.write)
  await v.field('Description').waitFor()
  assert.equal(await v.field('Description').inputValue(), 'what I wrote')

  await end()
  await signIn(v, tokens.acme)
  await v.page.getByText('It was begun under another token').waitFor()
  assert.equal(await v.page.getByText('what I wrote').count(), 0)
  await v.page.getByRole('link', { name: 'Jobs' }).click()
  await v.page.getByText('There is no job yet').waitFor()
  const { token } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')))
  await guarded.call('DELETE', '/v1/session', undefined, token)
  await v.ask()
  await v.page.getByText('This tab keeps').waitFor()
  await signIn(v, tokens.write)
  await v.page.goBack()
  assert.equal(await v.field('Description').inputValue(), 'what I wrote')
  await v.ready('Save')
  await v.press('Save…')
  await v.dialog.getByRole('button', { name: 'Save' }).click()
  await v.told('The job kept is saved')
  assert.equal((await guarded.call('GET', '/v1/jobs/kept', undefined, tokens.admin)).description, 'what I wrote')
  assert.equal(v.sent.length, 1)
  v.errors = v.errors.filter((e) => !/status of 401/.test(e))
  await done(v)
})

// deep
test('who may only read writes nothing, is told the scope, and sees the fires all the same', async () => {
  await guarded.call('PUT', '/v1/jobs/shown', { schedule: { cron: '0 9 * * *', timezone: 'Asia/Tokyo' }, target: exec('true') }, tokens.admin)
  const v = await write(guarded.console + '/jobs/shown/edit')
  await signIn(v, tokens.read)
  await v.page.getByText('This needs the scope write.').waitFor()
  await v.field('Cron').fill('0 25 * * *')
  await v.page.locator('.jobform').getByText('25').first().waitFor()
  await v.field('Cron').fill('0 10 * * *')
  await v.fires.getByText('At 10:00, Asia/Tokyo').waitFor()
  assert.equal(await v.page.getByRole('button', { name: 'Save…' }).getAttribute('aria-disabled'), 'true')
  await v.page.getByRole('button', { name: 'Save…' }).click({ force: true })
  assert.equal(await v.dialog.count(), 0)
  await v.page.getByRole('link', { name: 'Cancel' }).click()
  await v.dialog.getByRole('button', { name: 'Leave' }).click()
  await v.page.goto(guarded.console + '/import?as=crontab')
  await v.page.getByRole('textbox').first().fill('0 9 * * * /bin/report\n')
  await v.page.getByText('This needs the scope write.').waitFor()
  await v.page.getByText('At 09:00, Europe/Paris').waitFor()
  assert.equal(v.sent.length, 0)
  v.errors = v.errors.filter((e) => !/status of 40[13]/.test(e))
  await done(v)
})

test('from an empty server by a pasted crontab to the first run', async () => {
  const fresh = await Server.start()
  const v = await write(fresh.console + '/jobs')
  await v.page.getByRole('link', { name: 'Paste your crontab' }).click()
  const paste = v.page.getByRole('textbox').first()
  await paste.fill('MAILTO=ops@example.org\n30 2 * * *  echo "from cron"\n@daily true\n@reboot /bin/x\n')
  await v.page.getByText('2 new', { exact: true }).waitFor()
  await v.page.getByRole('heading', { name: 'Not kept: 1' }).waitFor()
  await v.page.getByText('@reboot names no time').waitFor()
  await v.page.getByText('the jobs below call nothing, for the server would refuse').waitFor() // it has no mail server
  assert.match(await v.page.getByLabel('It is').inputValue(), /^$/)
  await v.page.getByLabel('Time zone of its host').fill('Europe/Berlin')
  await v.page.getByText('At 02:30, Europe/Berlin').waitFor()
  assert.match(v.page.url(), /zone=Europe%2FBerlin/)
  await v.page.getByText('2 new', { exact: true }).waitFor()
  await v.page.getByRole('checkbox', { name: /^true-/ }).uncheck()
  await looks(v)
  await v.press('Create 1')
  await v.page.getByText('1 of 1 job done').waitFor()
  assert.equal(v.sent.length, 1)
  assert.equal(v.sent[0].headers()['if-none-match'], '*')
  await v.page.getByRole('link', { name: /^Job echo-/ }).or(v.page.getByRole('link', { name: /^Job / })).first().click()
  await v.press('Trigger…')
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.page.locator('.notice a').click()
  await v.page.locator('pre', { hasText: 'from cron' }).waitFor()
  await v.page.goto(fresh.console + '/import')
  await v.page.getByRole('textbox').first().fill('@daily true\n30 4 * * *  echo "from cron"\n')
  await v.page.getByLabel('Time zone of its host').fill('Europe/Berlin')
  await v.page.getByText('exists, and is another', { exact: true }).waitFor()
  await v.page.getByText('new', { exact: true }).waitFor()
  await done(v)
  await fresh.stop()
})

const cronJob = 'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: invoices, namespace: billing}\nspec:\n  schedule: "*/5 * * * *"\n  timeZone: Europe/Madrid\n  concurrencyPolicy: Forbid\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [echo, hi]}]}}}}\n'
const scheduled = { Name: 'nightly', GroupName: 'default', ScheduleExpression: 'cron(0 3 * * ? *)', ScheduleExpressionTimezone: 'America/New_York', State: 'ENABLED', FlexibleTimeWindow: { Mode: 'OFF' }, Target: { Arn: 'arn:aws:lambda:eu-west-1:123456789012:function:x', RoleArn: 'arn:aws:iam::123456789012:role/r', Input: '{"n": 12345678901234567890}' } }

test('CronJobs and schedules of EventBridge are recognised, and taken over once; what exists is told apart', async () => {
  const v = await write(server.console + '/import?prefix=k8s.')
  const paste = v.page.getByRole('textbox').first()
  await paste.fill(cronJob)
  await v.page.getByText('1 new', { exact: true }).waitFor()
  await v.page.getByText('Every 5 minutes, Europe/Madrid').waitFor()
  await v.press('Create 1')
  await v.page.getByText('created', { exact: true }).waitFor()
  const taken = await job('k8s.billing.invoices')
  assert.equal(taken.schedule.timezone, 'Europe/Madrid')
  await paste.fill(cronJob + '---\n' + cronJob.replace('invoices', 'other').replace('*/5', '*/7'))
  await v.page.getByText('1 new, 1 exists, unchanged').waitFor()
  await paste.fill(cronJob.replace('*/5', '*/9') + '---\n' + cronJob.replace('invoices', 'other'))
  await v.page.getByText('1 new, 1 exists, and is another').waitFor()
  await v.page.getByRole('checkbox', { name: 'k8s.billing.invoices' }).check()
  await v.page.getByRole('button', { name: 'Create 2, 1 of them in place of one' }).click()
  await v.page.getByText('2 of 2 jobs done').waitFor()
  assert.deepEqual(v.sent.slice(1).map((r) => ['if-none-match', 'if-match'].filter((h) => h in r.headers())), [['if-match'], ['if-none-match']])
  assert.equal((await job('k8s.billing.invoices')).schedule.cron, '*/9 * * * *')

  await v.page.goto(server.console + '/import?url=' + encodeURIComponent('http://127.0.0.1:1/{name}'))
  await paste.fill(JSON.stringify(scheduled, null, 2))
  await v.page.getByText('At 03:00, America/New_York').waitFor()
  await v.press('Create 1')
  await v.page.getByText('created', { exact: true }).waitFor()
  const [name] = (await server.call('GET', '/v1/jobs')).items.map((j) => j.name).filter((n) => n.includes('nightly'))
  const text = await (await fetch(`${server.address}/v1/jobs/${name}`)).text()
  assert.match(text, /127\.0\.0\.1:1\/nightly/)
  assert.match(text, /12345678901234567890/)

  await paste.fill('resource "aws_scheduler_schedule" "x" {\n}\n')
  await v.page.getByText('It looks like a Terraform file').waitFor()
  await paste.fill('name: plain\ntarget: {exec: {argv: ["true"]}}\n---\ntarget: {exec: {argv: ["true"]}}\n')
  await v.page.getByText('The job needs a name.').waitFor()
  await v.press('Create 1')
  await v.page.getByText('created', { exact: true }).waitFor()
  assert.deepEqual((await job('plain')).target, exec('true'))
  await done(v)
})

// deep
test('an import goes on behind a job that is refused, ends where all would be, and sends nothing twice', async () => {
  const v = await write(server.console + '/import?prefix=part.')
  await v.page.getByRole('textbox').first().fill('1 1 * * * /bin/a\n2 2 * * * /bin/b\n3 3 * * * /bin/c\n')
  await v.page.getByText('3 new', { exact: true }).waitFor()
  const answers = [[409, 'busy'], [200, ''], [503, 'outcome_unknown']]
  await v.page.route(/\/v1\/jobs\/part\.[^?]*$/, async (route) => {
    if (route.request().method() !== 'PUT') return route.fallback()
    const [status, code] = answers.shift()
    if (status === 200) return route.fallback()
    if (status === 503) await route.fetch()
    return route.fulfill({ status, contentType: 'application/problem+json', body: JSON.stringify({ title: 'x', status, code, detail: 'As it is.' }) })
  })
  await v.press('Create 3')
  await v.page.getByText('1 created, 1 may have been done').or(v.page.getByText('1 refused, 1 created, 1 may have been done')).first().waitFor()
  assert.equal(v.sent.length, 3)
  await v.press('Look again')
  await v.page.getByText('1 new, 2 exists, unchanged').waitFor()
  assert.equal(v.sent.length, 3)
  v.errors = v.errors.filter((e) => !/status of (409|503)/.test(e))
  await done(v)
})

const evil = '<img src=x onerror="window.pwned=1">'

test('hostile text is text: in names, in YAML, in a crontab, in what a server says of it', async () => {
  const v = await write(server.console + '/new')
  await v.yaml.fill(`name: '${evil}'\ndescription: "</textarea><script>window.pwned=1</script>\\u202e\\x1b[2J"\nlabels: {'${evil}': x}\nschedule: {cron: '${evil}'}\ntarget: {exec: {argv: ['${evil}']}}\n__proto__: {polluted: 1}\nconstructor: 1\n`)
  await v.page.locator('.refusals', { hasText: '<img src=x' }).waitFor()
  await v.yaml.fill(`name: ok\n${'a: {'.repeat(200)}${'}'.repeat(200)}\n`)
  await v.page.locator('.refusals').first().waitFor()
  await v.yaml.fill('a: &a [x,x,x,x,x,x,x,x,x,x]\n' + 'bcdefghij'.split('').map((c, i) => `${c}: &${c} [${Array(10).fill('*' + 'abcdefghij'[i])}]\n`).join(''))
  await v.page.getByText('its aliases stand for more than').waitFor()
  await v.page.getByRole('link', { name: 'Jobs' }).click()
  await v.dialog.getByRole('button', { name: 'Leave' }).click()
  await v.page.getByRole('link', { name: 'Import' }).click()
  await v.page.getByRole('textbox').first().fill(`0 9 * * * echo '${evil}' </script>\n@reboot ${evil}\n${evil}\n`)
  await v.page.getByText('1 new', { exact: true }).waitFor()
  await v.page.getByText(evil).first().waitFor()
  assert.equal(await v.page.evaluate(() => window.pwned), undefined)
  assert.equal(await v.page.evaluate(() => ({}).polluted), undefined)
  assert.equal(v.sent.length, 0)
  await done(v)
})

// deep
test('a job is created with the keyboard alone', async () => {
  const v = await write(server.console + '/jobs')
  const { keyboard } = v.page
  const to = async (name) => {
    for (let i = 0; i < 80; i++) {
      const at = await v.page.evaluate(() => {
        const e = document.activeElement
        return e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent.trim() ?? e.textContent.trim()
      })
      if (at === name) return
      await keyboard.press('Tab')
    }
    assert.fail(`no way by Tab to ${name}`)
  }
  await v.page.getByRole('link', { name: 'New job' }).waitFor()
  await to('New job')
  await keyboard.press('Enter')
  await v.yaml.waitFor()
  await to('Name')
  await keyboard.type('by-key')
  await v.says('name: by-key')
  await v.ready('Create')
  await v.page.getByRole('heading', { level: 1 }).click()
  await to('Create…')
  await keyboard.press('Enter')
  await v.dialog.locator('button.main:not([aria-disabled])').waitFor()
  await to('Create')
  await keyboard.press('Enter')
  await v.told('The job by-key is created')
  assert.equal(v.sent.length, 1)
  await done(v)
})

test('a run is run again with another payload: a new run, and the first stays; a job that is gone refuses', async () => {
  await server.put('paid', { target: exec('true'), ...once })
  const { id } = await server.trigger('paid', { payload: { order: 7, note: 'first' } })
  const first = await server.until(id, 'succeeded')
  const v = await write(server.console + '/runs/' + id)
  await v.press('Run again…')
  const text = v.dialog.getByLabel('Payload')
  await v.page.waitForFunction(() => document.querySelector('dialog textarea')?.value.includes('first'))
  await text.fill('{"order": 12345678901234567890')
  await v.dialog.getByText('This is not JSON').waitFor()
  await text.fill('{"order": 12345678901234567890, "note": "second"}')
  await v.dialog.getByRole('button', { name: 'Run again' }).click()
  await v.told('It was made from')
  assert.equal(v.sent.length, 1)
  const runs = (await server.call('GET', '/v1/jobs/paid/runs')).items
  assert.equal(runs.length, 2)
  const made = runs.find((r) => r.id !== id)
  assert.match(await (await fetch(`${server.address}/v1/runs/${made.id}/payload`)).text(), /12345678901234567890/)
  assert.deepEqual(await server.call('GET', '/v1/runs/' + id), first)
  await v.page.locator('.notice').getByRole('link', { name: made.id }).click()
  await v.page.getByText('Made from', { exact: true }).waitFor()
  await v.page.locator('.facts').getByRole('link', { name: id }).click()
  await v.page.waitForURL((url) => decodeURIComponent(url.pathname).endsWith(id))
  await server.call('DELETE', '/v1/jobs/paid')
  await v.press('Run again…')
  await v.dialog.getByText('The job paid is gone').waitFor()
  await v.dialog.getByRole('button', { name: 'Run again' }).click({ force: true })
  assert.equal(v.sent.length, 1)
  await done(v)
})
