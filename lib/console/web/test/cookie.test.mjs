// Sessions over TLS, which a cookie carries: a server behind a proxy that ends TLS, at a name that Chromium takes for this machine.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { belfry, close, exec, once, Server, Visit } from './harness.mjs'

const run = promisify(execFile)
const tokens = {}
let server, proxy, elsewhere, certificate, secure

before(async () => {
  server = await Server.start({
    command: 'serve',
    arguments: ['--behind-proxy'],
    before: async (s) => {
      for (const [name, scope, tenant] of [['admin', 'admin', 'default'], ['read', 'read', 'default'], ['acme', 'write', 'acme']]) {
        const made = await run(belfry, ['token', 'create', '--scope', scope, '--tenant', tenant, '--name', name, '--data', path.join(s.folder, 'data'), '--output', 'json'])
        tokens[name] = JSON.parse(made.stdout)
      }
    },
  })
  for (const [job, token] of [['payroll', tokens.admin], ['shipping', tokens.acme]]) await server.call('PUT', '/v1/jobs/' + job, { target: exec('true'), ...once }, token.token)
  certificate = await mkdtemp(path.join(tmpdir(), 'belfry-certificate-'))
  const root = (await run('go', ['env', 'GOROOT'])).stdout.trim()
  await run('go', ['run', path.join(root, 'src/crypto/tls/generate_cert.go'), '--host', 'belfry.test', '--ecdsa-curve', 'P256'], { cwd: certificate })
  const keys = { key: await readFile(path.join(certificate, 'key.pem')), cert: await readFile(path.join(certificate, 'cert.pem')) }
  proxy = createSecure(keys, (r, answer) => {
    const up = request(server.address + r.url, { method: r.method, headers: r.headers }, (from) => {
      answer.writeHead(from.statusCode, from.headers)
      from.pipe(answer)
    })
    up.on('error', () => answer.destroy())
    r.pipe(up)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  secure = `https://belfry.test:${proxy.address().port}`
})
after(async () => {
  proxy?.close()
  proxy?.closeAllConnections()
  elsewhere?.close()
  await server.stop()
  await rm(certificate, { recursive: true, force: true })
  await close()
})

const insecure = { ignoreHTTPSErrors: true } // the certificate is of this test alone

async function give(page, token) {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

const sees = (page, job) => page.getByRole('link', { name: job, exact: true }).waitFor()
const asksForToken = (page) => page.getByRole('heading', { name: 'asks for a token' }).waitFor()

test('over TLS a cookie that no script can read carries the session to new tabs and over a restart of the page; signing out ends it in all', async () => {
  const v = await Visit.to(secure + '/console/jobs', insecure)
  const { page, context } = v
  await asksForToken(page)
  const answered = page.waitForResponse((r) => r.url().endsWith('/v1/session') && r.request().method() === 'POST')
  await give(page, tokens.admin.token)
  assert.ok(!(await (await answered).text()).includes('bel_'), 'the secret is in the answer')
  await sees(page, 'payroll')
  const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage }) + document.cookie + document.documentElement.outerHTML)
  assert.ok(!kept.includes('bel_') && !kept.includes('__Host-'), kept)
  const cookies = await context.cookies()
  assert.deepEqual(cookies.map((c) => [c.name, c.domain, c.path, c.httpOnly, c.secure, c.sameSite]), [['__Host-belfry', 'belfry.test', '/', true, true, 'Strict']])
  assert.ok(cookies[0].expires * 1000 < Date.now() + 12 * 3600_000 + 5000, 'it lasts longer than 12 hours')
  await page.reload()
  await sees(page, 'payroll')

  const other = await context.newPage()
  await other.goto(secure + '/console/settings')
  await other.getByText(`This browser has the session`).waitFor()
  await other.getByText(tokens.admin.id).waitFor()
  await other.getByText('read, run, write').waitFor()
  await other.getByRole('button', { name: 'Sign out' }).click()
  await other.getByText('You have signed out.').waitFor()
  await asksForToken(page)
  assert.ok(!(await page.content()).includes('payroll'))
  assert.deepEqual(await context.cookies(), [])
  const { items } = await server.call('GET', '/v1/tokens?limit=1000', undefined, tokens.admin.token)
  assert.ok(items.filter((t) => t.parent).every((t) => t.revoked_at))
  // Who signs in in one tab has signed in in all.
  await give(other, tokens.read.token)
  await sees(page, 'payroll')
  await v.end()
})

test('a session that another tab opens for another tenant is that of all tabs, and no act goes to the wrong one', async () => {
  const v = await Visit.to(secure + '/console/jobs/payroll', insecure)
  const { page, context } = v
  await give(page, tokens.admin.token)
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  // As if the message to the other tabs were late: this one still takes itself for what it was.
  const other = await context.newPage()
  await other.addInitScript(() => (window.BroadcastChannel = class { addEventListener() {} postMessage() {} close() {} }))
  await other.goto(secure + '/console/jobs')
  await sees(other, 'payroll')
  await page.route('**/v1/**', (route) => (route.request().method() === 'GET' ? new Promise(() => {}) : route.continue())) // what it polls would tell it
  await context.addCookies([{ ...(await context.cookies())[0], value: await cookieOf(tokens.acme.token) }])
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/another session than the page/).first().waitFor()
  assert.ok(!(await server.call('GET', '/v1/jobs/payroll', undefined, tokens.admin.token)).status?.paused)
  await page.unroute('**/v1/**')
  await page.goto(secure + '/console/jobs')
  await sees(page, 'shipping')
  await sees(other, 'shipping') // which polls
  for (const p of [page, other]) assert.ok(!(await p.locator('main').innerText()).includes('payroll'))
  await v.end()
})

/** cookieOf opens a session as a page does, and gives what the cookie holds. */
async function cookieOf(token) {
  const answer = await new Promise((resolve, reject) => {
    const r = request(server.address + '/v1/session', { method: 'POST', headers: { Host: 'belfry.test', Authorization: 'Bearer ' + token, 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' } }, (a) => (a.resume(), resolve(a)))
    r.on('error', reject)
    r.end(JSON.stringify({ cookie: true, scopes: ['read', 'run', 'write'] }))
  })
  return /__Host-belfry=([^;]+)/.exec(answer.headers['set-cookie'][0])[1]
}

test('a session that is revoked ends in every tab, and a page of another site does nothing with the cookie', async () => {
  const v = await Visit.to(secure + '/console/jobs', insecure)
  const { page, context } = v
  await give(page, tokens.admin.token)
  await sees(page, 'payroll')
  // A page of another site posts a form, follows a link to the API, asks by script, and shows an image of it.
  elsewhere = createServer((_, answer) => {
    answer.writeHead(200, { 'Content-Type': 'text/html' })
    answer.end('<form method="post" enctype="text/plain" action="' + secure + '/v1/jobs/payroll/pause"><input name=\'{"reason":"\' value=\'evil"}\'></form>')
  })
  await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  const evil = await context.newPage()
  const refused = []
  evil.on('response', (r) => r.url().startsWith(secure) && refused.push(r.status()))
  const site = `http://evil.test:${elsewhere.address().port}/`
  await evil.goto(site)
  await evil.evaluate(async (secure) => {
    for (const init of [{}, { credentials: 'include' }, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }, { method: 'DELETE', credentials: 'include' }]) await fetch(secure + '/v1/jobs/payroll', init).catch(() => {})
    await new Promise((resolve) => Object.assign(new Image(), { onload: resolve, onerror: resolve, src: secure + '/v1/jobs' }))
  }, secure)
  await Promise.all([evil.waitForNavigation(), evil.evaluate(() => document.forms[0].submit())])
  await evil.goto(site)
  await Promise.all([evil.waitForNavigation(), evil.evaluate((to) => (location.href = to), secure + '/v1/jobs')])
  assert.ok(refused.length >= 3 && refused.every((status) => status === 403 || status === 401), String(refused))
  assert.ok(!(await server.call('GET', '/v1/jobs/payroll', undefined, tokens.admin.token)).status?.paused)

  const { items } = await server.call('GET', '/v1/tokens?limit=1000', undefined, tokens.admin.token)
  const [session] = items.filter((t) => t.parent === tokens.admin.id && !t.revoked_at).sort((a, b) => (a.created_at < b.created_at ? 1 : -1)) // others were left by journeys before
  await server.call('DELETE', '/v1/tokens/' + session.id, undefined, tokens.admin.token)
  await v.ask()
  await asksForToken(page)
  await page.getByText('was revoked at').waitFor()
  await v.end()
})
