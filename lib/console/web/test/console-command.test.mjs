// The pages as belfry console shows them: of a server elsewhere, opened with the address that it prints.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, close, Command, exec, once, Server, Visit } from './harness.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let server, token
before(async () => {
  server = await Server.start({
    command: 'serve',
    arguments: ['--auth', 'required'],
    before: async (s) => {
      const made = await promisify(execFile)(belfry, ['token', 'create', '--scope', 'write', '--name', 'ops', '--data', path.join(s.folder, 'data'), '--output', 'json'])
      token = JSON.parse(made.stdout).token
      s.tokenFile = path.join(s.folder, 'token')
      await writeFile(s.tokenFile, token, { mode: 0o600 })
    },
  })
  await server.call('PUT', '/v1/jobs/payroll', { target: exec('true'), ...once }, token)
})
after(async () => {
  await server.stop()
  await close()
})

const opened = (...args) => Command.start('--address', server.address, '--token-file', server.tokenFile, ...args)

test('the printed address opens one tab, which stays signed in and shows neither key nor token', async () => {
  const c = await opened()
  const first = await c.next()
  const v = await Visit.to(first)
  const { page } = v
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Jobs', exact: true }).first().click()
  await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  assert.equal(await page.evaluate(() => location.hash), '')
  await page.reload()
  await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage }) + document.cookie + document.documentElement.outerHTML + location.href + JSON.stringify(history.state))
  const key = first.split('#key=')[1]
  assert.ok(!kept.includes(key) && !kept.includes(token), 'a key or the token is kept')
  assert.equal(await page.evaluate(() => document.cookie + localStorage.getItem('belfry-session')), 'null')
  assert.ok(!v.requests.some((r) => r.includes(key) && !r.includes('#')), 'the key is in a request')
  assert.deepEqual(await v.violations(), [])
  assert.deepEqual(v.errors, [])

  // The address was used. Opened again in its own tab it changes nothing; another tab is refused.
  await page.goto(first)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const other = await v.context.newPage()
  await other.goto(first)
  await other.getByText('This address was used').waitFor()
  assert.equal(await other.evaluate(() => location.hash), '')

  // The next address, in the tab that has asked for it.
  const second = await c.next()
  assert.notEqual(second, first)
  await other.goto(second)
  await other.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(await other.evaluate(() => location.hash), '')

  // Who signs in again, in the same tab, leaves no session behind.
  const held = () => other.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')).token)
  const old = await held()
  const ended = other.waitForResponse((r) => r.request().method() === 'DELETE' && r.url().endsWith('/v1/session'))
  await other.goto(await c.next())
  await ended
  assert.notEqual(await held(), old)
  const asked = async (held) => (await fetch(new URL('/v1/jobs', second), { headers: { Authorization: 'Bearer ' + held } })).status
  assert.deepEqual([await asked(old), await asked(await held())], [401, 200])
  await v.end()
  assert.equal(await c.stop(), 0)
})

test('a link in a new tab asks for an address, and stays where it is when it is given one', async () => {
  const c = await opened('--read-only')
  const first = await c.next()
  const v = await Visit.to(first.replace('/console#', '/console/jobs/payroll#'))
  const { page } = v
  await page.getByRole('heading', { name: 'payroll' }).waitFor()
  await page.getByRole('button', { name: 'Pause', exact: true }).click({ force: true })
  await page.getByText('End the command belfry console and start it without --read-only').last().waitFor()
  // Texts are read by this process: what changes nothing is there all the same.
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('YAML of the job').fill('schedule: {cron: 0 9 * * *, timezone: Asia/Tokyo}\ntarget: {exec: {argv: ["true"]}}\n')
  await page.getByRole('region', { name: 'Next fires' }).getByText('At 09:00, Asia/Tokyo').waitFor()
  await page.locator('.note', { hasText: 'start it without --read-only' }).first().waitFor()
  assert.equal(await page.getByRole('button', { name: 'Save…' }).getAttribute('aria-disabled'), 'true')
  const other = await v.context.newPage()
  await other.goto(first.split('#')[0] + '/jobs')
  await other.getByRole('heading', { name: 'an address from the terminal' }).waitFor()
  assert.ok(!(await other.content()).includes('payroll'))
  await other.evaluate(axe)
  assert.deepEqual(await other.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((f) => f.id))), [])
  await other.setViewportSize({ width: 320, height: 800 })
  assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it scrolls sideways')
  await other.getByLabel('Address').fill('nonsense')
  await other.getByRole('button', { name: 'Sign in' }).click()
  await other.locator('.refused').getByText('terminal').waitFor()
  await other.getByLabel('Address').fill(await c.next())
  await other.getByRole('button', { name: 'Sign in' }).click()
  await other.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  assert.ok(other.url().endsWith('/console/jobs'))
  await v.end()
})

test('a server that is away and comes back costs no session, and the commands that are shown name it', async () => {
  const c = await opened()
  const v = await Visit.to((await c.next()).replace('/console#', '/console/runs#'))
  const { page } = v
  await page.getByText('--address ' + server.address).first().waitFor()
  await server.kill()
  await v.ask()
  await page.getByText('no answer from Belfry').first().waitFor()
  await page.getByText('what is shown may be old').waitFor()
  await server.again()
  await server.call('POST', '/v1/jobs/payroll/runs', {}, token)
  await v.ask()
  await page.locator('a[href*="/runs/payroll~"]').first().waitFor()
  await page.getByText('what is shown may be old').waitFor({ state: 'detached' })
  await v.end()
})
