// Where the console begins.
import { render } from 'preact'
import { App } from './app'
import { hear } from './changes'
import { arrive } from './key'

const root = document.getElementById('app')
if (root)
  void arrive().finally(() => {
    hear()
    render(<App />, root)
  })
