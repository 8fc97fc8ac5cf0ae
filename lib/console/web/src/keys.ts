// Single keys. The list that a page shows last is the one that j and k move through.
import { signal } from '@preact/signals'
import { go, to } from './router'
import { singleKeys } from './settings'

export interface Walked {
  move: (by: number) => void
  open: () => void
  pick?: () => void
}

const walked: Walked[] = []

export function walk(list: Walked): () => void {
  walked.push(list)
  return () => {
    walked.splice(walked.indexOf(list), 1)
  }
}

export const helpShown = signal(false)

/** pages are where g and a letter lead. */
export const pages: { key: string; name: string; segments: string[] }[] = [
  { key: 'o', name: 'Overview', segments: [] },
  { key: 'j', name: 'Jobs', segments: ['jobs'] },
  { key: 'r', name: 'Runs', segments: ['runs'] },
  { key: 'd', name: 'Dead letters', segments: ['dead-letters'] },
  { key: 'c', name: 'Schedule', segments: ['schedule'] },
  { key: 'q', name: 'Queues', segments: ['queues'] },
  { key: 't', name: 'Tools', segments: ['tools'] },
  { key: 'a', name: 'API', segments: ['docs'] },
  { key: 's', name: 'Settings', segments: ['settings'] },
]

/** step moves through the list that the page shows. */
export const step = (by: number): void => walked[walked.length - 1]?.move(by)

const bound = new Map<string, () => void>()

/** bind has a key do what a button of the page does. */
export function bind(key: string, act: () => void): () => void {
  bound.set(key, act)
  return () => {
    if (bound.get(key) === act) bound.delete(key)
  }
}

let leading = 0

function pressed(event: KeyboardEvent): void {
  if (!singleKeys.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  const at = event.target instanceof Element ? event.target : document.body
  if (at.closest('input, textarea, select, dialog, [contenteditable]') || document.querySelector('dialog[open]')) return
  const list = walked[walked.length - 1]
  if (event.timeStamp - leading < 1500 && leading) {
    leading = 0
    const page = pages.find((p) => p.key === event.key)
    if (page) {
      event.preventDefault()
      go(to(...page.segments))
    }
    return
  }
  switch (event.key) {
    case 'g':
      leading = event.timeStamp
      return
    case 'j':
    case 'k':
      step(event.key === 'j' ? 1 : -1)
      break
    case 'Enter':
      if (at.closest('a, button, summary')) return
      list?.open()
      return
    case '/': {
      const field = document.querySelector<HTMLInputElement>('input[data-find]')
      if (!field) return
      field.focus()
      field.select()
      break
    }
    case '?':
      helpShown.value = true
      break
    case 'x':
      list?.pick?.()
      break
    default:
      // A key that is held down asks once.
      if (event.repeat) return
      if (!bound.has(event.key)) return
      bound.get(event.key)?.()
  }
  event.preventDefault()
}

addEventListener('keydown', pressed)
