// Tests one action with a given event. What it asks for is returned and not applied.
import { continueEntry, type RunnableAction, TRIGGER_ENTRIES, type Trigger } from '../records/actions.ts';
import { type ClaimTarget, claimFault } from '../records/custom-claims.ts';
import type { ScriptUsage } from '../scripts/limits.ts';
import { withoutSecrets } from '../scripts/scripts.ts';
import { type ActionOutcome, type Command, methodsOf, nothingAsked, takeCommand } from './commands.ts';
import { type RunActionDependencies, runAction, secretsOf } from './run-action.ts';

/** What is to be run. */
export interface ActionTest {
  action: RunnableAction;
  trigger: Trigger;
  event: Readonly<Record<string, unknown>>;
  /** Whether the action continues after its redirect. */
  isContinued?: boolean;
}

/** The outcome of a test. */
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
  const how = { entry, methods, canRedirect: true, rules: [] };
  const { ran, ...answer } = await runAction(deps, action, { event, how, kept: {} });
  const logs = ran?.printed ?? [];
  const used = ran && { used: ran.used };
  if ('fault' in answer) return { commands: [], refused: [], fault: answer.fault, logs, ...used };
  const asked = nothingAsked();
  const refused = answer.commands.filter(
    (command) => !command.method.startsWith('cache.') && takeCommand(methods, asked, command) !== true,
  );
  const secrets = secretsOf(action);
  return {
    commands: copyWithoutSecrets(answer.commands, secrets) as Command[],
    refused: [...refused.map(({ method }) => method), ...refusedClaims(asked, secrets)],
    logs,
    ...used,
  };
}

/** Returns the claims that no token may have, as they were asked for. */
function refusedClaims({ idToken, accessToken }: ActionOutcome, secrets: readonly string[]): string[] {
  const of = (method: string, to: ClaimTarget, claims: object) =>
    Object.keys(claims)
      .filter((claim) => claimFault(claim, [to]) !== undefined)
      .map((claim) => `${method}.setCustomClaim(${JSON.stringify(withoutSecrets(claim, secrets))})`);
  return [...of('idToken', 'id_token', idToken), ...of('accessToken', 'access_token', accessToken)];
}

/** Returns a copy of a value with the secrets in its texts replaced. */
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
