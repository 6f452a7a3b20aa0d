// `gatehouse move`: moving here from the hosted service. `gatehouse migrate` is another thing: it copies a store of ours.
import { setFlagsFromString } from 'node:v8';
import { type AssessedObject, assess } from '../moving/assess.ts';
import { tasksOf } from '../moving/elsewhere.ts';
import { type ExportFault, readExport } from '../moving/export.ts';
import { originAfter } from '../moving/origin.ts';
import { countsOf, exitCodeOf, type Report, textOf } from '../moving/report.ts';
import { htmlOf } from '../moving/report-html.ts';
import { findUsers, targetOf } from '../moving/users-found.ts';
import { systemClock } from '../runtime/clock.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { writeOutput } from '../store/write-whole.ts';
import type { CommandDeclaration } from './command.ts';

interface CheckOptions {
  users?: string[];
  hashes?: string[];
  json?: boolean;
  html?: string;
}

/** Exit code 0; 2 where something needs a value or is not in force; 1 where something cannot be read. */
export const checkMove: CommandDeclaration = {
  name: 'move check <export>',
  description:
    'say what becomes of a tenant of the hosted service here: the file or folder that its deploy tool exported; changes nothing',
  options: (command) =>
    void command
      .option('-u, --users <files...>', 'users exports: NDJSON, JSON or CSV, compressed with gzip or not')
      .option('--hashes <files...>', 'password hashes from support, or users in the form of import files')
      .option('--json', 'the report as JSON')
      .option('--html <file>', 'also write the report as one HTML file, to send to a colleague'),
  run: ({ host }, path: string, options: CheckOptions) => checkExport(host, path, options),
};

async function checkExport(
  host: CommandProcess,
  path: string,
  { users = [], hashes = [], json, html }: CheckOptions,
): Promise<void> {
  if (users.length + hashes.length > 0) keepSmall();
  const read = await readExport(path, host.env);
  const objects = assess(read);
  const { origin, isExample } = originAfter(host.env.BASE_URL, read.sections);
  const report: Report = {
    export: path,
    origin,
    isExampleOrigin: isExample,
    faults: unexplained(read.faults, objects),
    counts: countsOf(objects),
    objects,
    users:
      users.length + hashes.length === 0
        ? undefined
        : await findUsers({ users, hashes }, targetOf(read.sections)),
    tasks: tasksOf(read.sections, origin),
  };
  if (html !== undefined) await writeOutput(html, [htmlOf(report, new Date(systemClock()).toISOString())]);
  print(host, json === true ? JSON.stringify(report, undefined, 2) : textOf(report));
  host.exitCode = exitCodeOf(report);
}

/**
 * Has the process collect garbage early: millions of short-lived objects would otherwise let the heap grow to 350 MB, though a
 * few are in use at a time. It costs no time that can be measured.
 */
function keepSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--optimize-for-size');
}

/** Returns the faults that are about more than a value that is not there yet. */
function unexplained(faults: readonly ExportFault[], objects: readonly AssessedObject[]): string[] {
  const open = objects.flatMap(({ needs }) => needs.map(({ path }) => path.join('.')));
  return faults.filter(({ path }) => !open.includes(path)).map(({ sentence }) => sentence);
}
