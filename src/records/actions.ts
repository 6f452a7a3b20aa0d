// Actions as they run: those that are bound to a trigger, in order, each as it was last deployed.
import { runnableModules } from './action-modules.ts';
import type { DocumentRecord } from './documents.ts';
import type { Frozen } from './record.ts';

/** The triggers whose actions run here, with the function that an action exports for it. */
export const TRIGGER_ENTRIES = {
  'post-login': 'onExecutePostLogin',
  'credentials-exchange': 'onExecuteCredentialsExchange',
  'pre-user-registration': 'onExecutePreUserRegistration',
  'post-user-registration': 'onExecutePostUserRegistration',
  'post-change-password': 'onExecutePostChangePassword',
  'send-phone-message': 'onExecuteSendPhoneMessage',
  'custom-phone-provider': 'onExecuteCustomPhoneProvider',
  'custom-email-provider': 'onExecuteCustomEmailProvider',
  'custom-token-exchange': 'onExecuteCustomTokenExchange',
  'password-reset-post-challenge': 'onExecutePostChallenge',
} as const;

/** What a failed action of these was to do is not done by anybody else: it is never left out. */
export const NEEDED_TRIGGERS: ReadonlySet<string> = new Set([
  'send-phone-message',
  'custom-phone-provider',
  'custom-email-provider',
]);

/** The function of an action that sent a user elsewhere, called when the user is back. */
export function continueEntry(trigger: Trigger): string {
  return TRIGGER_ENTRIES[trigger].replace('onExecute', 'onContinue');
}

export type Trigger = keyof typeof TRIGGER_ENTRIES;

/** An action that is bound and deployed. */
export interface BoundAction {
  name: string;
  code: string;
  /** Names of the npm packages that it lists. */
  dependencies: readonly string[];
  /** By name. */
  secrets: Readonly<Record<string, string>>;
  /** What it requires as `actions:NAME`; one that is not there any more fails it. */
  modules: ReturnType<typeof runnableModules>;
  /** A failure of it is no failure of the login. */
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
  /** When it got its value, ISO 8601; of those from before that was kept there is none. */
  updated_at?: string;
}

/**
 * The actions of each trigger.
 * @param actions documents of actions. @param triggers documents of what is bound to triggers. @param modules those of
 *   modules.
 */
export function boundActions(
  actions: Documents,
  triggers: Documents,
  modules: Documents,
): ReadonlyMap<string, readonly BoundAction[]> {
  const byId = new Map(actions.map((one) => [one.id, one]));
  return new Map(
    triggers.map(({ name = '', body }) => {
      const bindings = (body.bindings ?? []) as readonly { action: { id: string }; on_error?: string }[];
      const bound = bindings.flatMap(({ action, on_error }) => {
        const found = byId.get(action.id);
        const deployed = found && deployedOf(found, modules);
        return deployed === undefined ? [] : [{ ...deployed, isOptional: on_error === 'continue' }];
      });
      return [name, bound];
    }),
  );
}

/** An action, whatever it is bound to. */
export type RunnableAction = Omit<BoundAction, 'isOptional'>;

/** What of an action is in force: never its draft. @param modules documents of modules. */
export function deployedOf(
  { body }: Pick<Frozen<DocumentRecord>, 'body'>,
  modules: Documents,
): RunnableAction | undefined {
  // A tenant file says `deployed` of what it has; the Management API keeps what was deployed beside the draft.
  const version = body.deployed === true ? body : body.deployed_version;
  return runnable({ name: body.name, version, secrets: body.deployed_secrets ?? body.secrets, modules });
}

/** Why an action cannot be bound to a trigger: it would never run there. @returns undefined where it can. */
export function bindingFault(
  action: Pick<Frozen<DocumentRecord>, 'body'>,
  trigger: string,
): string | undefined {
  const supported = (action.body.supported_triggers ?? []) as readonly { id?: string }[];
  if (supported.length > 0 && !supported.some(({ id }) => id === trigger)) return 'is of another trigger';
  return deployedOf(action, []) === undefined ? 'is not deployed' : undefined;
}

/** An action as it would be if it were deployed now. @param modules documents of modules. */
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

/** The trigger that an action is for, where those run here. */
export function triggerOf({ body }: Pick<Frozen<DocumentRecord>, 'body'>): Trigger | undefined {
  const [{ id = '' } = {}] = (body.supported_triggers ?? []) as readonly { id?: string }[];
  return Object.hasOwn(TRIGGER_ENTRIES, id) ? (id as Trigger) : undefined;
}

/**
 * Secrets as they are set; those without a value keep the one that they had, since none is ever read back.
 * @param now ISO 8601: since when a value is another than before.
 */
export function withSecretValues(before: unknown, after: unknown, now: string): unknown {
  if (!Array.isArray(after)) return after;
  const known = new Map(((before ?? []) as readonly Secret[]).map((one) => [one.name, one]));
  return (after as readonly Secret[]).map(({ updated_at: _, ...one }) => {
    const last = known.get(one.name);
    const value = one.value ?? last?.value;
    const at = last !== undefined && last.value === value ? last.updated_at : now;
    return { ...one, ...(value !== undefined && { value }), ...(at !== undefined && { updated_at: at }) };
  });
}

/** Secrets as they are told: never their values. @param since what is said of those whose time nobody kept, ISO 8601. */
export function secretNames(secrets: unknown, since: unknown): object[] {
  return ((secrets ?? []) as readonly Secret[]).map(({ name, updated_at = since }) => ({ name, updated_at }));
}
