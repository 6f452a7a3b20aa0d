// How mocha runs the tests, by `npm test` or of one file.
const { availableParallelism } = require('node:os');

module.exports = {
  timeout: 60_000,
  exit: false,
  forbidOnly: true,
  require: ['./test/support/setup.ts'],
  // With `--parallel`: tests also wait for browsers and processes of their own.
  jobs: Math.max(2, availableParallelism()),
};
