// Called by mocha around a run.
import { closeBrowsers } from './browser.ts';

/** When tests run in several processes (`--parallel`), the browsers end with those processes. */
export async function mochaGlobalTeardown(): Promise<void> {
  await closeBrowsers();
}
