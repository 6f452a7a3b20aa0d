// A real Chromium, from an npm package, that trusts the test server's certificate and nothing else of ours.
import { createHash, createPublicKey } from 'node:crypto';
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as playwright } from 'playwright-core';

/** Looks up nothing outside: only what a test itself opens. */
const QUIET = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
];

/**
 * Starts a browser.
 * @param caPem the CA to trust, by the hash of its key: Chromium checks every certificate of a chain against
 *   it. Verification of all others stays on.
 */
export async function launchBrowser(caPem?: string): Promise<Browser> {
  const trust =
    caPem === undefined
      ? []
      : [`--ignore-certificate-errors-spki-list=${keyHash(caPem)}`, '--user-data-dir='];
  return playwright.launch({
    executablePath: await chromium.executablePath(),
    headless: true,
    args: [...QUIET, ...trust.filter((arg) => !arg.startsWith('--user-data-dir'))],
  });
}

function keyHash(certificatePem: string): string {
  const der = createPublicKey(certificatePem).export({ format: 'der', type: 'spki' });
  return createHash('sha256').update(der).digest('base64');
}
