// The actions that run: those bound to a trigger, in order, each as it was last deployed.

import type { Frozen } from '../base/record.ts';
import { runnableModules } from './action-modules.ts';
import type { DocumentRecord } from './documents.ts';

/** The triggers whose actions run here, with the name of the function that an action exports for it. */
export const TRIGGER_ENTRIES = {
  'post-login': 'onExecutePostLogin',
  'credentials-exchange': 'onExecuteCredentialsExchange',
  // docs/understand/decisions/actions-scripts.md#pre-user-registration-also-runs-for-addresses-that-are-taken
  'pre-user-registration': 'onExecutePreUserRegistration',
  'post-user-registration': 'onExecutePostUserRegistration',
  'post-change-password': 'onExecutePostChangePassword',
  'send-phone-message': 'onExecuteSendPhoneMessage',
  'custom-phone-provider': 'onExecuteCustomPhoneProvider',
  'custom-email-provider': 'onExecuteCustomEmailProvider',
  'custom-token-exchange': 'onExecuteCustomTokenExchange',
  'password-reset-post-challenge': 'onExecutePostChallenge',
} as const;

/** Triggers whose actions must not be skipped when they fail, because nothing else does their work. */
export const NEEDED_TRIGGERS: ReadonlySet<string> = new Set([
  'send-phone-message',
  'custom-phone-provider',
  'custom-email-provider',
]);

/** Returns the function of an action that is called when a user whom the action redirected comes back. */
export function continueEntry(trigger: Trigger): string {
  return TRIGGER_ENTRIES[trigger].replace('onExecute', 'onContinue');
}

export type Trigger = keyof typeof TRIGGER_ENTRIES;

export interface BoundAction {
  name: string;
  code: string;
  /** The names of the npm packages that it requires. */
  dependencies: readonly string[];
  /** The values by name. */
  secrets: Readonly<Record<string, string>>;
  /** The modules that it requires as `actions:NAME`; the action fails if one of them no longer exists. */
  modules: ReturnType<typeof runnableModules>;
  /** Whether it is bound without a deployed version, so that it fails. */
  isUndeployed?: true;
  /** Whether the login goes on when the action fails. */
  isOptional: boolean;
}

interface Deployed {
  code?: string;
  dependencies?: readonly { name: string }[];
  modules?: unknown;
}

type Documents = readonly Frozen<DocumentRecord>[];

interface Secret {
  name: string;
  value?: string;
  /** When the value was set, ISO 8601; missing for those of a tenant file. */
  updated_at?: string;
}

// docs/understand/decisions/actions-scripts.md#an-action-that-is-bound-as-a-draft-fails
/**
 * Returns the actions of each trigger, in order.
 * @param actions the documents of actions.
 * @param triggers the documents of bindings.
 * @param modules the documents of modules.
 */
export function boundActions(
  actions: Documents,
  triggers: Documents,
  modules: Documents,
): ReadonlyMap<string, readonly BoundAction[]> {
  const byId = new Map(actions.map((one) => [one.id, one]));
  return new Map(
    triggers.map(({ name = '', body }) => {
      const bindings = (body.bindings ?? []) as readonly {
        action: { id: string; name?: string };
        on_error?: string;
      }[];
      const bound = bindings.flatMap(({ action, on_error }) => {
        const found = byId.get(action.id);
        // A tenant file binds an action that is not there without an id. One with an id was deleted.
        if (found === undefined && action.id !== '') return [];
        const deployed = (found && deployedOf(found, modules)) ?? undeployed(found?.body.name ?? action.name);
        return [{ ...deployed, isOptional: on_error === 'continue' }];
      });
      return [name, bound];
    }),
  );
}

/** An action without its binding. */
export type RunnableAction = Omit<BoundAction, 'isOptional'>;

const undeployed = (name: unknown): RunnableAction => ({
  name: String(name),
  code: '',
  dependencies: [],
  secrets: {},
  modules: [],
  isUndeployed: true,
});

/**
 * Returns the deployed version of an action, never its draft; undefined if it is not deployed.
 * @param modules the documents of modules.
 */
export function deployedOf(
  { body }: Pick<Frozen<DocumentRecord>, 'body'>,
  modules: Documents,
): RunnableAction | undefined {
  // The tenant file marks an action as `deployed`; the Management API keeps the deployed version beside the draft.
  const version = body.deployed === true ? body : body.deployed_version;
  return runnable({ name: body.name, version, secrets: body.deployed_secrets ?? body.secrets, modules });
}

/** Returns why an action cannot be bound to a trigger, where it would never run; undefined if it can. */
export function bindingFault(
  action: Pick<Frozen<DocumentRecord>, 'body'>,
  trigger: string,
): string | undefined {
  if (!supportsTrigger(action, trigger)) return 'is of another trigger';
  return deployedOf(action, []) === undefined ? 'is not deployed' : undefined;
}

export function supportsTrigger({ body }: Pick<Frozen<DocumentRecord>, 'body'>, trigger: string): boolean {
  const supported = (body.supported_triggers ?? []) as readonly { id?: string }[];
  return supported.length === 0 || supported.some(({ id }) => id === trigger);
}

/** Returns an action as it would be if it were deployed now. @param modules the documents of modules. */
export function draftOf(
  { body }: Pick<Frozen<DocumentRecord>, 'body'>,
  modules: Documents,
): RunnableAction | undefined {
  return runnable({ name: body.name, version: body, secrets: body.secrets, modules });
}

function runnable({
  name,
  version,
  secrets,
  modules,
}: {
  name: unknown;
  version: unknown;
  secrets: unknown;
  modules: Documents;
}): RunnableAction | undefined {
  const { code, dependencies = [], modules: references } = (version ?? {}) as Deployed;
  if (typeof code !== 'string') return undefined;
  return {
    name: String(name),
    code,
    dependencies: dependencies.map((one) => String(one.name)),
    secrets: Object.fromEntries(
      ((secrets ?? []) as readonly Secret[]).map((one) => [one.name, one.value ?? '']),
    ),
    modules: runnableModules(references, modules),
  };
}

/** Returns the first trigger that an action supports; undefined if actions of that trigger do not run here. */
export function triggerOf({ body }: Pick<Frozen<DocumentRecord>, 'body'>): Trigger | undefined {
  const [{ id = '' } = {}] = (body.supported_triggers ?? []) as readonly { id?: string }[];
  return Object.hasOwn(TRIGGER_ENTRIES, id) ? (id as Trigger) : undefined;
}

/**
 * Merges secrets with their previous values: one without a value keeps the value it had, because clients cannot read
 * values back.
 * @param now the time of this change, ISO 8601; set on secrets whose value changes.
 */
export function withSecretValues(before: unknown, after: unknown, now: string): unknown {
  if (!Array.isArray(after)) return after;
  const previousSecrets = new Map(((before ?? []) as readonly Secret[]).map((one) => [one.name, one]));
  return (after as readonly Secret[]).map(({ updated_at: _, ...one }) => {
    const last = previousSecrets.get(one.name);
    const value = one.value ?? last?.value;
    const updatedAt = last !== undefined && last.value === value ? last.updated_at : now;
    return {
      ...one,
      ...(value !== undefined && { value }),
      ...(updatedAt !== undefined && { updated_at: updatedAt }),
    };
  });
}

/**
 * Returns secrets as clients may see them, without their values.
 * @param since the time for secrets whose own time is unknown, ISO 8601.
 */
export function secretNames(secrets: unknown, since: unknown): object[] {
  return ((secrets ?? []) as readonly Secret[]).map(({ name, updated_at = since }) => ({ name, updated_at }));
}

/** The members of the version of an action that a tenant file deployed. */
export const TENANT_FILE_VERSION = { status: 'built', deployed: true };

/**
 * Returns an action whose draft may be changed: the version that a tenant file deployed is stored as the deployed
 * one.
 */
export function asDraft(before: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (before.deployed !== true) return before;
  const { deployed: _, code, dependencies, runtime, secrets, modules } = before;
  const version = { ...TENANT_FILE_VERSION, code, dependencies, runtime, modules };
  return { ...before, deployed: false, deployed_version: version, deployed_secrets: secrets };
}
