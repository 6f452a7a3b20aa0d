// What actions may ask for: the methods of `api` by trigger, and the effect of each recorded call.
import { z } from 'zod';
import type { Trigger } from '../records/actions.ts';
import { ASSERTION_TAKE } from './assertion-asked.ts';
import { EXCHANGE_TAKE, type ExchangeAsked } from './exchange-asked.ts';
import { FACTORS_TAKE } from './factors-asked.ts';
import {
  CONTINUING_METHODS,
  LOGIN_TAKE,
  type LoginAsked,
  nothingOfLogin,
  RESET_TAKE,
} from './login-asked.ts';
import { NOTIFICATION_TAKE, type NotificationAsked } from './notification-asked.ts';
import { pair, scopeToken, setMember, type Take, taking, text } from './taking.ts';

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
  login: LoginAsked;
  exchange: ExchangeAsked;
  /** Set where the message was not delivered. */
  notification?: NotificationAsked;
}

/** Returns the empty outcome. */
export function nothingAsked(): ActionOutcome {
  return {
    idToken: {},
    accessToken: {},
    userMetadata: {},
    appMetadata: {},
    multifactor: false,
    login: nothingOfLogin(),
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
export const METHODS: Record<Trigger, readonly string[]> = {
  'post-login': [
    'access.deny',
    'idToken.setCustomClaim',
    'accessToken.setCustomClaim',
    'multifactor.enable',
    'validation.error',
    ...METADATA,
    ...Object.keys(LOGIN_TAKE),
  ],
  'credentials-exchange': ['access.deny', 'accessToken.setCustomClaim', ...TARGET_SCOPES],
  'pre-user-registration': ['access.deny', 'validation.error', ...METADATA],
  'post-user-registration': [],
  'post-change-password': [],
  'send-phone-message': [],
  'custom-phone-provider': Object.keys(NOTIFICATION_TAKE),
  'custom-email-provider': Object.keys(NOTIFICATION_TAKE),
  'password-reset-post-challenge': [
    'access.deny',
    'redirect.sendUserTo',
    'transaction.setMetadata',
    ...(Object.keys(RESET_TAKE) as (keyof typeof RESET_TAKE)[]),
  ],
  'custom-token-exchange': [
    'access.deny',
    ...METADATA,
    ...(Object.keys(EXCHANGE_TAKE) as (keyof typeof EXCHANGE_TAKE)[]),
  ],
};

/** Returns the methods that an action has; `isContinued`: it continues after its redirect. */
export const methodsOf = (trigger: Trigger, isContinued: boolean): readonly string[] =>
  METHODS[trigger].filter((method) => isContinued || !CONTINUING_METHODS.has(method));

/** Every list of methods that an action may have, in the form that the sandbox gets it. */
export const METHOD_LISTS: readonly string[] = [
  ...new Set(
    (Object.keys(METHODS) as Trigger[]).flatMap((trigger) =>
      [false, true].map((isContinued) => methodsOf(trigger, isContinued).join(' ')),
    ),
  ),
];

const member = (of: 'idToken' | 'accessToken' | 'userMetadata' | 'appMetadata') =>
  taking<ActionOutcome, typeof pair>(pair, (outcome, [key, given]) => setMember(outcome[of], key, given));

const reasons = z.tuple([text]).rest(z.unknown());
const anything = z.array(z.unknown());
const scopes = z.tuple([z.array(scopeToken).max(1000)]).rest(z.unknown());

/** The effect of each method; it returns false for wrong arguments. */
const TAKE: Record<string, Take<ActionOutcome>> = {
  ...LOGIN_TAKE,
  ...RESET_TAKE,
  ...EXCHANGE_TAKE,
  ...NOTIFICATION_TAKE,
  // `deny(reason)`, or `deny(code, message)` where the user is shown the message.
  'access.deny': taking<ActionOutcome, typeof reasons>(reasons, (outcome, [first, second]) => {
    outcome.denied ??=
      typeof second === 'string'
        ? { code: first, reason: second.slice(0, 1000), userMessage: second.slice(0, 1000) }
        : { reason: first };
  }),
  'validation.error': taking(z.tuple([text, text]).rest(z.unknown()), (outcome, [code, userMessage]) => {
    outcome.denied ??= { code, reason: userMessage, userMessage };
  }),
  'transaction.setTargetScopes': taking<ActionOutcome, typeof scopes>(scopes, (outcome, [wanted]) => {
    outcome.targetScopes = wanted;
  }),
  'idToken.setCustomClaim': member('idToken'),
  'accessToken.setCustomClaim': member('accessToken'),
  'user.setUserMetadata': member('userMetadata'),
  'user.setAppMetadata': member('appMetadata'),
  'multifactor.enable': taking<ActionOutcome, typeof anything>(anything, (outcome, [asked, options]) => {
    if (asked === 'none') return;
    const { allowRememberBrowser } = (options ?? {}) as { allowRememberBrowser?: unknown };
    const mayRemember = allowRememberBrowser === true;
    outcome.login.mayRemember = mayRemember && (!outcome.multifactor || outcome.login.mayRemember === true);
    outcome.multifactor = true;
  }),
};

/** How many calls an action may record. */
const MOST_COMMANDS = 1000;

/** Calls as the sandbox recorded them; nothing about them is trusted. */
export const commandsSchema = z
  .array(z.object({ method: z.string(), args: z.array(z.unknown()) }))
  .max(MOST_COMMANDS);

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
  ...Object.keys(EXCHANGE_TAKE),
  'authentication.setPrimaryUser',
  ...Object.keys(FACTORS_TAKE),
  ...Object.keys(ASSERTION_TAKE),
  // Otherwise a message that was not delivered would count as delivered.
  ...Object.keys(NOTIFICATION_TAKE),
]);

/**
 * Methods after whose calls the sandbox may run the next action at once: they change neither its event nor whether
 * it runs, and calls with wrong arguments are ignored. An action with more than `most` calls fails.
 */
export const PASSING = {
  methods: ['idToken.setCustomClaim', 'accessToken.setCustomClaim', 'accessToken.addScope'],
  most: MOST_COMMANDS,
};

/**
 * Applies a recorded call to the outcome.
 * @param methods the methods that the action has.
 * @returns false for another method and for wrong arguments; `failed` where that must not be ignored.
 */
export function takeCommand(
  methods: readonly string[],
  outcome: ActionOutcome,
  { method, args }: Command,
): boolean | 'failed' {
  const isTaken = methods.includes(method) && TAKE[method]?.(outcome, args) === true;
  return isTaken || (MUST_BE_VALID.has(method) ? 'failed' : false);
}
