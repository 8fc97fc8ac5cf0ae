import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, test } from 'node:test'
import { close, once, Server, shell, some, Visit } from './harness.mjs'

after(close)

const markup = [
  '<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">', '"><svg onload=window.hit=1>', "'-alert(1)-'", '<a href="javascript:window.hit=1">x</a>', '{{constructor.constructor("window.hit=1")()}}',
  '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>', '</script><script>window.hit=1</script>', '<style>body{display:none}</style>', '\u202egnp.exe\u202c', '__proto__',
]
const log = markup.join('\\n') + '\\033]0;title\\007\\033]8;;javascript:window.hit=1\\033\\\\link\\033]8;;\\033\\\\\\033[2J\\033[999;999H\\033[?1049h\\033[31mred\\033[0m\\033P+q\\033\\\\ after\\r\\nlast'

test('names, payloads, logs and errors of others are text, whatever they say', async () => {
  const server = await Server.start()
  const all = markup.join(' ')
  await server.put('hostile', {
    description: all, target: shell(`printf '%b' "$LOG"; echo "$ERR" >&2; exit 1`), labels: { note: 'x' },
    payload: Object.fromEntries(markup.map((m, i) => [m, i ? m : 12345678901234567890n.toString()])), ...once,
  })
  await server.put('hostile', {
    description: all, target: { exec: { argv: ['sh', '-c', `printf '%b' "$LOG"; echo; printf '%s' "$ERR" >&2; exit 1`], env: { LOG: log, ERR: all } } },
    payload: Object.fromEntries(markup.map((m) => [m, m])), ...once,
  })
  await server.put('answers', { target: { exec: { argv: ['printf', '%s', all] } }, ...once })
  const dead = (await server.trigger('hostile')).id
  const good = (await server.trigger('answers')).id
  await server.until(dead, 'dead', 'failed')
  await server.until(good, 'succeeded')
  await server.call('POST', '/v1/jobs/answers/pause', { reason: all })
  const cancelled = (await server.trigger('hostile', { delay: '1h' })).id
  await server.call('POST', `/v1/runs/${cancelled}/cancel`, { reason: all.slice(0, 110) })
  const tabs = [await Visit.to(undefined), await Visit.to(undefined)]
  const { page } = tabs[0]
  try {
    const shownIn = async (v, at, ...texts) => {
      const { page } = v
      await page.goto(server.console + at)
      for (const text of texts) await page.getByText(text, { exact: false }).first().waitFor()
      await page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.waiting'))
      assert.equal(await page.evaluate(() => window.hit), undefined, at)
      assert.equal(await page.locator('main script, main iframe, main img, main style, main [onload], main [onerror], main a[href^="javascript"]').count(), 0, at)
      assert.deepEqual(await v.violations(), [], at)
      assert.ok(await page.locator('body').isVisible())
      assert.match(await page.title(), /Belfry$/)
    }
    const names = [0, 1].flatMap((n) => markup.map((m, i) => ['/jobs/', '/runs/'][(i + n) % 2] + encodeURIComponent(m)))
    const addresses = (async () => {
      for (const at of [...some(names, markup.length), '/jobs?q=' + encodeURIComponent(all), '/runs?job=' + encodeURIComponent(all) + '&label=' + encodeURIComponent(all), '/dead-letters?pattern=' + encodeURIComponent(all), '/' + encodeURIComponent(all)]) await shownIn(tabs[1], at)
    })()
    addresses.catch(() => {}) // it is waited for below
    const shown = (...what) => shownIn(tabs[0], ...what)
    await shown('/jobs/hostile', markup[0])
    await shown('/jobs/answers', markup[0])
    await shown('/runs/' + dead, markup[0], 'after', 'last')
    const text = await page.getByRole('region', { name: 'Log' }).innerText()
    for (const m of markup.slice(0, 9)) assert.ok(text.includes(m), m)
    assert.ok(!/[\x00-\x08\x0b-\x1f\x7f\u202e]/.test(text), JSON.stringify(text))
    assert.ok(text.includes('red after'), text)
    await shown(`/runs/${dead}?tab=payload`, markup[0])
    await shown(`/runs/${dead}?tab=record`, markup[0])
    await shown(`/runs/${good}?tab=result`, markup[0])
    await shown('/runs/' + cancelled, markup[0])
    await shown('/dead-letters', 'hostile')
    await shown('/runs', 'hostile')
    await shown('/', 'hostile')
    // What is written by others stands in dialogs too, and in what is copied from them.
    const { items: groups } = await server.call('GET', '/v1/dead-letters/groups')
    const { pattern } = groups.find((g) => g.jobs.includes('hostile'))
    for (const button of [/^Redrive/, /^Discard/]) {
      await shown('/dead-letters?pattern=' + encodeURIComponent(pattern), 'hostile')
      await page.getByRole('button', { name: button }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('1 run').waitFor()
      assert.ok((await dialog.locator('h2').textContent()).includes(pattern))
      const [command] = await dialog.locator('.command code').allTextContents()
      assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/.test(command), command)
      const words = execFileSync('sh', ['-c', command.replace(/^belfry/, `printf '%s\\0'`)], { encoding: 'utf8' }).split('\0')
      assert.deepEqual(words.slice(0, 3), ['dead-letter', button.source.slice(1).toLowerCase(), '--pattern=' + pattern])
      if (button.source === '^Discard') {
        await dialog.getByLabel('Note').fill(all.slice(0, 190))
        await dialog.getByRole('button', { name: 'Discard 1' }).click()
        await page.locator('.notice').waitFor()
        await shown('/runs/' + dead, all.slice(0, 80))
      }
      assert.equal(await page.evaluate(() => window.hit), undefined)
      assert.deepEqual(await tabs[0].violations(), [])
    }
    await shown('/jobs/answers', markup[0])
    await page.getByRole('button', { name: 'Reason…' }).click()
    assert.equal(await page.getByRole('dialog').getByLabel('Reason').inputValue(), all.slice(0))
    await page.keyboard.press('p')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.locator('.notice').getByRole('button', { name: 'Undo' }).click()
    await page.locator('.notice', { hasText: 'paused again' }).waitFor()
    assert.equal((await server.call('GET', '/v1/jobs/answers')).status.paused_reason, all)
    await addresses
    const unexpected = tabs.flatMap((v) => v.errors).filter((e) => !/status of 4\d\d/.test(e))
    assert.deepEqual(unexpected, [])
  } finally {
    for (const v of tabs) await v.end()
    await server.stop()
  }
})

test('text that becomes markup by any way is stopped by the policy', async () => {
  const server = await Server.start()
  const v = await Visit.to(server.console)
  try {
    await v.page.getByRole('heading').first().waitFor()
    const got = await v.page.evaluate(() => {
      try {
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hit=1">')
        return 'went in'
      } catch (e) {
        return e.name
      }
    })
    assert.equal(got, 'TypeError')
    assert.equal((await v.violations()).length, 1, 'the test would not see a report')
  } finally {
    await v.end()
    await server.stop()
  }
})
