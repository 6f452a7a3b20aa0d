// `gatehouse doctor`.
import { print } from '../runtime/command-process.ts';
import type { CommandDeclaration } from './command.ts';
import type { Finding } from './doctor/finding.ts';

/** Prints a line for each finding as it comes, or all of them as JSON; the exit code is 1 where there is a fault. */
export const doctor: CommandDeclaration = {
  name: 'doctor',
  description: 'look at everything the server depends on; the exit code is 1 where something is at fault',
  options: (command) =>
    void command
      .option('--json', 'print the findings as JSON')
      .option('--hardening', 'go through the hardening checklist, also where this is not production'),
  run: async (
    { host, log },
    { json = false, hardening = false }: { json?: boolean; hardening?: boolean },
  ) => {
    // Imported here because it loads what the server is made of.
    const { examine } = await import('./doctor/examine.ts');
    const results: Finding[] = [];
    for await (const finding of examine({ env: host.env, log, hardening })) {
      results.push(finding);
      if (!json) print(host, `${finding.verdict.padEnd(7)}  ${finding.check}: ${finding.text}`);
    }
    if (json) print(host, JSON.stringify(results, null, 2));
    if (results.some(({ verdict }) => verdict === 'fault')) host.exitCode = 1;
  },
};
