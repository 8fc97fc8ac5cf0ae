import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { axe, belfry, close, Server, some, Visit } from './harness.mjs'
import { broken, busy } from './seed.mjs'

const shots = process.env.SCREENS ?? path.resolve(import.meta.dirname, '../../../../bin/console')

const servers = {}
const pages = {}
const seeded = {}
before(async () => {
  await mkdir(shots, { recursive: true })
  await Promise.all(Object.entries({ empty: nothing, busy, broken, asking: nothing }).map(async ([name, seed]) => {
    const s = await Server.start(name === 'asking' ? { command: 'serve', arguments: ['--auth', 'required'], before: keyed } : {})
    servers[name] = s
    const ids = await seed(s)
    seeded[name] = ids
    const always = { overview: '/', jobs: '/jobs', runs: '/runs', 'dead-letters': '/dead-letters', queues: '/queues', api: '/docs', schedule: '/schedule', settings: '/settings' }
    // What a tool shows has little to do with what a server holds: make test looks at it once.
    const tools = { 'tool-cron': '/tools/cron?expr=30+2+13+*+1-5&timezone=Europe%2FBerlin', 'tool-retry': '/tools/retry?max=5m&max_attempts=8', 'tool-scaling': '/tools/scaling?at_once=0.6&at=150', 'tool-capacity': '/tools/capacity?schedules=20000&runs_per_day=4320000&peak=1500&duration=2s', 'tool-queue': '/tools/queue', 'tool-order': '/tools/queue?load=made&at=110', 'tool-once': '/tools/exactly-once?fault=zombie&guard=fence&at=14' }
    if (process.env.DEEP) Object.assign(always, tools)
    pages[name] = {
      empty: () => ({ ...always, 'jobs-none': '/jobs?q=x&paused=true', 'runs-none': '/runs?state=dead&job=x', 'job-none': '/jobs/x', 'run-none': '/runs/x~0mi4lf3k0', nowhere: '/nowhere' }),
      busy: () => ({
        ...always, ...tools, 'schedule-hour': '/schedule?at=' + new Date(Math.ceil(Date.now() / 3_600_000 + 1) * 3_600_000).toISOString(), job: '/jobs/report', new: '/new', edit: '/jobs/night-shift/edit', import: '/import', 'night-shift': '/jobs/night-shift', paused: '/jobs/move-db', run: '/runs/' + ids.done[0], going: '/runs/' + ids.going,
        payload: `/runs/${ids.going}?tab=payload`, result: `/runs/${ids.done[0]}?tab=result`, record: `/runs/${ids.done[0]}?tab=record`, operation: '/docs?at=put-job',
      }),
      broken: () => ({
        ...always, run: '/runs/' + ids.dead[0], retrying: '/runs/' + ids.retrying, steps: '/runs/' + ids.etl, step: `/runs/${ids.etl}?step=parts%2Findex`, workflow: '/jobs/nightly', job: '/jobs/mail', cause: '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: connection refused'),
        'runs-dead': '/runs?state=failed,dead',
      }),
      asking: () => ({ 'sign-in': '/' }),
    }[name]()
  }))
  // The same as the empty one, but that it refuses everything, or does not answer.
  for (const name of process.env.DEEP ? ['refusing', 'silent'] : []) {
    servers[name] = servers.empty
    pages[name] = { ...pages.empty, job: '/jobs/x', run: '/runs/x~0mi4lf3k0' }
    for (const left of ['jobs-none', 'runs-none', 'job-none', 'run-none', 'nowhere']) delete pages[name][left]
  }
})
after(async () => {
  for (const s of new Set(Object.values(servers))) await s.stop()
  await close()
})

const nothing = () => ({})

async function keyed(server) {
  await promisify(execFile)(belfry, ['token', 'create', '--scope', 'admin', '--data', path.join(server.folder, 'data')])
}

// The dialogs of pages, by the button that opens each; their details are opened too.
const dialogs = {
  busy: (ids) => [['/jobs/report', 'Trigger…'], ['/jobs/move-db', 'Trigger…'], ['/jobs/move-db', 'Reason…'], ['/jobs/report', 'Delete…'], ['/runs/' + ids.going, 'Cancel…'], ['/runs/' + ids.done[0], 'Retry…'], ['/runs/' + ids.done[0], 'Run again…'], ['/runs', 'Cancel matching…'], ['/jobs', 'Select', 'All', 'Pause'], ['/jobs', 'Select', 'All', 'Resume'], ['/jobs?q=r', 'Label'], ['/jobs?q=r', 'Export'], ['/jobs?q=r', 'Delete'], ['/jobs', 'Find']],
  broken: (ids) => [['/runs/' + ids.dead[0], 'Retry…'], ['/runs/' + ids.dead[0], 'Discard…'], ['/runs?state=failed,dead,unknown', 'Retry matching…'], [cause, 'Redrive'], [cause, 'Discard'], [cause, 'Select']],
}
const cause = '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: connection refused')

/** amiss makes a server refuse all that a page asks of it, or not answer it. */
async function amiss(name, page) {
  const problem = { title: 'Service Unavailable', status: 503, code: 'throttled', detail: 'The store is over its capacity. Nothing was changed.' }
  if (name === 'refusing') await page.route(/\/(v1\/|readyz|healthz|openapi\.json)/, (route) => route.fulfill({ status: 503, headers: { 'Retry-After': '1' }, contentType: 'application/problem+json', body: JSON.stringify(problem) }))
  if (name === 'silent') await page.route(/\/(v1\/|readyz|healthz|openapi\.json)/, (route) => route.abort('connectionrefused'))
}

/** foreseen are errors that a browser tells of answers which a server is to give, or not to. */
const foreseen = { empty: /status of 404/, refusing: /status of 503/, silent: /ERR_CONNECTION_REFUSED/, asking: /status of 401/ }

async function settled(page, name) {
  await page.getByRole('heading').first().waitFor()
  if (name === 'silent') await page.locator('.lost').waitFor()
  else await page.waitForFunction(() => !document.querySelector('.waiting'))
}

/** look goes through the pages of a server, each in one width after the other. Each is loaded at the first of them, and in make test-deep at all. */
async function look(name, views) {
  const server = servers[name]
  const wrong = []
  const v = await Visit.to(undefined)
  const { page } = v
  await amiss(name, page)
  for (const [what, at] of Object.entries(pages[name])) {
    let wide = 0
    for (const [width, scheme] of views) {
      const tell = (text) => wrong.push(`${name} ${what}, ${width} wide, ${scheme}: ${text}`)
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme: scheme })
      if (!wide || (process.env.DEEP && wide !== width)) {
        await page.goto(server.console + at)
        await settled(page, name)
        if (what === 'overview' && ['busy', 'broken'].includes(name)) await page.locator('.chart .outcomes').waitFor()
        if (what === 'job' && ['busy', 'broken'].includes(name)) await page.locator('.heat.days').waitFor()
      }
      wide = width
      if (audited(name, what, width)) (await axe(page)).forEach(tell)
      if (process.env.DEEP) await page.screenshot({ path: path.join(shots, `${name}-${what}-${width}-${scheme}.png`) })
      if (await sideways(page)) tell('scrolls sideways')
    }
    wrong.push(...(await v.violations()).map((r) => `${name} ${what}: ${r}`))
  }
  wrong.push(...v.errors.filter((e) => !foreseen[name]?.test(e)).map((e) => `${name}: ${e}`))
  await v.end()
  return wrong
}

/** sideways tells whether a page is wider than its window. What is drawn to a width is drawn anew in the frames behind a change of it. */
const sideways = (page) => page.evaluate(async () => {
  for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame)
  return document.documentElement.scrollWidth > innerWidth
})

// The widths and schemes of make test, and those of make test-deep. Axe takes most of the time: in make test it sees each page once, and some narrow and dark, too.
const views = process.env.DEEP ? [320, 390, 768, 1280, 1920].flatMap((width) => ['light', 'dark'].map((scheme) => [width, scheme])) : [[1280, 'light'], [320, 'dark']]
const audited = (name, what, width) => process.env.DEEP || width === 1280 || (width === 320 && name === 'busy' && ['overview', 'runs', 'job', 'going'].includes(what))

// Servers are looked at side by side: a page waits more than it works.
test('every page, wide and narrow, light and dark: axe finds nothing, nothing scrolls sideways, no error', async () => {
  const wrong = await Promise.all(Object.keys(pages).map((name) => look(name, views)))
  assert.deepEqual(wrong.flat(), [])
})

test('every dialog: axe finds nothing, nothing scrolls sideways at 320, light and dark, and it fits', async () => {
  const wrong = await Promise.all(Object.entries(dialogs).map(async ([name, of]) => {
    const v = await Visit.to(undefined)
    const { page } = v
    const found = []
    for (const [i, [at, ...buttons]] of of(seeded[name]).entries()) {
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.goto(servers[name].console + at)
      await settled(page, name) // who takes all before the list has come takes none
      for (const button of buttons) await page.getByRole('button', { name: new RegExp('^' + button) }).click()
      const what = name + at.split('?')[0].replaceAll(/[/~]/g, '-') + '-' + buttons.at(-1).replace(/\W/g, '')
      const dialog = page.getByRole('dialog')
      if (!['Select', 'Find'].includes(buttons.at(-1))) {
        await dialog.locator('.says').waitFor()
        await page.waitForFunction(() => !document.querySelector('dialog .says').textContent.includes('Counting'))
        await dialog.locator('summary').click()
      }
      for (const [width, scheme] of some([[1280, 'light'], [320, 'dark'], [320, 'light'], [1280, 'dark']], 2)) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ colorScheme: scheme })
        // In make test axe sees each dialog once, every other one narrow and dark.
        if (process.env.DEEP || (width === 1280) === (i % 2 === 0)) found.push(...(await axe(page)).map((text) => `${what}, ${width} wide, ${scheme}: ${text}`))
        if (await sideways(page)) found.push(`${what} scrolls sideways at ${width}`)
        const inner = await page.evaluate(() => [...document.querySelectorAll('dialog[open], dialog[open] *')].filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible').map((e) => e.outerHTML.slice(0, 120)))
        const out = await page.evaluate(() => [...document.querySelectorAll('dialog[open] *')].filter((e) => e.getBoundingClientRect().right > e.closest('dialog').getBoundingClientRect().right).map((e) => e.outerHTML.slice(0, 120)))
        found.push(...out.map((html) => `${what} has something that sticks out, ${width} wide: ${html}`))
        found.push(...inner.map((html) => `${what} scrolls sideways within, ${width} wide: ${html}`))
        if (process.env.DEEP) await page.screenshot({ path: path.join(shots, `dialog-${what}-${width}-${scheme}.png`) })
      }
    }
    found.push(...v.errors)
    await v.end()
    return found
  }))
  assert.deepEqual(wrong.flat(), [])
})

test('a page asks at most three times when it is loaded, and nobody else than its server', async (t) => {
  const server = servers.busy
  const v = await Visit.to(undefined)
  // No time passes but what drawing takes: what is asked for is what a load asks for.
  await v.page.clock.install()
  await v.page.clock.pauseAt(Date.now() + 1000)
  for (const [what, at] of Object.entries(pages.busy)) {
    await v.page.goto('about:blank')
    v.requests.length = 0
    await v.page.goto(server.console + at)
    for (let i = 0; i < 15; i++) {
      await v.page.clock.runFor(20)
      await v.landed()
    }
    await settled(v.page)
    const own = v.requests.filter((r) => r.startsWith(server.address + '/'))
    assert.deepEqual(v.requests.filter((r) => !own.includes(r) && !r.startsWith('data:')), [])
    const asked = own.filter((r) => !r.startsWith(server.console))
    t.diagnostic(`${what}: ${asked.length}`)
    assert.ok(asked.length <= 3, `${what}: ${asked.join(' ')}`)
    assert.ok(asked.length > 0 || ['new', 'import'].includes(what), `${what} asks for nothing: the test would not see more`)
  }
  await v.end()
})
