import a11y from 'eslint-plugin-jsx-a11y'
import ts from 'typescript-eslint'

export default ts.config(
  { ignores: ['vendor/**', 'node_modules/**'] },
  ...ts.configs.recommended,
  { files: ['src/**/*.tsx'], ...a11y.flatConfigs.strict },
  // What scrolls is reached by keys too.
  { files: ['src/**/*.tsx'], rules: { 'jsx-a11y/no-noninteractive-tabindex': ['error', { tags: [], roles: ['region'], allowExpressionValues: true }] } },
  { files: ['test/**'], rules: { '@typescript-eslint/no-unused-expressions': 'off' } },
  {
    files: ['test/**'],
    rules: {
      // A name is looked for anywhere in those of links: that of a job is in its runs' IDs, too, once it has some.
      'no-restricted-syntax': ['error', {
        selector: "CallExpression[callee.property.name='getByRole'][arguments.0.value='link'] > ObjectExpression:not(:has(> Property[key.name='exact'])) > Property[key.name='name'] > Literal[value=/^[a-z0-9-]+$/]",
        message: 'The name of a job is looked for with exact: true.',
      }],
    },
  },
  {
    files: ['src/**'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      'no-restricted-globals': ['error', 'eval', 'alert', 'confirm', 'prompt'],
      'no-restricted-properties': ['error', { property: 'innerHTML' }, { property: 'outerHTML' }, { property: 'insertAdjacentHTML' }],
      eqeqeq: 'error',

    },
  },
)
