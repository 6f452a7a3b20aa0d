// `gatehouse actions`.

import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import { readSettings } from '../settings/index.ts';
import type { CommandDeclaration } from './command.ts';

export const testAction: CommandDeclaration = {
  name: 'actions test <name>',
  description: 'run an action with an event, and print what it asks for, its log and what it used',
  options: (command) =>
    void command
      .requiredOption('-e, --event <file>', 'the event, JSON; - reads it from standard input')
      .option('--draft', 'as it would be if it were deployed now')
      .option('--continue', 'onContinuePostLogin: the user is back from where the action sent them')
      .option('--data-dir <folder>', 'the data directory, instead of DATA_DIR'),
  run: ({ host, sendOrder }, name: string, options: ActionTestOptions) =>
    testStoredAction(host, sendOrder, name, options),
};

/** Runs an action with an event from a file. */
async function testStoredAction(
  host: CommandProcess,
  sendOrder: SendOrder,
  name: string,
  { event: file, draft = false, continue: isContinued = false, dataDir }: ActionTestOptions,
) {
  const settings = readSettings(dataDir === undefined ? host.env : { ...host.env, DATA_DIR: dataDir });
  const event = eventOf(file === '-' ? await text(host.stdin) : await readEvent(file));
  const action = await sendOrder(settings, { command: 'action', name, isDraft: draft });
  // Imported here because no other command needs it.
  const { actionReport, tryStored } = await import('../server/administration/action-test.ts');
  const result = await tryStored(settings, action, { event, isContinued });
  print(host, actionReport(result));
  if (result.fault !== undefined || result.refused.length > 0) host.exitCode = 1;
}

/** @throws Error with the path, which the system's own error lacks for a directory */
async function readEvent(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new Error(`the event ${file} cannot be read (${code === 'EISDIR' ? 'it is a folder' : code})`);
  }
}

/** @throws Error if the text is not a JSON object */
function eventOf(json: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(json));
  } catch {
    throw new Error('the event has to be a JSON object');
  }
}

interface ActionTestOptions {
  event: string;
  draft?: boolean;
  continue?: boolean;
  dataDir?: string;
}
