// Prints the doctor's findings.
import type { Logger } from 'pino';
import { type CommandProcess, print } from '../../runtime/command-process.ts';
import { examine } from './doctor.ts';
import type { Finding } from './finding.ts';

/** Prints a line for each finding as it comes, or all of them as JSON; the exit code is 1 where there is a fault. */
export async function doctor(
  { json = false }: { json?: boolean },
  host: CommandProcess,
  log: Logger,
): Promise<void> {
  const results: Finding[] = [];
  for await (const finding of examine(host.env, log)) {
    results.push(finding);
    if (!json) print(host, `${finding.verdict.padEnd(7)}  ${finding.check}: ${finding.text}`);
  }
  if (json) print(host, JSON.stringify(results, null, 2));
  if (results.some(({ verdict }) => verdict === 'fault')) host.exitCode = 1;
}
