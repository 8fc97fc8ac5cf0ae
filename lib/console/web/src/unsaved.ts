// What somebody has written and not saved. It is kept in this tab while its page is away: while the session has ended, above all.
import { signal } from '@preact/signals'

/** unsaved names it, '' where there is nothing. */
export const unsaved = signal('')
