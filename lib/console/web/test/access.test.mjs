import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, close, exec, once, Server, Visit } from './harness.mjs'

let server
const tokens = {}
before(async () => {
  server = await Server.start({
    command: 'serve',
    arguments: ['--auth', 'required'],
    before: async (s) => {
      for (const [name, scope, tenant] of [['admin', 'admin', 'default'], ['read', 'read', 'default'], ['run', 'run', 'default'], ['acme', 'read', 'acme']]) {
        const made = await promisify(execFile)(belfry, ['token', 'create', '--scope', scope, '--tenant', tenant, '--name', name, '--data', path.join(s.folder, 'data'), '--output', 'json'])
        tokens[name] = JSON.parse(made.stdout)
      }
    },
  })
  await server.call('PUT', '/v1/jobs/payroll', { target: exec('true'), ...once }, tokens.admin.token)
})
after(async () => {
  await server.stop()
  await close()
})

async function give(page, token) {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('who has no token is asked for one, and sees the page that was asked for', async () => {
  const v = await Visit.to(server.console + '/jobs')
  const { page } = v
  await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  assert.ok(!(await page.content()).includes('payroll'))
  await give(page, 'bel_0000000000000000_nothing')
  await page.getByText('does not accept the token').waitFor()
  await give(page, tokens.read.token)
  await page.getByRole('link', { name: 'payroll' }).waitFor()
  await page.reload()
  await page.getByRole('link', { name: 'payroll' }).waitFor()
  assert.ok(!page.url().includes('bel_'))
  assert.equal(await page.evaluate(() => document.cookie + localStorage.getItem('belfry-token')), 'null', 'it is kept where other ports or later days see it')
  await page.goto(server.console + '/settings')
  await page.getByRole('button', { name: 'Forget it now' }).click()
  await page.goto(server.console + '/jobs')
  await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  await v.end()
})

test('no page shows what its token may not read', async () => {
  for (const name of ['run', 'acme']) {
    const v = await Visit.to(server.console)
    const { page } = v
    await give(page, tokens[name].token)
    for (const at of ['/', '/jobs', '/jobs/payroll', '/runs', '/dead-letters', '/queues']) {
      await page.goto(server.console + at)
      await page.getByRole('heading').first().waitFor()
      if (name === 'run') await page.getByText('Not allowed.').first().waitFor()
      await page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.waiting'))
      const shown = (await page.locator('main').innerText()).replace(/Job payroll|there is no job payroll/g, '') // its own address said so
      assert.ok(!/payroll/.test(shown), `${name} ${at}: ${shown}`)
    }
    if (name === 'run') assert.match(await page.locator('main').innerText(), /asks for read/)
    assert.deepEqual(v.errors.filter((e) => !/status of (40[134])/.test(e)), [])
    await v.end()
  }
})

test('a token that is revoked under an open page is asked for again, and nothing stays', async () => {
  const made = await server.call('POST', '/v1/tokens', { scopes: ['read'], name: 'short' }, tokens.admin.token)
  const v = await Visit.to(server.console + '/jobs')
  const { page } = v
  await give(page, made.token)
  await page.getByRole('link', { name: 'payroll' }).waitFor()
  await server.call('DELETE', '/v1/tokens/' + made.id, undefined, tokens.admin.token)
  await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  assert.ok(!(await page.content()).includes('payroll'))
  await give(page, tokens.read.token)
  await page.getByRole('link', { name: 'payroll' }).waitFor()
  await v.end()
})
