// What is answered while the database is away.
import { expect } from 'chai';
import type { Answer } from '../support/agent.ts';

/** Expects 503, with when to try again, and nothing of the database. @param what is named where it is not so. */
export function expectBusy(answer: Answer, what: string): void {
  expect(answer.status, `${what}: ${answer.text.slice(0, 300)}`).to.equal(503);
  expect(answer.headers['retry-after'], what).to.equal('1');
  expect(answer.text, what).not.to.match(/ECONN|postgres|database/i);
}
