// What mocha calls around a run.
import { closeBrowsers } from './browser.ts';

/** Where tests run in processes of their own (`--parallel`), the browsers end with those. */
export async function mochaGlobalTeardown(): Promise<void> {
  await closeBrowsers();
}
