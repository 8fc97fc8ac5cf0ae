// Labels as a filter has them.

const starts = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}=/

/** labelsOf takes a list of labels apart as the API does: a comma begins a label only where NAME= follows it. Of the backslashes in front of a
 * comma half are text, and one that is left over says that the comma is, too. */
export function labelsOf(list: string): Record<string, string> {
  const all: string[] = []
  let label = ''
  let at = 0
  for (const found of list.matchAll(/(\\*),/g)) {
    const slashes = found[1]?.length ?? 0
    label += list.slice(at, found.index) + '\\'.repeat(Math.floor(slashes / 2))
    at = found.index + found[0].length
    if (slashes % 2 === 0 && starts.test(list.slice(at))) {
      all.push(label)
      label = ''
    } else label += ','
  }
  all.push(label + list.slice(at))
  return Object.fromEntries(all.map((one) => [one.split('=', 1)[0] ?? '', one.includes('=') ? one.slice(one.indexOf('=') + 1) : '']))
}
