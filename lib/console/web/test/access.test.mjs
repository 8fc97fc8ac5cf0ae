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
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** sessionsOf are the sessions of a token that the server knows of. */
async function sessionsOf(token) {
  const { items } = await server.call('GET', '/v1/tokens?limit=1000', undefined, tokens.admin.token)
  return items.filter((t) => t.parent === token.id)
}

test('who has no token is asked for one, and sees the page that was asked for', async () => {
  const v = await Visit.to(server.console + '/jobs')
  const { page } = v
  await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  assert.ok(!(await page.content()).includes('payroll'))
  await give(page, 'bel_0000000000000000_nothing')
  await page.getByText('not one of this server').waitFor()
  await give(page, tokens.read.token)
  await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  await page.reload()
  await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  assert.ok(!page.url().includes('bel_'))
  await v.end()
})

test('the page keeps a session, never the token: one that has what the token has but admin, or may only look; signing out ends it', async () => {
  for (const [look, scopes] of [[false, ['read', 'run', 'write']], [true, ['read']]]) {
    const v = await Visit.to(server.console + '/jobs')
    const { page } = v
    if (look) await page.getByLabel('only look').check()
    await give(page, tokens.admin.token)
    await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
    await page.goto(server.console + '/settings')
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage }) + document.cookie + document.documentElement.outerHTML)
    assert.ok(!kept.includes(tokens.admin.token), 'the token is kept')
    const { token: secret, id } = await page.evaluate(() => JSON.parse(sessionStorage.getItem('belfry-session')))
    assert.equal(await page.evaluate(() => document.cookie + localStorage.getItem('belfry-session')), 'null', 'it is kept where other ports or later days see it')
    await page.getByText(`session ${id} of the token ${tokens.admin.id}, with the ${look ? 'scope' : 'scopes'} ${scopes.join(', ')}, until`).waitFor()
    await server.call('GET', '/v1/jobs', undefined, secret)
    const changes = [['POST', '/v1/jobs/payroll/pause', {}], ['POST', '/v1/jobs/payroll/runs', {}]]
    for (const [method, at, body] of changes) {
      if (look) await assert.rejects(server.call(method, at, body, secret), /forbidden/)
      else await server.call(method, at, body, secret)
    }
    for (const [method, at, body] of [['POST', '/v1/tokens', { scopes: ['read'] }], ['GET', '/v1/tokens'], ['POST', '/v1/session', {}]]) {
      await assert.rejects(server.call(method, at, body, secret), /forbidden|no_session/)
    }
    const ended = page.waitForResponse((r) => r.request().method() === 'DELETE')
    await page.getByRole('button', { name: 'Sign out' }).click()
    assert.equal((await ended).status(), 204)
    await page.getByText('You have signed out.').waitFor()
    await assert.rejects(server.call('GET', '/v1/jobs', undefined, secret), /401/)
    assert.ok((await sessionsOf(tokens.admin)).every((s) => s.revoked_at))
    await page.goto(server.console + '/jobs')
    await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
    await v.end()
  }
})

test('no page shows what its token may not read', async () => {
  const v = await Visit.to(server.console)
  const { page } = v
  await give(page, tokens.run.token)
  await page.getByText('asks for read').waitFor()
  for (const at of ['/', '/jobs/payroll']) {
    await page.goto(server.console + at)
    await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
  }
  await give(page, tokens.acme.token)
  for (const at of ['/', '/jobs', '/jobs/payroll', '/runs', '/dead-letters', '/queues']) {
    await page.goto(server.console + at)
    await page.getByRole('heading').first().waitFor()
    await page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.waiting'))
    const shown = (await page.locator('main').innerText()).replace(/Job payroll|There is no job payroll/g, '') // its own address said so
    assert.ok(!/payroll/.test(shown), `${at}: ${shown}`)
  }
  assert.deepEqual(v.errors.filter((e) => !/status of (40[134])/.test(e)), [])
  await v.end()
})

test('a session ends under an open page, by itself or with its token: it is asked for again, and nothing stays', async () => {
  const made = await server.call('POST', '/v1/tokens', { scopes: ['read'], name: 'short' }, tokens.admin.token)
  const v = await Visit.to(server.console + '/jobs')
  const { page } = v
  const end = { session: async () => (await sessionsOf(made)).find((s) => !s.revoked_at).id, token: () => made.id }
  for (const what of ['session', 'token']) {
    await give(page, made.token)
    await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
    await server.call('DELETE', '/v1/tokens/' + (await end[what]()), undefined, tokens.admin.token)
    await v.ask()
    await page.getByRole('heading', { name: 'asks for a token' }).waitFor()
    await page.getByText('was revoked at').waitFor()
    assert.ok(!(await page.content()).includes('payroll'))
  }
  await give(page, made.token)
  await page.locator('.refused').getByText('was revoked at').waitFor()
  await give(page, tokens.read.token)
  await page.getByRole('link', { name: 'payroll', exact: true }).waitFor()
  await v.end()
})
