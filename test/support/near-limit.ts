// For `npm run test:near`: test files whose turn comes after its time are skipped, and noted.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

const { NEAR_UNTIL, NEAR_LEFT = '' } = process.env;

export const mochaHooks = {
  beforeAll(this: Mocha.Context) {
    if (Date.now() < Number(NEAR_UNTIL)) return;
    // With `--parallel` this runs once for each file.
    const file = this.test?.parent?.suites[0]?.file ?? '';
    appendFileSync(NEAR_LEFT, `${relative('.', file)}\n`);
    this.skip();
  },
};
