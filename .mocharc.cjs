// How mocha runs the tests, by `npm test` or of one file.
const { availableParallelism } = require('node:os');
const { join } = require('node:path');

// The many processes that tests start need not compile the same files anew. What is measured is not taken from there.
if (process.env.NODE_V8_COVERAGE === undefined) {
  process.env.NODE_COMPILE_CACHE ??= join(__dirname, 'node_modules/.cache/compile');
}

module.exports = {
  // Ends a test that hangs; one that works may take that long on a machine that is busy.
  timeout: 600_000,
  exit: false,
  forbidOnly: true,
  require: ['./test/support/setup.ts'],
  // With `--parallel`: tests also wait for browsers and processes of their own.
  jobs: availableParallelism() * 2,
};
