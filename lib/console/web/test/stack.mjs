// A stack as belfry console shows it: run by tests/e2e beside a stack, since journeys have none. JOB is a job of the stack that succeeds, and PROFILE
// the one of BELFRY_CONFIG that is signed in with.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { act, close, Command, done } from './harness.mjs'

const job = process.env.JOB
after(close)

test('a stack is signed in to by its profile, and a run of it is triggered and seen to its end', async () => {
  const c = await Command.start('--profile', process.env.PROFILE)
  const v = await act(await c.next())
  const { page } = v
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(await page.evaluate(() => location.hash), '')
  await page.getByRole('link', { name: 'Jobs', exact: true }).first().click()
  await page.getByRole('link', { name: job, exact: true }).click()
  await page.getByRole('heading', { name: job }).waitFor()
  await v.press('Trigger…')
  await v.dialog.getByText('--profile ' + process.env.PROFILE).first().waitFor({ state: 'attached' }) // folded
  await v.dialog.getByRole('button', { name: 'Trigger' }).click()
  await v.told('Accepted')
  assert.deepEqual(v.sent.map((r) => r.method() + ' ' + new URL(r.url()).pathname), [`POST /v1/jobs/${job}/runs`])
  await page.locator('.notice').getByRole('link', { name: job + '~' }).click()
  await page.getByText('It succeeded').waitFor()
  // It stands in the lists, and in what the profile may do nothing was missing.
  await page.getByRole('link', { name: 'Runs', exact: true }).first().click()
  await page.locator(`a[href*="/runs/${job}~"]`).first().waitFor()
  await page.getByText('every 10 s').waitFor()
  await v.landed()
  v.errors = v.errors.filter((said) => !said.endsWith('/v1/changes')) // a stack has no such stream: the page asks by the clock
  await done(v)
  assert.equal(await c.stop(), 0)
})
