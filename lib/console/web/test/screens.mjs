// Takes the pictures of docs/console.md and the README into docs/screens, of a server on which something happens.
import path from 'node:path'
import { close, Server, Visit } from './harness.mjs'
import { broken, busy, past } from './seed.mjs'

// Names of pictures; without any, all are taken.
const wanted = process.argv.slice(2)
const server = await Server.start()
const { going } = await busy(server)
const { etl } = await broken(server)
const folder = path.resolve(import.meta.dirname, '../../../../docs/screens')
for (const [name, at, scheme, width, height, button] of [
  ['overview', '/', 'light', 1100, 1150],
  ['job', '/jobs/night-shift', 'light', 1100, 424],
  ['runs', '/runs', 'dark', 1100, 560],
  ['run', '/runs/' + going, 'light', 1100, 640],
  ['redrive', '/dead-letters?pattern=' + encodeURIComponent('exit: exit code #: connection refused'), 'light', 1100, 640, 'Redrive'],
  ['many', '/jobs?label=team%3Dbilling', 'light', 1100, 640, 'Pause matching'],
  ['edit', '/jobs/night-shift/edit', 'light', 1100, 720],
  ['steps', `/runs/${etl}?step=parts%2Findex`, 'light', 1100, 760],
  ['cron', '/tools/cron?expr=30+2+*+*+1-5&timezone=America%2FNew_York&from=2027-03-09T00%3A00', 'light', 1100, 900],
  ['scaling', '/tools/scaling?workers=60&at_once=0.6&distribution=lognormal&p99=1s&for=5m&at=70', 'light', 1100, 1130],
  ['capacity', '/tools/capacity?schedules=20000&runs_per_day=4320000&peak=1500&duration=2s&retry_rate=0.03&late=2m', 'light', 1100, 1150],
  ['queue', '/tools/queue?load=made&messages=90&arrivals=12&workers=3&at=150', 'light', 1100, 800],
  ['retry', '/tools/retry?max_attempts=8&max=5m', 'light', 1100, 740],
  ['way', '/tools/retry?max_attempts=5&max=1h&initial=10s&factor=10&duration=1s&at=10.4#way', 'light', 1100, 720],
  ['once', '/tools/exactly-once?fault=zombie&guard=fence', 'light', 1100, 1000],
]) {
  if (wanted.length && !wanted.includes(name)) continue
  const v = await Visit.to(undefined, { colorScheme: scheme, viewport: { width, height } })
  await past(v.page)
  await v.page.goto(server.console + at)
  await v.page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.waiting'))
  if (button) {
    await v.page.getByRole('button', { name: button }).click()
    await v.page.locator('dialog summary').click()
    await v.page.waitForFunction(() => !document.querySelector('dialog .says').textContent.includes('Counting'))
    await v.page.evaluate(() => document.activeElement.blur())
  } else await v.page.waitForTimeout(3000) // so that there is something to see
  if (at.includes('#')) await v.page.locator('#' + at.split('#')[1]).evaluate((e) => e.scrollIntoView())
  await v.page.screenshot({ path: path.join(folder, `console-${name}.png`) })
  await v.end()
}
await server.stop()
await close()
