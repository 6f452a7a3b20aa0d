// The hardening checklist: `npm run docs` writes the list of docs from it, and `gatehouse doctor` goes through it.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../finding.ts';
import type { Facts, HardeningLine, Outcome } from './line.ts';
import { SERVER_LINES } from './server-lines.ts';
import { TENANT_LINES } from './tenant-lines.ts';

/** The lines, by the heading that they are below. */
export const HARDENING: Readonly<Record<string, readonly HardeningLine[]>> = {
  'The server': SERVER_LINES,
  'The tenant': TENANT_LINES,
};

const VERDICTS = { passed: 'ok', 'to do': 'warning', unseen: 'by hand' } as const;
const WORDS = { passed: 'passed', 'to do': 'to do', unseen: 'cannot be seen from here' } as const;

/** Returns a finding for each line, in the order of the document. */
export function hardeningFindings(facts: Facts): Finding[] {
  const finding = ({ id }: HardeningLine, { state, text }: Outcome): Finding => ({
    check: `hardening ${id}`,
    verdict: VERDICTS[state],
    text: `${WORDS[state]}: ${text}`,
  });
  return Object.values(HARDENING)
    .flat()
    .map((line) => finding(line, line.check(facts)));
}

/** Returns how many messages the development outbox of a data directory has. */
export async function countOutbox(dataDir: string): Promise<number> {
  const files = await readdir(join(dataDir, 'outbox')).catch(() => []);
  return files.length;
}
