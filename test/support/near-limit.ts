// For `npm run test:near`: when its time is up no test is begun any more, and shortly before that no file.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

const { NEAR_UNTIL, NEAR_SECONDS, NEAR_LEFT = '' } = process.env;
const until = Number(NEAR_UNTIL);
/** A file that is begun still has this time: its server has to start before its first test. */
const lastBegin = until - (Number(NEAR_SECONDS) * 1000) / 4;

/** The file in progress, once its tests were left out. */
let left: string | undefined;

function noteLeft(file = ''): void {
  if (left === file) return;
  left = file;
  appendFileSync(NEAR_LEFT, `${relative('.', file)}\n`);
}

export const mochaHooks = {
  // With `--parallel` this is called for each file.
  beforeAll(this: Mocha.Context) {
    const { suites = [], tests = [] } = this.test?.parent ?? {};
    if (Date.now() < lastBegin) return;
    noteLeft((suites[0] ?? tests[0])?.file);
    // Skipped tests would be shown, hundreds of them.
    suites.length = 0;
    tests.length = 0;
  },
  beforeEach(this: Mocha.Context) {
    if (Date.now() < until) return;
    noteLeft(this.currentTest?.file);
    this.skip();
  },
};
