// The time zones that this browser knows, to choose from.
import { mine } from './time'

export const zones = (() => {
  try {
    return ['UTC', ...Intl.supportedValuesOf('timeZone').filter((z) => z !== 'UTC')]
  } catch {
    return ['UTC', mine] // of a browser that does not tell
  }
})()
