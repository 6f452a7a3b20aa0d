// Tests one action with a given event. What it asks for is returned and not applied.
import {
  continueEntry,
  type RunnableAction,
  TRIGGER_ENTRIES,
  type Trigger,
} from '../../records/tenant/actions.ts';
import { type ClaimTarget, claimFault } from '../../records/users/custom-claims.ts';
import type { ScriptUsage } from '../scripts/limits.ts';
import { withoutSecrets } from '../scripts/scripts.ts';
import { type ActionOutcome, applyCommand, type Command, emptyOutcome, methodsOf } from './commands.ts';
import { type RunActionDependencies, runAction, secretsOf } from './run-action.ts';

export interface ActionTest {
  action: RunnableAction;
  trigger: Trigger;
  event: Readonly<Record<string, unknown>>;
  /** Whether the action continues after its redirect. */
  isContinued?: boolean;
}

export interface ActionTestResult {
  /** What the action asked for, in order. */
  commands: Command[];
  /** What of it would be refused: methods, and claims as they were set (`idToken.setCustomClaim("sub")`). */
  refused: string[];
  /** Why it failed, if it did. */
  fault?: string;
  logs: { level: string; text: string }[];
  used?: ScriptUsage;
}

/** Runs an action. The values of its secrets are removed from the outcome. */
export async function tryAction(
  deps: RunActionDependencies,
  { action, trigger, event, isContinued = false }: ActionTest,
): Promise<ActionTestResult> {
  const methods = methodsOf(trigger, isContinued);
  const entry = isContinued ? continueEntry(trigger) : TRIGGER_ENTRIES[trigger];
  const options = { entry, methods, canRedirect: true, rules: [] };
  const { run, ...answer } = await runAction(deps, action, { event, options, cacheEntries: {} });
  const logs = run?.printed ?? [];
  const used = run && { used: run.used };
  if ('fault' in answer) return { commands: [], refused: [], fault: answer.fault, logs, ...used };
  const outcome = emptyOutcome();
  const refused = answer.commands.filter(
    (command) => !command.method.startsWith('cache.') && applyCommand(methods, outcome, command) !== true,
  );
  const secrets = secretsOf(action);
  return {
    commands: copyWithoutSecrets(answer.commands, secrets) as Command[],
    refused: [...refused.map(({ method }) => method), ...refusedClaims(outcome, secrets)],
    logs,
    ...used,
  };
}

/** Returns the claims that no token may have, as they were asked for. */
function refusedClaims({ idToken, accessToken }: ActionOutcome, secrets: readonly string[]): string[] {
  const refusedIn = (method: string, target: ClaimTarget, claims: object) =>
    Object.keys(claims)
      .filter((claim) => claimFault(claim, [target]) !== undefined)
      .map((claim) => `${method}.setCustomClaim(${JSON.stringify(withoutSecrets(claim, secrets))})`);
  return [
    ...refusedIn('idToken', 'id_token', idToken),
    ...refusedIn('accessToken', 'access_token', accessToken),
  ];
}

function copyWithoutSecrets(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return withoutSecrets(value, secrets);
  if (Array.isArray(value)) return value.map((one) => copyWithoutSecrets(one, secrets));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, one]) => [
    withoutSecrets(name, secrets),
    copyWithoutSecrets(one, secrets),
  ]);
  return Object.fromEntries(members);
}
