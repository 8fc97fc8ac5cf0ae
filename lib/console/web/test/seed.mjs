// Servers as there are: one that is busy, one where much is broken, one that is full.
import { exec, fetched, once, shell } from './harness.mjs'

/** past answers for the counts of what is past as a server does that has run for days: one that has just begun has none. */
export async function past(page) {
  const bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 1800000, 3600000]
  await page.route('**/v1/stats?*', async (route) => {
    const answer = await fetched(route)
    const body = await answer.json()
    const step = body.step_seconds * 1000
    const end = Date.parse(body.to) - 2 * step
    body.points = []
    for (let at = Date.parse(body.from), i = 0; at < end; at += step, i++) {
      const wave = Math.sin(i / 9) + Math.sin(i / 2.3) / 3
      const runs = Math.round(34 + 12 * wave)
      const slow = i > 31 && i < 38 ? 6 : 0 // a few minutes in which a target was slow
      body.points.push({
        at: new Date(at).toISOString(), due: runs, succeeded: runs - slow - (i % 13 === 4 ? 2 : 0), failed: slow, cancelled: 0, skipped: 0, dead: i % 13 === 4 ? 2 : 0, unknown: 0, open: 0, retries: slow,
        lateness: { count: runs, buckets: bounds.map((_, b) => [runs - 8 - slow, 5, 2, 1, slow][b] ?? 0).concat(0) }, duration: { count: 0, buckets: bounds.map(() => 0).concat(0) },
      })
    }
    body.swept_until = new Date(end).toISOString()
    await route.fulfill({ response: answer, json: body })
  })
}

export async function busy(server) {
  await server.put('report', {
    description: 'Sends the numbers of the day before to the accounts team.', schedule: { cron: '30 9 * * 1-5', timezone: 'Europe/Berlin' },
    target: shell('echo "reading 41,208 rows"; echo "\\033[32mdone\\033[0m in 1.2 s"; echo "{\\"rows\\": 41208}" >&2'), payload: { report: 'daily', to: ['accounts'] }, labels: { team: 'billing', tier: '1' }, timeout: '5m',
  })
  await server.put('clean-up', { schedule: { cron: '@daily', jitter: '5m' }, target: exec('true'), labels: { team: 'platform' } })
  await server.put('heartbeat', { schedule: { every: '2s' }, target: exec('echo', 'alive'), labels: { team: 'platform' } })
  await server.put('sync-customers', { schedule: { every: '5s' }, target: shell('echo "page 1 of 3"; sleep 0.4; echo "page 2 of 3"; echo "page 3 of 3"'), labels: { team: 'crm' } })
  await server.put('night-shift', { schedule: { cron: '30 2 * * *', timezone: 'America/New_York', start: '2027-03-12T00:00:00Z' }, target: exec('true'), labels: { team: 'warehouse' } })
  await server.put('invoices', { schedule: { cron: '0 6 1 * *', timezone: 'Europe/Paris' }, target: { http: { url: 'http://127.0.0.1:1/invoices' } }, labels: { team: 'billing' }, retry: { max_attempts: 3, initial: '1s', max: '2s' } })
  await server.put('import', { target: shell('i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo "$(date +%H:%M:%S) row $i of 4000"; sleep 0.25; done'), timeout: '1h' })
  await server.put('move-db', { schedule: { cron: '0 3 * * 0', timezone: 'UTC' }, target: exec('true') })
  await server.call('POST', '/v1/jobs/move-db/pause', { reason: 'the new cluster is not ready, ask Ada' })
  const done = []
  for (let i = 0; i < 6; i++) done.push((await server.trigger('report')).id)
  done.push((await server.trigger('clean-up')).id)
  for (const id of done) await server.until(id, 'succeeded')
  const dead = (await server.trigger('invoices')).id
  const going = (await server.trigger('import', { payload: { file: 'customers.csv', rows: 4000 } })).id
  await server.until(going, 'running')
  return { done, dead, going }
}

export async function broken(server) {
  await server.put('mail', { target: shell('echo "connecting to 10.0.0.17:25" ; echo "connection refused" >&2; exit 1'), retry: { max_attempts: 2, initial: '1ms', max: '1ms' }, labels: { team: 'billing' } })
  await server.put('resize', { target: shell('echo "image $RANDOM has no pixels" >&2; exit 3'), ...once })
  await server.put('push', { target: { http: { url: 'http://127.0.0.1:1/push' } }, retry: { max_attempts: 1 } })
  await server.put('slow', { target: exec('sleep', '30'), timeout: '1s', retry: { max_attempts: 1 } })
  await server.put('later', { target: exec('false'), retry: { max_attempts: 5, initial: '10m', max: '20m' } })
  const etl = await workflow(server)
  const dead = []
  for (const [job, n] of [['mail', 9], ['resize', 5], ['push', 3], ['slow', 1]]) for (let i = 0; i < n; i++) dead.push((await server.trigger(job)).id)
  const retrying = (await server.trigger('later')).id
  for (const id of dead) await server.until(id, 'dead', 'failed')
  await server.until(retrying, 'retrying')
  await server.until(etl, 'failed')
  return { dead, retrying, etl }
}

/** workflow runs one of which a step fails after two attempts. */
async function workflow(server) {
  const retry = { max_attempts: 2, initial: '1ms', max: '1ms' }
  await server.put('nightly', {
    labels: { team: 'warehouse' },
    target: { workflow: { steps: {
      extract: shell('echo "41,208 rows"'),
      parts: { needs: ['extract'], steps: { load: shell('echo "loading"; sleep 0.3; echo "loaded"'), index: { needs: ['load'], retry, ...shell('echo "building the index"; echo "row 17: no such key" >&2; exit 3') } } },
      publish: { needs: ['parts'], ...exec('true') },
      alarm: { needs: ['parts'], rule: 'one_failed', ...shell('echo "paging Ada"') },
    } } },
  })
  return (await server.trigger('nightly')).id
}
