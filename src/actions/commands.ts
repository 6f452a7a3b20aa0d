// What actions may ask for: the methods of `api` by trigger, and what is taken of what they recorded.
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
  /** Why it is refused; no action ran after the one that said so. `error` where it is not `access_denied`. */
  denied?: { code?: string; reason: string; userMessage?: string; error?: 'unauthorized' };
  /** Claims, by name; those of the protocol are for the caller to refuse. */
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Members of the metadata, null for one that goes. */
  userMetadata: Record<string, unknown>;
  appMetadata: Record<string, unknown>;
  /** A second factor has to be given. */
  multifactor: boolean;
  /** The scopes that the token of an application is to have, as far as it may. */
  targetScopes?: string[];
  login: LoginAsked;
  exchange: ExchangeAsked;
  /** The message was not brought. */
  notification?: NotificationAsked;
}

/** Nothing was asked for. */
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

/** The sandbox records what the scopes are after each as the first of them. */
const TARGET_SCOPES = [
  'transaction.setTargetScopes',
  'transaction.addTargetScope',
  'transaction.removeTargetScope',
  'transaction.clearTargetScopes',
] as const;

/** The methods of `api`, by trigger; `cache` is there for all. */
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

/** Those of an action; `isContinued`: it goes on with a user whom it sent elsewhere. */
export const methodsOf = (trigger: Trigger, isContinued: boolean): readonly string[] =>
  METHODS[trigger].filter((method) => isContinued || !CONTINUING_METHODS.has(method));

/** Each list of methods that an action may have, as the sandbox is given it. */
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

/** What each method does; false for arguments that it does not take. */
const TAKE: Record<string, Take<ActionOutcome>> = {
  ...LOGIN_TAKE,
  ...RESET_TAKE,
  ...EXCHANGE_TAKE,
  ...NOTIFICATION_TAKE,
  // `deny(reason)`, and `deny(code, message)` where users are told of it.
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

/** What an action may ask for at most. */
const MOST_COMMANDS = 1000;

/** Commands as they were recorded in the sandbox: anything. */
export const commandsSchema = z
  .array(z.object({ method: z.string(), args: z.array(z.unknown()) }))
  .max(MOST_COMMANDS);

export type Command = z.output<typeof commandsSchema>[number];

/** What opens a door where it is left out: an action that asks for it wrongly has failed. */
const GATES: ReadonlySet<string> = new Set([
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
  // Whose token it is, is either as the action says or not at all.
  ...Object.keys(EXCHANGE_TAKE),
  'authentication.setPrimaryUser',
  ...Object.keys(FACTORS_TAKE),
  ...Object.keys(ASSERTION_TAKE),
  // Else a message that nobody has would count as brought.
  ...Object.keys(NOTIFICATION_TAKE),
]);

/**
 * What changes nothing of what the next action is told, nor whether it runs, and is left out where it is called wrongly. An
 * action that asks for more has failed.
 */
export const PASSING = {
  methods: ['idToken.setCustomClaim', 'accessToken.setCustomClaim', 'accessToken.addScope'],
  most: MOST_COMMANDS,
};

/**
 * Takes a command.
 * @param methods those that it may be of.
 * @returns false for another method, and for arguments that it does not take; `failed` where that must not be left out.
 */
export function takeCommand(
  methods: readonly string[],
  outcome: ActionOutcome,
  { method, args }: Command,
): boolean | 'failed' {
  const isTaken = methods.includes(method) && TAKE[method]?.(outcome, args) === true;
  return isTaken || (GATES.has(method) ? 'failed' : false);
}
