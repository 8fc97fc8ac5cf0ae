// The second that it is, by the server's clock. It stands still while nobody can see the page.
import { signal } from '@preact/signals'
import { serverNow } from './api'

export const now = signal(serverNow())

setInterval(() => {
  if (!document.hidden) now.value = serverNow()
}, 1000)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = serverNow()
})
