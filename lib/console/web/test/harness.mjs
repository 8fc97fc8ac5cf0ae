// What all journeys share: a real `belfry dev` in a folder of its own, and Debian's Chromium.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { isDeepStrictEqual, promisify } from 'node:util'
import { chromium } from 'playwright-core'

export const belfry = process.env.BELFRY ?? path.resolve(import.meta.dirname, '../../../../bin/belfry')

// Waits are there for a hang: what is waited for is an event.
export const patience = Number(process.env.PATIENCE ?? 5 * 60_000)

const whole = Boolean(process.env.DEEP)

/** deep is test for a journey that make test-deep takes and make test does not: a variant of one that both take. */
export const deep = whole ? test : () => {}

/** some are the first of the rows that a journey goes through, and in make test-deep all. */
export const some = (rows, first) => (whole ? rows : rows.slice(0, first))

/** Server is one process, which can be ended and started again over the same data at the same port. */
export class Server {
  static async start(options = {}) {
    const s = new Server()
    started.add(s)
    s.folder = await mkdtemp(path.join(tmpdir(), 'belfry-console-'))
    s.arguments = options.arguments ?? []
    s.command = options.command ?? 'dev'
    if (options.before) await options.before(s)
    await s.run('127.0.0.1:0')
    return s
  }

  /** guarded starts a server that asks for a token, and makes those that are asked for: tokens has each by its name, and wanted its scopes, and its
   * tenant where that is another than default. */
  static async guarded(wanted) {
    const tokens = {}
    const server = await Server.start({
      command: 'serve',
      arguments: ['--auth', 'required'],
      before: async (s) => {
        for (const [name, [scope, tenant = 'default']] of Object.entries(wanted)) {
          const made = await promisify(execFile)(belfry, ['token', 'create', '--scope', scope, '--tenant', tenant, '--name', name, '--data', path.join(s.folder, 'data'), '--output', 'json'])
          tokens[name] = JSON.parse(made.stdout).token
        }
      },
    })
    return { server, tokens }
  }

  async run(listen) {
    this.process = spawn(belfry, [this.command, '--data', path.join(this.folder, 'data'), '--listen', listen, '--allow-exec', '--grace', '0s', '--log-level', 'error', '--output', 'json', ...this.arguments], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.said = ''
    this.process.stderr.on('data', (text) => (this.said += text))
    this.exited = new Promise((resolve) => this.process.once('exit', resolve))
    let text = ''
    for await (const line of createInterface({ input: this.process.stdout })) {
      text += line
      try {
        this.address = JSON.parse(text).address
        break
      } catch {
        // not all of it yet
      }
    }
    if (!this.address) throw new Error('belfry did not start: ' + this.said)
    this.host = new URL(this.address).host
    this.console = this.address + '/console'
  }

  async kill(signal = 'SIGKILL') {
    if (!this.process) return
    this.process.kill(signal)
    await this.exited
  }

  async again() {
    await this.run(this.host)
  }

  async stop() {
    started.delete(this)
    await this.kill('SIGTERM') // which ends the commands of its runs, too
    await rm(this.folder, { recursive: true, force: true })
  }

  async call(method, at, body, token) {
    const answer = await fetch(this.address + at, {
      method,
      headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: 'Bearer ' + token } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }

  put(name, job) {
    return this.call('PUT', '/v1/jobs/' + encodeURIComponent(name), job)
  }

  trigger(name, body = {}) {
    return this.call('POST', `/v1/jobs/${encodeURIComponent(name)}/runs`, body)
  }

  /** ended gives a run of a job that has ended, as soon as there is one. */
  async ended(job) {
    for (const end = Date.now() + patience; ; ) {
      const { items } = await this.call('GET', `/v1/jobs/${encodeURIComponent(job)}/runs`)
      const run = items.find((r) => r.ended_at)
      if (run) return run
      if (Date.now() > end) throw new Error(`no run of ${job} has ended`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  /** until asks for a run until it is in one of the states. */
  async until(id, ...states) {
    for (const end = Date.now() + patience; ; ) {
      const run = await this.call('GET', '/v1/runs/' + encodeURIComponent(id))
      if (states.includes(run.state)) return run
      if (Date.now() > end) throw new Error(`${id} is ${run.state}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}

/** Command is one belfry console, which prints the address of one session after the other. */
export class Command {
  static async start(...args) {
    const c = new Command()
    started.add(c)
    c.process = spawn(belfry, ['console', '--output', 'json', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    c.said = ''
    c.waiting = []
    c.addresses = []
    c.process.stderr.on('data', (text) => (c.said += text))
    let text = ''
    c.process.stdout.on('data', (more) => {
      text += more
      for (let found; (found = /"console": "([^"]+)"[^}]*\}/.exec(text)); text = text.slice(found.index + found[0].length)) {
        const next = c.waiting.shift()
        if (next) next(found[1])
        else c.addresses.push(found[1])
      }
    })
    c.exited = new Promise((resolve) => c.process.once('exit', resolve))
    return c
  }

  /** next is the address that is printed next. */
  async next() {
    if (this.addresses.length) return this.addresses.shift()
    return Promise.race([new Promise((resolve) => this.waiting.push(resolve)), this.exited.then(() => Promise.reject(new Error('belfry console has ended: ' + this.said)))])
  }

  async stop() {
    started.delete(this)
    this.process.kill('SIGTERM')
    return this.exited
  }
}

export const exec = (...argv) => ({ exec: { argv } })
export const shell = (script) => exec('sh', '-c', script)
export const once = { retry: { max_attempts: 1 } }

const auditor = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** axe gives what is not accessible on a page as it stands. */
export async function axe(page) {
  if (!(await page.evaluate(() => Boolean(window.axe)))) await page.evaluate(auditor)
  return page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((f) => f.id + ': ' + f.nodes.map((n) => n.html.slice(0, 160) + ' ' + n.any.map((a) => a.message).join()).slice(0, 3).join(' | '))))
}

const started = new Set()
let browser
/** open starts the browser, once for all journeys of a process, also for those that ask at once. */
export function open() {
  browser ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP *.test 127.0.0.1'] })
  return browser
}

/** close ends what a test that failed has left. */
export async function close() {
  for (const one of started) await one.stop()
  await (await browser)?.close()
}

const usual = { viewport: { width: 1280, height: 800 }, colorScheme: 'light', timezoneId: 'Europe/Paris', locale: 'en-GB' }

// Tabs that are left by their journey, by the options of each: a new context is a new process, which costs as much as a short journey.
const left = new Map()

/** tab opens a context with one page. Its notices stay where a busy machine may look at them later than they go. */
async function tab(options) {
  const b = await open()
  const context = await b.newContext({ ...usual, ...options })
  await context.addInitScript(() => {
    window.reports = []
    document.addEventListener('securitypolicyviolation', (e) => window.reports.push(e.violatedDirective + ' ' + e.blockedURI))
  })
  // SLOW=1500 has every answer come up to so many milliseconds late, which finds journeys that act on what has not come yet.
  if (process.env.SLOW)
    await context.addInitScript((most) => {
      const real = window.fetch
      const later = window.setTimeout.bind(window) // of before a journey stops the clock
      window.fetch = async (...args) => {
        const answer = await real(...args)
        await new Promise((resolve) => later(resolve, most * (0.3 + 0.7 * Math.random())))
        return answer
      }
    }, Number(process.env.SLOW))
  await context.addInitScript(() => {
    const real = window.setTimeout
    window.setTimeout = (f, ms, ...rest) => real(f, ms === 12_000 ? 3_600_000 : ms, ...rest)
  })
  context.setDefaultTimeout(patience) // of pages that a journey opens beside its own, too
  const page = await context.newPage()
  // THROTTLE=8 has the page's scripts take so many times as long, which finds journeys that act before the page has.
  if (process.env.THROTTLE) await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.THROTTLE) })
  const t = { context, page, worn: false }
  // What cannot be taken out of a context again.
  for (const [on, name] of [[page.clock, 'install'], [page, 'addInitScript'], [context, 'addInitScript'], [page, 'exposeFunction']]) {
    const real = on[name].bind(on)
    on[name] = (...args) => ((t.worn = true), real(...args))
  }
  return t
}

/** lost says that a connection was found closed, as an idle one is behind a browser that stood still for minutes: the page asks again. */
const lost = /net::ERR_(SOCKET_NOT_CONNECTED|CONNECTION_(RESET|CLOSED)|EMPTY_RESPONSE|NETWORK_CHANGED)/

/** Visit is one tab, and what it heard: errors on its console, reports of its policy, requests. */
export class Visit {
  static async to(address, options = {}) {
    const v = new Visit()
    v.options = options
    v.tab = left.get(JSON.stringify(options))?.pop() ?? (await tab(options))
    v.context = v.tab.context
    v.page = v.tab.page
    v.errors = []
    v.requests = []
    v.heard = []
    // A browser asks for the icon of what is no page, such as the one that tabs are left with, when it likes.
    v.on('console', (m) => m.type() === 'error' && !m.location().url.endsWith('/favicon.ico') && !lost.test(m.text()) && v.errors.push([m.text(), m.location().url].filter(Boolean).join(' ')))
    v.on('pageerror', (e) => v.errors.push(String(e)))
    v.on('dialog', (d) => (v.errors.push('a dialog: ' + d.message()), d.dismiss()))
    v.on('response', async (r) => r.status() >= 400 && process.env.PATIENCE && console.log(r.status(), r.url(), await r.text().catch(() => '')))
    v.flying = new Set()
    // The stream of changes lasts, and is one for all tabs.
    v.on('request', (r) => r.url().endsWith('/v1/changes') || (v.requests.push(r.url()), v.flying.add(r)))
    for (const end of ['requestfinished', 'requestfailed']) v.on(end, (r) => v.flying.delete(r))
    if (address) await v.page.goto(address)
    return v
  }

  /** on listens to the page until the visit ends. */
  on(event, heard) {
    this.heard.push([event, heard])
    this.page.on(event, heard)
  }

  /** lead presses g and a letter until a path is shown: the letter has 1.5 s, and a busy machine may take longer between two keys. */
  async lead(letter, path) {
    const at = () => this.page.evaluate(() => location.pathname) // as it stands: page.url() may lag behind
    for (const end = Date.now() + patience; !(await at()).endsWith(path); ) {
      if (Date.now() > end) throw new Error(`g and ${letter} do not lead to ${path} but to ${await at()}`)
      await this.page.keyboard.press('g')
      await this.page.keyboard.press(letter)
    }
  }

  /** hold keeps the requests of a method from their answers. What it gives waits for the next of them to come, which may be a while behind what the page
   * shows of it, and has it answered. */
  async hold(at, method, answered) {
    const held = []
    const asked = []
    await this.page.route(at, (route) => {
      if (route.request().method() !== method) return route.fallback()
      const next = asked.shift()
      if (next) next(route)
      else held.push(route)
    })
    return async () => answered(held.shift() ?? (await new Promise((resolve) => asked.push(resolve))))
  }

  /** landed waits until every request has its answer. */
  async landed() {
    for (const end = Date.now() + patience; this.flying.size; ) {
      if (Date.now() > end) throw new Error([...this.flying].map((r) => r.url()).join(' '))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** ask has the page ask at once for what is known to be there, in place of its next time. */
  async ask() {
    await this.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  }

  async violations() {
    return this.page.evaluate(() => window.reports)
  }

  /** end leaves the tab to the next journey, with nothing of this one in it, or closes it where that cannot be. */
  async end() {
    for (const [event, heard] of this.heard) this.page.off(event, heard)
    const { context, page, worn } = this.tab
    try {
      if (worn) throw new Error('worn')
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await context.unrouteAll({ behavior: 'ignoreErrors' })
      for (const other of context.pages()) if (other !== page) await other.close()
      await context.clearCookies()
      await page.goto(new URL('/healthz', page.url()).href) // of the same origin, so of the same process, and without a script
      await page.evaluate(() => (sessionStorage.clear(), localStorage.clear()))
      await page.mouse.move(0, 0)
      await page.setViewportSize(this.options.viewport ?? usual.viewport)
      await page.emulateMedia({ colorScheme: this.options.colorScheme ?? usual.colorScheme })
    } catch {
      await context.close()
      return
    }
    const key = JSON.stringify(this.options)
    left.set(key, [...(left.get(key) ?? []), this.tab])
  }
}

/** act opens a page to do something on it, and keeps which changes it asked for: no dry runs, and no questions. */
export async function act(at) {
  const v = await Visit.to(undefined)
  v.sent = []
  v.on('request', (r) => {
    if (r.method() === 'GET' || r.url().endsWith('/v1/runs/last') || r.url().endsWith('/v1/session')) return
    if (!r.postDataJSON()?.dry_run) v.sent.push(r)
  })
  if (at) await v.page.goto(at)
  v.dialog = v.page.getByRole('dialog')
  v.press = (name, exact = false) => v.page.getByRole('button', { name, exact }).click()
  v.told = (text) => v.page.locator('.notice', { hasText: text }).waitFor()
  v.said = (text) => v.dialog.locator('.refused', { hasText: text }).waitFor()
  return v
}

/** come waits until what is read is what is wanted. */
export async function come(read, wanted) {
  for (const end = Date.now() + patience; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const got = await read()
    if (isDeepStrictEqual(got, wanted)) return
    if (Date.now() > end) assert.deepEqual(got, wanted)
  }
}

/** clean says that the page as it stands is accessible, and kept its policy. */
export async function clean(v) {
  assert.deepEqual([...(await axe(v.page)), ...(await v.violations())], [])
}

export async function done(v) {
  assert.deepEqual(v.errors, [])
  assert.deepEqual(await v.violations(), [])
  await v.end()
}

/** fetched has the server answer a request that a journey changes the answer of. A page that asks again names the answer that it has, and would get 304 and no body. */
export function fetched(route) {
  const headers = { ...route.request().headers() }
  delete headers['if-none-match']
  return route.fetch({ headers })
}
