// Test runs of actions: the action is read from the store, and runs in the process of the command.
import { z } from 'zod';
import { type ActionTestResult, tryAction } from '../../capabilities/actions/try-action.ts';
import { createPackages } from '../../capabilities/scripts/packages/packages.ts';
import { createScripts } from '../../capabilities/scripts/scripts.ts';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { ACTION_MODULE } from '../../records/tenant/action-modules.ts';
import {
  deployedOf,
  draftOf,
  type RunnableAction,
  type Trigger,
  triggerOf,
} from '../../records/tenant/actions.ts';
import { outboundAllow, packagesDirectory, type Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { order } from './order.ts';
import { usageLines } from './script-test.ts';

export interface StoredAction {
  action: RunnableAction;
  trigger: Trigger;
}

export const action = order({
  body: z.strictObject({ name: z.string().min(1).max(255), isDraft: z.boolean() }),
  run: storedAction,
});

/**
 * Returns an action as it was last deployed, or its draft.
 * @throws Error if it does not exist, was not deployed, or its trigger is not supported.
 */
async function storedAction(
  { store }: { store: Store },
  { name, isDraft }: { name: string; isDraft: boolean },
): Promise<StoredAction> {
  const documents = store.collection('documents');
  const actions = await documents.findBy('kind', 'action');
  const modules = await documents.findBy('kind', ACTION_MODULE);
  const found = actions.find(({ body }) => body.name === name);
  if (found === undefined) throw new Error(`there is no action ${name}`);
  const action = isDraft ? draftOf(found, modules) : deployedOf(found, modules);
  if (action === undefined)
    throw new Error(`the action ${name} was not deployed yet: --draft runs the draft`);
  const trigger = triggerOf(found);
  if (trigger === undefined)
    throw new Error(`the action ${name} is for a trigger whose actions do not run here`);
  return { action, trigger };
}

/**
 * Runs an action once, as a login does, but without the effects that it asks for.
 * @param options.event the event that the action gets.
 */
export async function tryStored(
  settings: Settings,
  { action, trigger }: StoredAction,
  options: { event: Record<string, unknown>; isContinued: boolean },
): Promise<ActionTestResult> {
  const { hostname } = new URL(settings.baseUrl);
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const scripts = createScripts({ outbound, clock: Date.now, keepsLog: false });
  const packages = createPackages({ directory: packagesDirectory(settings), scripts });
  try {
    return await tryAction(
      { scripts, packages, wallClock: Date.now, hostname },
      { action, trigger, ...options },
    );
  } finally {
    await scripts.close();
  }
}

/** Returns the result of a run, for people to read. */
export function actionReport({ commands, refused, fault, logs, used }: ActionTestResult): string {
  const calls = commands.map(
    ({ method, args }) => `\n  ${method}(${args.map((one) => JSON.stringify(one)).join(', ')})`,
  );
  const outcome = fault === undefined ? `asked for:${calls.join('') || ' nothing'}` : `failed: ${fault}`;
  const refusals = refused.length === 0 ? '' : `\nrefused: ${refused.join(', ')}`;
  const log = logs.map(({ level, text }) => `\n  ${level.padEnd(5)} ${text}`).join('');
  const usage = used === undefined ? '' : `\nused:\n${usageLines(used)}`;
  return `${outcome}${refusals}\nlog:${log === '' ? ' nothing' : log}${usage}`;
}
