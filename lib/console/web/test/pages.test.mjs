import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { close, Server, Visit } from './harness.mjs'
import { broken, busy } from './seed.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const shots = process.env.SCREENS ?? path.resolve(import.meta.dirname, '../../../../bin/console')

const servers = {}
const pages = {}
before(async () => {
  await mkdir(shots, { recursive: true })
  for (const [name, seed] of Object.entries({ empty: () => ({}), busy, broken })) {
    servers[name] = await Server.start()
    const ids = await seed(servers[name])
    pages[name] = { overview: '/', jobs: '/jobs', runs: '/runs', 'dead-letters': '/dead-letters', queues: '/queues' }
    if (name === 'busy') Object.assign(pages.busy, { settings: '/settings', job: '/jobs/report', 'night-shift': '/jobs/night-shift', paused: '/jobs/move-db', run: '/runs/' + ids.done[0], going: '/runs/' + ids.going, payload: `/runs/${ids.going}?tab=payload`, nowhere: '/nowhere' })
    if (name === 'broken') Object.assign(pages.broken, { run: '/runs/' + ids.dead[0], retrying: '/runs/' + ids.retrying, job: '/jobs/mail', cause: '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: connection refused') })
  }
})
after(async () => {
  for (const s of Object.values(servers)) await s.stop()
  await close()
})

async function settled(page) {
  await page.getByRole('heading').first().waitFor()
  await page.waitForFunction(() => !document.querySelector('.waiting'))
}

// make test-deep looks at both widths in both schemes.
for (const scheme of ['light', 'dark']) {
  for (const width of process.env.DEEP ? [1280, 390] : [scheme === 'light' ? 1280 : 390]) {
    test(`every page, ${scheme}, ${width} wide: axe finds nothing, nothing scrolls sideways, no error`, async () => {
      const wrong = []
      for (const [name, server] of Object.entries(servers)) {
        const v = await Visit.to(undefined, { viewport: { width, height: 800 }, colorScheme: scheme })
        await v.page.goto(server.console)
        for (const [what, at] of Object.entries(pages[name])) {
          await v.page.goto(server.console + at)
          await settled(v.page)
          if (what === 'overview' && name !== 'empty') await v.page.locator('.chart svg').waitFor()
          await v.page.evaluate(axe)
          const found = await v.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((f) => f.id + ': ' + f.nodes.map((n) => n.html.slice(0, 160) + ' ' + n.any.map((a) => a.message).join()).slice(0, 3).join(' | '))))
          wrong.push(...found.map((f) => `${name} ${what}: ${f}`))
          await v.page.screenshot({ path: path.join(shots, `${name}-${what}-${width}-${scheme}.png`) })
          if (width === 390) await v.page.setViewportSize({ width: 320, height: 800 })
          if (await v.page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push(`${name} ${what}: scrolls sideways`)
          if (width === 390) await v.page.setViewportSize({ width, height: 800 })
          wrong.push(...(await v.violations()).map((r) => `${name} ${what}: ${r}`))
        }
        wrong.push(...v.errors.map((e) => `${name}: ${e}`))
        await v.end()
      }
      assert.deepEqual(wrong, [])
    })
  }
}

test('a page asks at most three times when it is loaded, and nobody else than its server', async () => {
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
    assert.ok(asked.length <= 3, `${what}: ${asked.join(' ')}`)
    assert.ok(asked.length > 0 || what === 'nowhere', `${what} asks for nothing: the test would not see more`)
  }
  await v.end()
})
