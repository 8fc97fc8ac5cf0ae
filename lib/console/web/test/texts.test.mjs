// What needs no page: texts of others, laid out.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import ts from 'typescript'

/** source gives a module of the pages, with those that it imports. */
const source = (name) => import(address(name))

function address(name) {
  const text = readFileSync(path.resolve(import.meta.dirname, '../src', name), 'utf8')
  const made = ts.transpileModule(text, { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } }).outputText
  const whole = made.replace(/from '\.\/([a-z]+)'/g, (_, of) => `from '${address(of + '.ts')}'`)
  return 'data:text/javascript;base64,' + Buffer.from(whole).toString('base64')
}
const { pretty, fieldText, elements } = await source('json.ts')
const { Screen } = await source('ansi.ts')
const { quoted } = await source('quoted.ts')
const { labelsOf } = await source('labels.ts')
const { differ, counted } = await source('lines.ts')

test('JSON is laid out without a change of its tokens', () => {
  for (const text of ['{"a":123456789012345678901234567890,"a":1.0,"b":[],"c":{},"d":[1,{"e":"x\\u0000,{}[]:\\"y"}]}', '[]', '"text"', '1e400', ' { "a" : [ 1 , 2 ] } ', '{"\\\\":"\\\\"}']) {
    assert.equal(pretty(text).replace(/\s/g, ''), text.replace(/\s/g, ''))
  }
  assert.equal(pretty('{"a":[1,{}]}'), '{\n  "a": [\n    1,\n    {}\n  ]\n}')
  assert.equal(pretty('not {json'), 'not {json')
  assert.equal(pretty('{"a":1}').includes('123'), false)
})

test('a field of JSON is found as it was sent', () => {
  const text = '{"id":"x","attempts":[{"result":1}],"fence":18446744073709551615,"x":{"result":2},"result":{"n":12345678901234567890,"s":"},\\""},"y":":result"}'
  assert.equal(fieldText(text, 'result'), '{"n":12345678901234567890,"s":"},\\""}')
  assert.equal(fieldText(text, 'fence'), '18446744073709551615')
  assert.equal(fieldText(text, 'y'), '":result"')
  assert.equal(fieldText(text, 'n'), undefined)
  assert.equal(fieldText('{"result":"result"}', 'result'), '"result"')
  assert.equal(fieldText('{"a":"result","result":null}', 'result'), 'null')
  assert.equal(fieldText('[]', 'result'), undefined)
})

test('what a JSON array holds is given as it was sent', () => {
  assert.deepEqual(elements('[ {"a": [1, {"b": 2}]}, "x,]", 12345678901234567890, [], null ]'), ['{"a": [1, {"b": 2}]}', '"x,]"', '12345678901234567890', '[]', 'null'])
  assert.deepEqual(elements('[]'), [])
  assert.deepEqual(elements('[[1],[2]]'), ['[1]', '[2]'])
})

const lines = (screen) => screen.lines.map((l) => l.pieces.map((p) => (p.style ? `<${p.style}>` : '') + p.text).join(''))
const screened = (...parts) => {
  const s = new Screen(50)
  for (const p of parts) s.write(typeof p === 'string' ? new TextEncoder().encode(p) : p)
  return s
}

test('a log is text and colours, wherever it is cut', () => {
  const whole = 'a \x1b[31mred\x1b[0m \x1b]0;title\x07b\x1b[2J\x1b[1;92mstrong\x1b[m é😀\r\nnext 10%\rnext 100%\n\x1b]8;;javascript:x\x1b\\link\x1b]8;;\x1b\\\x1bPq\x1b\\.\x1b(B!'
  const want = ['a <ansi-red>red b<ansi-green ansi-bright ansi-bold>strong é😀', 'next 100%', 'link.!']
  assert.deepEqual(lines(screened(whole)), want)
  const bytes = new TextEncoder().encode(whole)
  for (let cut = 1; cut < bytes.length; cut++) assert.deepEqual(lines(screened(bytes.slice(0, cut), bytes.slice(cut))), want, `cut at ${cut}`)
})

test('a sequence that never ends takes no more than its line', () => {
  assert.deepEqual(lines(screened('a\x1b]0;' + 'x'.repeat(1000) + '\nb')), ['a', 'b'])
  assert.deepEqual(lines(screened('a\x1b[' + '1;'.repeat(100) + 'mb\nc')).at(-1), 'c')
  assert.deepEqual(lines(screened('\x00\x07\x08\x7f\u0085ok\u202egnp')), ['ok\ufffdgnp'])
})

test('of a long log the newest lines are kept', () => {
  const s = screened(Array.from({ length: 200 }, (_, i) => 'line ' + i).join('\n'))
  assert.equal(s.lines.length, 50)
  assert.equal(s.dropped, 150)
  assert.equal(lines(s).at(-1), 'line 199')
})

test('a word for a shell is that word, whatever is in it, and a terminal acts on nothing of it', () => {
  const words = ["it's", '$HOME `id` $(id) !! \\ "x"', '', '-n', '--reason=x', '~root', 'a~b', 'a=~b', '*?[a]{b,c}', '#x', 'two\nlines\n', '\x1b[201~rm -rf /\r', '%d%s\t%%\x07\\', 'caf\u00e9 \u202egnp.exe', 'ends\x1b\n\n', '\ud83d\ude00\u2028', "'\x1b'"]
  for (const shell of ['sh', 'bash']) {
    for (const word of words) {
      const line = quoted(word)
      assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(line), JSON.stringify(line))
      const said = execFileSync(shell, ['-c', `printf '%s.' ${line}`], { encoding: 'utf8' })
      assert.equal(said, word + '.', `${shell}: ${line}`)
    }
  }
})

test('the labels of a filter are read as the API reads them', () => {
  for (const [list, want] of Object.entries({
    'team=billing': { team: 'billing' }, 'team=billing,env=prod': { team: 'billing', env: 'prod' }, 'team=a,b': { team: 'a,b' }, 'team=,env=': { team: '', env: '' }, 'team=a,': { team: 'a,' },
    'team=a\\,env=prod': { team: 'a,env=prod' }, 'dir=C:\\x': { dir: 'C:\\x' }, 'dir=C:\\\\,env=prod': { dir: 'C:\\', env: 'prod' }, 'team=a, env=prod': { team: 'a, env=prod' }, team: { team: '' },
  })) assert.deepEqual(labelsOf(list), want, list)
  assert.deepEqual(Object.entries(labelsOf('__proto__=x')), [['__proto__', 'x']])
})

test('a diff leads from one text to the other, by as few lines as can be', () => {
  let seed = 37
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n
  const longest = (a, b) => {
    const rows = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0))
    a.forEach((x, i) => b.forEach((y, j) => (rows[i + 1][j + 1] = x === y ? rows[i][j] + 1 : Math.max(rows[i][j + 1], rows[i + 1][j]))))
    return rows[a.length][b.length]
  }
  for (let round = 0; round < 500; round++) {
    const text = () => Array.from({ length: random(12) }, () => 'abcd'[random(4)])
    const [a, b] = [text(), text()]
    const edits = differ(a.join('\n'), b.join('\n'))
    const side = (sign) => edits.filter((e) => e.sign === ' ' || e.sign === sign).map((e) => e.line)
    assert.deepEqual([side('-'), side('+')], [a, b])
    assert.equal(edits.filter((e) => e.sign === ' ').length, longest(a, b))
  }
  assert.deepEqual(differ('', ''), [])
  assert.deepEqual(differ('a\n', 'a').map((e) => e.sign), [' '])
  assert.equal(counted(differ('a\nb\nc', 'a\nx\nc')), '1 line removed, 1 added')
  assert.equal(counted(differ('a', 'a')), '')
  assert.equal(counted(differ('', 'a\nb')), '2 lines added')
})

test('a diff of long texts comes at once, and of what is too long all goes and comes', () => {
  const many = Array.from({ length: 60_000 }, (_, i) => 'line ' + i)
  assert.equal(counted(differ(many.join('\n'), [...many.slice(0, 30_000), 'new', ...many.slice(30_000)].join('\n'))), '1 line added')
  const other = many.map((l) => l + (Number(l.slice(5)) % 2 ? '' : '!'))
  assert.equal(counted(differ(many.join('\n'), other.join('\n'))), '59999 lines removed, 59999 added')
})

const stats = await source('stats.ts')
const point = (at, more = {}) => ({ at, due: 0, succeeded: 0, failed: 0, cancelled: 0, skipped: 0, dead: 0, unknown: 0, open: 0, unended: 0, retries: 0, lateness: { count: 0, buckets: [0, 0, 0] }, ...more })

test('points stand in their minute, what has none is a gap, and what is not swept is told apart', () => {
  const late = { count: 4, buckets: [2, 2, 0] }
  const all = stats.bins({ from: '2026-11-26T15:00:00Z', to: '2026-11-26T16:00:00Z', step_seconds: 60, swept_until: '2026-11-26T15:57:00Z', lateness_bounds_ms: [10, 100],
    points: [point('2026-11-26T15:03:00Z', { succeeded: 5, dead: 1, unknown: 1, failed: 1, skipped: 2, cancelled: 1, open: 4, unended: 6, lateness: late }), point('2026-11-26T15:58:00Z', { succeeded: 1 })] })
  assert.equal(all.length, 60)
  assert.deepEqual(all[3].counts, [5, 4, 3, 3, 6])
  assert.deepEqual(stats.kinds.slice(3), ['failed', 'not ended within 5 hours'])
  assert.deepEqual(['retrying', 'cancelled', 'unknown'].map(stats.kindOf), [1, 2, 3])
  assert.deepEqual(all[3].late, late)
  assert.equal(all[2].late, undefined)
  assert.deepEqual(all.map((b) => b.swept).lastIndexOf(true), 56)
  assert.equal(stats.bins({ from: '2026-11-26T15:00:00Z', to: '2026-11-26T15:02:00Z', step_seconds: 60, lateness_bounds_ms: [], points: [] })[0].swept, false)
})

test('a day by the minute is drawn in stretches of five, with all that is in them', () => {
  const points = Array.from({ length: 1440 }, (_, i) => point(new Date(Date.parse('2026-11-25T00:00:00Z') + i * 60_000).toISOString(), { succeeded: 1, lateness: { count: 1, buckets: [1, 0, 0] } }))
  const all = stats.bins({ from: '2026-11-25T00:00:00Z', to: '2026-11-26T00:00:00Z', step_seconds: 60, swept_until: '2026-11-25T23:58:00Z', lateness_bounds_ms: [10, 100], points })
  assert.equal(all.length, 288)
  assert.ok(all.every((b) => b.counts[0] === 5 && b.late.count === 5 && b.late.buckets[0] === 5))
  assert.deepEqual([all[286].swept, all[287].swept], [true, false])
})

test('a quantile of a histogram lies evenly within its bucket', () => {
  const bounds = [10, 100]
  assert.equal(stats.quantile({ count: 10, buckets: [10, 0, 0] }, bounds, 0.5), 5)
  assert.equal(stats.quantile({ count: 10, buckets: [5, 5, 0] }, bounds, 0.75), 55)
  assert.equal(stats.quantile({ count: 10, buckets: [0, 0, 10] }, bounds, 0.99), 100)
  assert.equal(stats.quantile({ count: 2, buckets: [0, 2, 0] }, bounds, 0), 10)
})

test('lines end at gaps, and scales do not jump', () => {
  assert.deepEqual(stats.stretches([undefined, 1, 2, undefined, 3]), [{ from: 1, values: [1, 2] }, { from: 4, values: [3] }])
  assert.deepEqual([1, 3, 11, 50, 501].map(stats.nice), [1, 5, 20, 50, 1000])
  assert.deepEqual([0, 1, 10, 100, 1e9].map((v) => stats.height(v, 1, 100)), [0, 0, 0.5, 1, 1])
})

const days = await source('days.ts')
test('a calendar is 53 whole weeks from a Monday on, this week among them', () => {
  for (let i = 0; i < 800; i++) {
    const today = days.shift('2026-01-01', i)
    const { from, to } = days.spanOf(today)
    assert.equal(days.weekday(from), 0)
    assert.equal(days.shift(from, 370), to)
    assert.ok(today <= days.shift(to, -21) && today > days.shift(to, -28), today)
  }
})

const load = await source('load.ts')
test('hours of a week stand by the clock, also where it shows one twice or none', () => {
  const clock = (ms) => ({ date: new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(ms), hour: Number(new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', hour: '2-digit', hourCycle: 'h23' }).format(ms)) })
  const of = (from, to) => load.byClock(load.slots({ from, to, step_seconds: 3600, fires: Array.from({ length: 24 }, (_, i) => (i === 5 ? 7 : 0)) }), clock)
  const back = of('2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z')
  assert.equal(back.length, 1)
  assert.equal(back[0].hours[2].length, 2)
  assert.equal(back[0].hours.flat().length, 25)
  const ahead = of('2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z')
  assert.deepEqual([ahead.length, ahead[0].hours[2], ahead[0].hours.flat().filter(Boolean).length], [1, undefined, 23])
  assert.deepEqual(load.quiet(of('2026-11-01T23:00:00Z', '2026-11-02T23:00:00Z')), ['00:00–05:00', '06:00–24:00'])
})
