// What actions may ask for: the methods of `api` by trigger, and the effect of each recorded call.
import { z } from 'zod';
import type { Trigger } from '../../records/actions.ts';
import { type ApiMethod, apiMethod, nameAndValue, scopeToken, setMember, text } from './api-method.ts';
import { ASSERTION_METHODS } from './assertion-methods.ts';
import { EXCHANGE_METHODS, type ExchangeOutcome } from './exchange-methods.ts';
import { FACTOR_METHODS } from './factor-methods.ts';
import {
  CONTINUING_METHODS,
  LOGIN_METHODS,
  type LoginChanges,
  noLoginChanges,
  RESET_METHODS,
} from './login-methods.ts';
import { NOTIFICATION_METHODS, type NotificationFailure } from './notification-methods.ts';

/** What all actions of a trigger asked for together. */
export interface ActionOutcome {
  /** Why access is denied. No further action ran. `error` is set where it is not `access_denied`. */
  denied?: { code?: string; reason: string; userMessage?: string; error?: 'unauthorized' };
  /** Claims, by name. The caller refuses those of the protocol. */
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Members of the metadata; null removes one. */
  userMetadata: Record<string, unknown>;
  appMetadata: Record<string, unknown>;
  /** Whether a second factor is required. */
  multifactor: boolean;
  /** The scopes that the token of an application is to have, as far as the client may have them. */
  targetScopes?: string[];
  login: LoginChanges;
  exchange: ExchangeOutcome;
  /** Set where the message was not delivered. */
  notification?: NotificationFailure;
}

/** Returns the empty outcome. */
export function emptyOutcome(): ActionOutcome {
  return {
    idToken: {},
    accessToken: {},
    userMetadata: {},
    appMetadata: {},
    multifactor: false,
    login: noLoginChanges(),
    exchange: { users: [] },
  };
}

const METADATA = ['user.setUserMetadata', 'user.setAppMetadata'] as const;

/** The sandbox records a call of any of these as a call of the first, with all scopes that result from it. */
const TARGET_SCOPES = [
  'transaction.setTargetScopes',
  'transaction.addTargetScope',
  'transaction.removeTargetScope',
  'transaction.clearTargetScopes',
] as const;

/** The methods of `api`, by trigger. `cache` is available to all. */
export const TRIGGER_METHODS: Record<Trigger, readonly string[]> = {
  'post-login': [
    'access.deny',
    'idToken.setCustomClaim',
    'accessToken.setCustomClaim',
    'multifactor.enable',
    'validation.error',
    ...METADATA,
    ...TARGET_SCOPES,
    ...Object.keys(LOGIN_METHODS),
  ],
  'credentials-exchange': ['access.deny', 'accessToken.setCustomClaim', ...TARGET_SCOPES],
  'pre-user-registration': ['access.deny', 'validation.error', ...METADATA],
  'post-user-registration': [],
  'post-change-password': [],
  'send-phone-message': [],
  'custom-phone-provider': Object.keys(NOTIFICATION_METHODS),
  'custom-email-provider': Object.keys(NOTIFICATION_METHODS),
  'password-reset-post-challenge': [
    'access.deny',
    'redirect.sendUserTo',
    'transaction.setMetadata',
    ...(Object.keys(RESET_METHODS) as (keyof typeof RESET_METHODS)[]),
  ],
  'custom-token-exchange': [
    'access.deny',
    ...METADATA,
    ...(Object.keys(EXCHANGE_METHODS) as (keyof typeof EXCHANGE_METHODS)[]),
  ],
};

/** Returns the methods that an action has; `isContinued`: it continues after its redirect. */
export const methodsOf = (trigger: Trigger, isContinued: boolean): readonly string[] =>
  TRIGGER_METHODS[trigger].filter((method) => isContinued || !CONTINUING_METHODS.has(method));

/** Every list of methods that an action may have, in the form that the sandbox gets it. */
export const METHOD_LISTS: readonly string[] = [
  ...new Set(
    (Object.keys(TRIGGER_METHODS) as Trigger[]).flatMap((trigger) =>
      [false, true].map((isContinued) => methodsOf(trigger, isContinued).join(' ')),
    ),
  ),
];

const setMemberOf = (of: 'idToken' | 'accessToken' | 'userMetadata' | 'appMetadata') =>
  apiMethod<ActionOutcome, typeof nameAndValue>(nameAndValue, (outcome, [key, value]) =>
    setMember(outcome[of], key, value),
  );

const denyArguments = z.tuple([text]).rest(z.unknown());
const anyArguments = z.array(z.unknown());
const scopeArguments = z.tuple([z.array(scopeToken).max(1000)]).rest(z.unknown());

/** The effect of each method; it returns false for wrong arguments. */
const METHOD_EFFECTS: Record<string, ApiMethod<ActionOutcome>> = {
  ...LOGIN_METHODS,
  ...RESET_METHODS,
  ...EXCHANGE_METHODS,
  ...NOTIFICATION_METHODS,
  // `deny(reason)`, or `deny(code, message)` where the user is shown the message.
  'access.deny': apiMethod<ActionOutcome, typeof denyArguments>(denyArguments, (outcome, [first, second]) => {
    outcome.denied ??=
      typeof second === 'string'
        ? { code: first, reason: second.slice(0, 1000), userMessage: second.slice(0, 1000) }
        : { reason: first };
  }),
  'validation.error': apiMethod(z.tuple([text, text]).rest(z.unknown()), (outcome, [code, userMessage]) => {
    outcome.denied ??= { code, reason: userMessage, userMessage };
  }),
  'transaction.setTargetScopes': apiMethod<ActionOutcome, typeof scopeArguments>(
    scopeArguments,
    (outcome, [scopes]) => {
      outcome.targetScopes = scopes;
    },
  ),
  'idToken.setCustomClaim': setMemberOf('idToken'),
  'accessToken.setCustomClaim': setMemberOf('accessToken'),
  'user.setUserMetadata': setMemberOf('userMetadata'),
  'user.setAppMetadata': setMemberOf('appMetadata'),
  'multifactor.enable': apiMethod<ActionOutcome, typeof anyArguments>(
    anyArguments,
    (outcome, [factor, options]) => {
      if (factor === 'none') return;
      const { allowRememberBrowser } = (options ?? {}) as { allowRememberBrowser?: unknown };
      const mayRemember = allowRememberBrowser === true;
      outcome.login.mayRemember = mayRemember && (!outcome.multifactor || outcome.login.mayRemember === true);
      outcome.multifactor = true;
    },
  ),
};

/** How many calls an action may record. */
const MAX_COMMANDS = 1000;

/** Calls as the sandbox recorded them; nothing about them is trusted. */
export const commandsSchema = z
  .array(z.object({ method: z.string(), args: z.array(z.unknown()) }))
  .max(MAX_COMMANDS);

export type Command = z.output<typeof commandsSchema>[number];

/**
 * Methods that must not be ignored when they are called with wrong arguments, because access would be wider than
 * intended. The action fails instead.
 */
const MUST_BE_VALID: ReadonlySet<string> = new Set([
  'access.deny',
  'validation.error',
  'multifactor.enable',
  'redirect.sendUserTo',
  'accessToken.removeScope',
  ...TARGET_SCOPES,
  ...['session', 'refreshToken'].flatMap((of) => [
    `${of}.revoke`,
    `${of}.setExpiresAt`,
    `${of}.setIdleExpiresAt`,
  ]),
  'session.setCookieMode',
  // The user of the token must be exactly the one that the action names.
  ...Object.keys(EXCHANGE_METHODS),
  'authentication.setPrimaryUser',
  ...Object.keys(FACTOR_METHODS),
  ...Object.keys(ASSERTION_METHODS),
  // Otherwise a message that was not delivered would count as delivered.
  ...Object.keys(NOTIFICATION_METHODS),
]);

/**
 * Methods after whose calls the sandbox may run the next action at once: they change neither its event nor whether
 * it runs, and calls with wrong arguments are ignored. An action with more than `most` calls fails.
 */
export const CONTINUE_CONDITION = {
  methods: ['idToken.setCustomClaim', 'accessToken.setCustomClaim', 'accessToken.addScope'],
  most: MAX_COMMANDS,
};

/**
 * Applies a recorded call to the outcome.
 * @param methods the methods that the action has.
 * @returns false for another method and for wrong arguments; `failed` where that must not be ignored.
 */
export function applyCommand(
  methods: readonly string[],
  outcome: ActionOutcome,
  { method, args }: Command,
): boolean | 'failed' {
  const isApplied = methods.includes(method) && METHOD_EFFECTS[method]?.(outcome, args) === true;
  return isApplied || (MUST_BE_VALID.has(method) ? 'failed' : false);
}
