// The expected answer while the database is unavailable.
import { expect } from 'chai';
import type { Answer } from '../support/agent.ts';

/** Expects status 503 with Retry-After, and no mention of the database. @param what names the request in a failure. */
export function expectBusy(answer: Answer, what: string): void {
  expect(answer.status, `${what}: ${answer.text.slice(0, 300)}`).to.equal(503);
  expect(answer.headers['retry-after'], what).to.equal('1');
  expect(answer.text, what).not.to.match(/ECONN|postgres|database/i);
}
