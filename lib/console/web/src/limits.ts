// Written by make generate: what the server holds to.

/** inRequest is how many runs or jobs one request may be about. */
export const inRequest = 1000

/** seconds is how long one request over many may take. */
export const seconds = 15

/** explained is how many refusals one answer tells in words. */
export const explained = 100

/** sampled is how many a dry run over a filter shows. */
export const sampled = 20
