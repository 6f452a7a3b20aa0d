// Prints the doctor's findings.
import type { Logger } from 'pino';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { examine } from './doctor.ts';
import type { Finding } from './finding.ts';

/** Prints a line for each finding as it comes, or all of them as JSON; the exit code is 1 where there is a fault. */
export async function doctor(
  { json = false }: { json?: boolean },
  host: CommandProcess,
  log: Logger,
): Promise<void> {
  const all: Finding[] = [];
  for await (const finding of examine(host.env, log)) {
    all.push(finding);
    if (!json) print(host, `${finding.verdict.padEnd(7)}  ${finding.check}: ${finding.text}`);
  }
  if (json) print(host, JSON.stringify(all, null, 2));
  if (all.some(({ verdict }) => verdict === 'fault')) host.exitCode = 1;
}
